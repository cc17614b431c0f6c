// Writes every dashboard as JSON into the folder named, and beside them what they were made from, so that
// without node a test can still tell a file edited by hand, or a source edited and not built.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { collectives } from "./collectives.js";
import { emulation } from "./emulation.js";
import { faults } from "./faults.js";
import { hub } from "./hub.js";
import { supernode } from "./supernode.js";

function sumOf(path: string): string {
  return createHash("sha256").update(readFileSync(path, "utf8")).digest("hex");
}

const folder = process.argv[2];
if (folder === undefined) throw new Error("usage: node built/main.js FOLDER");
mkdirSync(folder, { recursive: true });

for (const builder of [supernode(), hub(), faults(), collectives(), emulation()]) {
  const dashboard = builder.build();
  // Grafana numbers panels by itself when it loads them; numbers of our own keep links to panels alive.
  (dashboard.panels ?? []).forEach((panel, index) => {
    panel.id = index + 1;
  });
  if (dashboard.uid === undefined) throw new Error("a dashboard without uid");
  writeFileSync(join(folder, `${dashboard.uid}.json`), `${JSON.stringify(dashboard, null, 2)}\n`);
}

const sources = ["package.json", "package-lock.json", "tsconfig.json"].concat(
  readdirSync("src").sort().map((name) => join("src", name)),
);
const dashboards = readdirSync(folder).filter((name) => name.endsWith(".json")).sort();
const lines = sources
  .map((path) => `${sumOf(path)}  ${path}`)
  .concat(dashboards.map((name) => `${sumOf(join(folder, name))}  dashboards/${name}`));
writeFileSync(join(folder, "SHA256SUMS"), `${lines.join("\n")}\n`);
