// Writes built/: the files that percs-controller has compiled in, and the checksums of all.
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { buildSync } from "esbuild";

mkdirSync("built", { recursive: true });
buildSync({
  entryPoints: ["src/main.ts"],
  bundle: true,
  minify: true,
  charset: "ascii",
  target: "es2022",
  outfile: "built/page.js",
});
buildSync({ entryPoints: ["src/page.css"], minify: true, outfile: "built/page.css" });
copyFileSync("src/index.html", "built/index.html");
const files = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"];
for (const folder of ["src", "built"])
  files.push(...readdirSync(folder).filter((name) => name !== "SHA256SUMS").sort().map((name) => `${folder}/${name}`));
const sum = (file) => createHash("sha256").update(readFileSync(file)).digest("hex");
writeFileSync("built/SHA256SUMS", files.map((file) => `${sum(file)}  ${file}\n`).join(""));
