// The page: reads the feed, draws, and passes on what is clicked.
import { drawChart } from "./charts";
import { Details } from "./details";
import { Faults } from "./faults";
import { count, scaled, virtualTime } from "./format";
import { type Json, num, text } from "./json";
import { Matrix } from "./matrix";
import { type FabricEvent, Model } from "./model";
import { Palette, UTILISATION_LEGEND, element, fresh, make } from "./paint";
import { hubDetails, hubTip, linkDetails, linkTip, machineDetails, showEvents, showFacts } from "./panel";
import { Ring, type Target } from "./ring";
import { savedData, saveAs } from "./saved";
import { call, follow } from "./wire";

const model = new Model();
const map = element("map", HTMLCanvasElement);
const ring = new Ring(map, model);
const matrix = new Matrix(map, model);
const inspected = new Details(() => showSide());
const faults = new Faults(model, () => showSide());
const trouble = element("trouble", HTMLParagraphElement);
const tip = element("tip", HTMLDivElement);
const pause = element("pause", HTMLButtonElement);
const step = element("step", HTMLButtonElement);
const span = element("span", HTMLSelectElement);
const save = element("save", HTMLButtonElement);
const view = element("view", HTMLButtonElement);
const saved = savedData();
let shown: "supernode" | "machine" | "undecided" = "undecided";
let scheduled = false;

function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame((now) => {
    scheduled = false;
    if (shown === "machine") matrix.draw();
    else if (ring.draw(now)) schedule();
  });
}

function layOut(): void {
  if (shown === "machine") matrix.layOut();
  else ring.layOut();
  schedule();
}

function showSide(): void {
  const selected = ring.selected;
  const link = selected && "link" in selected ? model.links.get(selected.link) : undefined;
  const [title, ...details] = link ? linkDetails(link)
    : selected && "hub" in selected ? hubDetails(model, selected.hub) : machineDetails(model);
  inspected.follow(saved ? undefined : selected, link);
  details.push(...(link ? inspected.ofLink(link.name) : selected ? inspected.ofHub() : []));
  if (title) details.unshift(title, ...(saved || !selected || (link && !link.up) ? [] : faults.showPreview(selected)));
  replace(element("selection", HTMLElement), details);
  replace(element("faults", HTMLElement), faults.showAll());
}

// What has the focus keeps it: buttons are made anew with every message.
function replace(place: HTMLElement, parts: HTMLElement[]): void {
  const opened = place.querySelector("details")?.open ?? false;
  const fresh = make("div", parts);
  fresh.querySelectorAll("details").forEach((part) => (part.open = opened));
  if (fresh.innerHTML === place.firstElementChild?.innerHTML) return;
  const focused = place.contains(document.activeElement) ? [...place.querySelectorAll("button")].findIndex((b) => b === document.activeElement) : -1;
  place.replaceChildren(fresh);
  if (focused >= 0) [...place.querySelectorAll("button")][focused]?.focus();
}

function showClock(): void {
  const paused = model.state === "paused";
  pause.textContent = paused ? "Resume" : "Pause";
  const can = model.mayChange && ["running", "paused", "idle"].includes(model.state);
  for (const button of [pause, step]) button.disabled = !can;
}

function showCharts(): void {
  const recent: FabricEvent[] = model.events;
  drawChart(element("throughput", HTMLCanvasElement), model.samples, recent,
    [{ name: "", of: (s) => s.bytesPerSecond }], (v) => scaled(v, "B/s"), virtualTime);
  drawChart(element("latency", HTMLCanvasElement), model.samples, recent,
    [{ name: "p99 ", of: (s) => s.p99, dashed: true }, { name: "p50 ", of: (s) => s.p50 }], virtualTime, virtualTime);
  drawChart(element("drops", HTMLCanvasElement), model.samples, recent,
    [{ name: "", of: (s) => s.dropped }], (v) => `${count(v)} packets`, virtualTime);
}

function showLegend(): void {
  const palette = new Palette();
  const rows: [string, string, number, number[]][] = UTILISATION_LEGEND.map((name, i) => [name, palette.steps[i] ?? "", 2.6, []]);
  rows.push(["down", palette.down, 3, [7, 5]], ["short of lanes", palette.warn, 2.6, [3, 2]]);
  const legend = element("legend", HTMLDivElement);
  const lines = rows.map(() => document.createElement("canvas"));
  legend.replaceChildren(...rows.flatMap(([name], i) => [lines[i] ?? make("i"), make("span", name)]));
  rows.forEach(([, style, width, dash], i) => {
    const line = lines[i];
    const target = line && fresh(line);
    if (!target) return;
    target.c.strokeStyle = style;
    target.c.lineWidth = width;
    target.c.setLineDash(dash);
    target.c.beginPath();
    target.c.moveTo(2, 6);
    target.c.lineTo(54, 6);
    target.c.stroke();
  });
}

function showAll(): void {
  if (shown === "undecided" && model.hubs.size > 0) setView(model.supernodes > 1 ? "machine" : "supernode");
  showFacts(element("facts", HTMLElement), model);
  showClock();
  showSide();
  showCharts();
  layOut();
}

function setView(which: "supernode" | "machine", supernode = ring.supernode): void {
  shown = which;
  ring.supernode = supernode;
  view.textContent = which === "machine" ? `Supernode ${supernode}` : "Machine";
  map.dataset["view"] = which;
  layOut();
}

function select(target: Target): void {
  ring.selected = target;
  faults.forget();
  if (target && !saved) void faults.look(target);
  showSide();
  layOut();
}

function showTip(event: MouseEvent): void {
  const { offsetX: x, offsetY: y } = event;
  let words = "";
  if (shown === "machine") {
    const cell = matrix.find(x, y);
    if (cell) words = `sn${cell.row}${cell.row === cell.column ? "" : ` / sn${cell.column}`}\n${cell.links} links, ${cell.down} down`;
  } else {
    const target = ring.find(x, y);
    const link = target && "link" in target ? model.links.get(target.link) : undefined;
    words = link ? linkTip(link) : target && "hub" in target ? hubTip(model, target.hub) : "";
    if (JSON.stringify(target) !== JSON.stringify(ring.hovered)) {
      ring.hovered = target;
      layOut();
    }
  }
  tip.hidden = words === "";
  tip.textContent = words;
  const place = map.getBoundingClientRect();
  tip.style.left = `${Math.min(x + 14, place.width - tip.offsetWidth - 4)}px`;
  tip.style.top = `${Math.min(y + 14, place.height - tip.offsetHeight - 4)}px`;
}

function click(event: MouseEvent): void {
  tip.hidden = true;
  if (shown !== "machine") return select(ring.find(event.offsetX, event.offsetY));
  const cell = matrix.find(event.offsetX, event.offsetY);
  if (cell) setView("supernode", cell.row);
}

async function clock(method: string, request = {}): Promise<void> {
  try {
    await call(method, request);
  } catch (error) {
    report(error instanceof Error ? error.message : "the request failed");
  }
}

function report(words: string): void {
  trouble.textContent = words;
  trouble.hidden = words === "";
}

const togglePause = () => void clock(model.state === "paused" ? "Resume" : "Pause");
const stepOn = () => void clock("StepTime", { by: span.value });
const toggleView = () => setView(shown === "machine" ? "supernode" : "machine");

function toggleTheme(): void {
  const root = document.documentElement;
  root.dataset["theme"] = root.dataset["theme"] === "dark" ? "light" : "dark";
  showLegend();
  showAll();
}

// Arrows go round the hubs, brackets through the links of the one selected.
function move(key: string): void {
  const selected = ring.selected;
  if (key.startsWith("Arrow")) {
    const names = ring.hubs().map((hub) => hub.name);
    const now = selected && "hub" in selected ? names.indexOf(selected.hub) : -1;
    const by = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
    const next = names[(now + by + names.length) % names.length];
    if (next) select({ hub: next });
    return;
  }
  const link = selected && "link" in selected ? model.links.get(selected.link) : undefined;
  const hub = link ? link.ends[0] : selected && "hub" in selected ? selected.hub : "";
  const names = model.linksOf(hub).map((one) => one.name);
  const now = link ? names.indexOf(link.name) : -1;
  const next = names[(now + (key === "]" ? 1 : -1) + names.length) % names.length];
  if (next) select({ link: next });
}

const KEYS: Record<string, (key: string) => void> = {
  " ": togglePause, s: stepOn, m: toggleView, t: toggleTheme, u: () => faults.endLast(),
  Escape: () => select(undefined),
  ArrowLeft: move, ArrowRight: move, ArrowUp: move, ArrowDown: move, "[": move, "]": move,
};

document.addEventListener("keydown", (event) => {
  const act = KEYS[event.key];
  const typing = event.target instanceof HTMLSelectElement || (event.target instanceof HTMLButtonElement && event.key === " ");
  if (!act || typing || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  act(event.key);
});
map.addEventListener("mousemove", showTip);
map.addEventListener("mouseleave", () => {
  tip.hidden = true;
  ring.hovered = undefined;
  layOut();
});
map.addEventListener("click", click);
pause.addEventListener("click", togglePause);
step.addEventListener("click", stepOn);
save.addEventListener("click", () => {
  const name = `percs-${text(model.status["scenario"]) || "fabric"}-run${model.run}.html`;
  saveAs(name, model.snapshot()).catch((error: unknown) => report(error instanceof Error ? error.message : "the page cannot be saved"));
});
view.addEventListener("click", toggleView);
element("theme", HTMLButtonElement).addEventListener("click", toggleTheme);
window.addEventListener("resize", showAll);
if (window.matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.dataset["theme"] = "dark";
showLegend();

let behind = 0;

function take(kind: string, data: Json): void {
  const added = model.take(kind, data);
  if (added.length > 0 || kind === "snapshot") {
    showEvents(element("events", HTMLElement).querySelector("ol") ?? make("ol"), model.events);
  }
  if (added.length > 0) behind = 8;
  if (!saved && faults.unfinished() && (added.length > 0 || behind-- > 0)) void faults.follow();
  map.dataset["hubs"] = String(model.hubs.size);
  map.dataset["links"] = String(model.links.size);
  map.dataset["virtualTime"] = String(num(model.status["virtual_time"]));
  showAll();
}

if (saved) {
  for (const control of [pause, step, span, save]) control.hidden = true;
  take("snapshot", saved);
} else {
  void follow({ message: take, connected: () => report(""), lost: report });
}

// For tests: where a link is, and how many frames were drawn.
Object.assign(window, { percs: { model, ring, select } });
