// The page: reads the feed, draws, and passes on what is clicked.
import { BladeView } from "./blade";
import { drawChart } from "./charts";
import { Crossbars } from "./crossbars";
import { type Point } from "./curve";
import { Details } from "./details";
import { Drill } from "./drill";
import { Faults } from "./faults";
import { counted, percent, scaled, virtualTime } from "./format";
import { type Json, num, text } from "./json";
import { Matrix } from "./matrix";
import { HubView, ageOf, portTip } from "./hub";
import { Pace } from "./pace";
import { type FabricEvent, Model, parseHub } from "./model";
import { Palette, UTILISATION_LEGEND, calm, element, fresh, make } from "./paint";
import { hubDetails, hubTip, linkDetails, linkTip, machineDetails, showEvents, showFacts, table } from "./panel";
import { Ring, type Target } from "./ring";
import { recorded, recordedMessages, saveAs } from "./saved";
import { Timeline } from "./timeline";
import { Trees } from "./trees";
import { call, follow } from "./wire";

const model = new Model();
const map = element("map", HTMLCanvasElement);
const matrix = new Matrix(map, model);
const inspected = new Details(() => showSide());
const hovered = new Details(() => showTip());
const trees = new Trees(model.flights, () => showSide());
const ring: Ring = new Ring(map, model, (c, palette, now) =>
  treesShown && trees.draw(c, palette, (hub) => ring.placeOf(hub), ring.middle, now, !calm.matches && model.state === "running"));
const hubView = new HubView(map, inspected, trees);
const bladeView = new BladeView(map, inspected, model.flights);
const crossbars = new Crossbars(map, model);
const drill = new Drill(model, () => showAll());
const pace = new Pace(model, (to) => void clock("SetPace", { pace: to }));
const faults = new Faults(model, () => showSide());
const trouble = element("trouble", HTMLParagraphElement);
const tip = element("tip", HTMLDivElement);
const pause = element("pause", HTMLButtonElement);
const step = element("step", HTMLButtonElement);
const span = element("span", HTMLSelectElement);
const save = element("save", HTMLButtonElement);
const view = element("view", HTMLButtonElement);
const open = element("open", HTMLButtonElement);
const treesButton = element("trees", HTMLButtonElement);
const treeButton = element("tree", HTMLButtonElement);
let timeline: Timeline | undefined; // of a recorded run
type View = "supernode" | "machine" | "hub" | "blade" | "crossbars";
let shown: View | "undecided" = "undecided";
let opened = ""; // the hub or blade that is shown
let treesShown = false;
let scheduled = false;
let pointer: Point | undefined; // over the map
let resting = 0; // when it came to what it is over, in wall milliseconds
const REST_MS = 200;
let ranksInLegend = 0; // hubs with ranks when the legend was drawn

function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame((now) => {
    scheduled = false;
    if (shown === "machine") matrix.draw();
    else if (shown === "hub") hubView.draw(linkSelected());
    else if (shown === "crossbars") crossbars.draw();
    else if (shown === "blade") { if (bladeView.draw(now, model.state === "running")) schedule(); }
    else if (ring.draw(now)) schedule();
  });
}

function linkSelected(): string | undefined {
  return ring.selected && "link" in ring.selected ? ring.selected.link : undefined;
}

function layOut(): void {
  if (shown === "machine") matrix.layOut();
  else if (shown === "crossbars") crossbars.layOut();
  else if (shown !== "hub" && shown !== "blade") ring.layOut();
  schedule();
}

function showSide(): void {
  const selected = ring.selected;
  const link = selected && "link" in selected ? model.links.get(selected.link) : undefined;
  const [title, ...details] = link ? linkDetails(model, link)
    : selected && "hub" in selected ? hubDetails(model, selected.hub) : machineDetails(model);
  if (!recorded && (treesShown || shown === "hub")) trees.follow(model.run);
  inspected.follow(recorded ? undefined : selected, link, shown === "hub" || shown === "blade" ? opened : "");
  treeButton.hidden = !model.hasCrossbars;
  open.disabled = recorded || (shown !== "hub" && shown !== "blade" && hubSelected() === "");
  details.push(...(link ? inspected.ofLink(link.name) : selected ? inspected.ofHub() : []));
  if (title) details.unshift(title, ...(!faults.possible || !selected || (link && !link.up) ? [] : faults.showPreview(selected)));
  if (shown === "hub") details.push(make("p", ageOf(inspected), "note"));
  if (treesShown && trees.trees.length > 0) details.push(table(["tree", "state", "CAUs", "under way", "held", "top sent lately"], trees.describe()));
  if (!recorded && model.blades.length > 0 && (!selected || shown === "blade")) details.push(showBlades());
  replace(element("selection", HTMLElement), details);
  if (shown === "hub" || shown === "blade") schedule();
  replace(element("faults", HTMLElement), faults.showAll());
}

function showBlades(): HTMLElement {
  return make("div", [make("span", "Blades:"), ...model.blades.map((name) => {
    const button = make("button", name);
    button.setAttribute("aria-pressed", String(shown === "blade" && opened === name));
    button.addEventListener("click", () => openBlade(name));
    return button;
  })], "row");
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
  pace.show();
}

function showCharts(): void {
  const recent: FabricEvent[] = model.events;
  const samples = timeline?.samples ?? model.samples;
  const moment = timeline && model.countersAt;
  drawChart(element("throughput", HTMLCanvasElement), samples, recent,
    [{ name: "", of: (s) => s.bytesPerSecond }], (v) => scaled(v, "B/s"), virtualTime, moment);
  drawChart(element("latency", HTMLCanvasElement), samples, recent,
    [{ name: "p99 ", of: (s) => s.p99, dashed: true }, { name: "p50 ", of: (s) => s.p50 }], virtualTime, virtualTime, moment);
  drawChart(element("drops", HTMLCanvasElement), samples, recent,
    [{ name: "", of: (s) => s.dropped }], (v) => counted(v, "packet"), virtualTime, moment);
}

function showLegend(): void {
  const palette = new Palette();
  const rows: [string, string, number, number[]][] = UTILISATION_LEGEND.map((name, i) => [name, palette.steps[i] ?? "", 2.6, []]);
  rows.push(["down", palette.down, 3, [7, 5]], ["short of lanes", palette.warn, 2.6, [3, 2]]);
  ranksInLegend = model.ranks.size;
  if (ranksInLegend > 0) {
    const names: [string, string][] = [["rank: computing, busy", "c"], ["sending", "s"], ["receiving", "r"], ["waiting", "w"]];
    rows.push(...names.map(([name, state]): [string, string, number, number[]] => [name, palette.rank(state), 4, []]));
  }
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

function shownEvents(): void {
  showEvents(element("events", HTMLElement).querySelector("ol") ?? make("ol"), model.events);
}

function showAll(): void {
  map.dataset["hubs"] = String(model.hubs.size);
  map.dataset["links"] = String(model.links.size);
  map.dataset["virtualTime"] = String(num(model.status["virtual_time"]));
  const another = shown !== "undecided" && view.hidden !== model.ofSwitches; // kind of network
  if ((shown === "undecided" || another) && (model.hubs.size > 0 || model.cells)) setView(model.supernodes > 1 ? "machine" : "supernode", 0);
  if (model.cells && !recorded && shown !== "undecided" && shown !== "machine") drill.follow(ring.supernode);
  if (model.ranks.size !== ranksInLegend) showLegend();
  showFacts(element("facts", HTMLElement), model);
  showClock();
  showSide();
  showCharts();
  layOut();
  showTip();
}

function hubOf(target: Target): string {
  return target && "hub" in target ? target.hub : "";
}

function hubSelected(): string {
  return hubOf(ring.selected) || (model.links.get(linkSelected() ?? "")?.ends[0] ?? "");
}

function setView(which: View, supernode = ring.supernode): void {
  shown = which;
  ring.supernode = supernode;
  view.hidden = model.ofSwitches;
  view.textContent = which === "machine" ? `Supernode ${supernode}` : "Machine";
  treeButton.setAttribute("aria-pressed", String(which === "crossbars"));
  const [node, all] = model.ofSwitches ? ["Switch", "Network"] : ["Hub", `Supernode ${supernode}`];
  open.textContent = which === "hub" || which === "blade" ? all : node;
  map.dataset["view"] = which;
  element("legend", HTMLDivElement).hidden = which === "hub" || which === "blade";
  element("legend", HTMLDivElement).classList.toggle("flat", which === "crossbars" || model.ofSwitches);
  showLegend(); // while it is hidden nothing can be drawn
  showSide();
  layOut();
}

function select(target: Target): void {
  ring.selected = target;
  if (shown === "hub") opened = hubOf(target) || opened;
  faults.forget();
  if (target && faults.possible) void faults.look(target);
  showSide();
  layOut();
}

// With the counters of the hub that the pointer rests on, or of whose link it does.
function tipOf(target: Target): string {
  const link = target && "link" in target ? model.links.get(target.link) : undefined;
  const same = JSON.stringify(target) === JSON.stringify(ring.hovered);
  if (!target) resting = 0;
  else if (!same) resting = performance.now();
  if (!same) {
    ring.hovered = target;
    layOut();
  }
  if (!recorded && target && performance.now() - resting > REST_MS) hovered.follow(target, link, "");
  if (link) return [linkTip(link), ...hovered.linesOfLink(link.name)].join("\n");
  return target && "hub" in target ? [hubTip(model, target.hub), ...hovered.linesOfHub(target.hub)].join("\n") : "";
}

function showTip(): void {
  if (!pointer) return;
  const { x, y } = pointer;
  let words = "";
  if (shown === "machine") {
    const cell = matrix.find(x, y);
    if (cell) words = `sn${cell.row}${cell.row === cell.column ? "" : ` to sn${cell.column}`}\n${cell.links} links, ${cell.down} down\n${percent(cell.recent)} used on average`;
  } else if (shown === "hub") {
    const port = hubView.find(x, y);
    if (port) words = portTip(port);
  } else if (shown === "crossbars") {
    const found = crossbars.find(x, y);
    const cable = found && "link" in found ? model.links.get(found.link) : undefined;
    words = cable ? linkTip(cable) : found && "node" in found ? crossbars.tip(found.node) : "";
  } else if (shown === "blade") {
    words = "";
  } else {
    words = tipOf(ring.find(x, y));
  }
  tip.hidden = words === "";
  tip.textContent = words;
  const place = map.getBoundingClientRect();
  tip.style.left = `${Math.min(x + 14, place.width - tip.offsetWidth - 4)}px`;
  tip.style.top = `${Math.min(y + 14, place.height - tip.offsetHeight - 4)}px`;
}

function click(event: MouseEvent): void {
  tip.hidden = true;
  pointer = undefined; // until it moves
  if (shown === "hub") {
    const link = hubView.find(event.offsetX, event.offsetY)?.link;
    return select(link ? { link } : { hub: opened });
  }
  if (shown === "blade") return;
  if (shown === "crossbars") {
    const found = crossbars.find(event.offsetX, event.offsetY);
    crossbars.selected = found && "link" in found ? found.link : undefined;
    return select(crossbars.selected ? { link: crossbars.selected } : undefined);
  }
  if (shown !== "machine") return select(ring.find(event.offsetX, event.offsetY));
  const cell = matrix.find(event.offsetX, event.offsetY);
  if (cell && !(recorded && model.cells)) setView("supernode", cell.row);
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

const togglePause = () => timeline ? timeline.toggle() : void clock(model.state === "paused" ? "Resume" : "Pause");
const stepOn = () => timeline ? timeline.move(1) : void clock("StepTime", { by: span.value });
// A network of switches has one view.
function toggleView(): void {
  if (!model.ofSwitches) setView(shown === "machine" ? "supernode" : "machine");
}

// Opens the selected hub, or goes back to its supernode.
function toggleHub(): void {
  if (shown === "hub" || shown === "blade" || recorded) return setView("supernode");
  opened = hubSelected();
  if (opened !== "") setView("hub", parseHub(opened)?.supernode);
}

function openBlade(name: string): void {
  ring.selected = undefined;
  opened = name;
  setView("blade");
}

function toggleCrossbars(): void {
  if (model.hasCrossbars) setView(shown === "crossbars" ? "supernode" : "crossbars");
}

function toggleTrees(): void {
  if (recorded) return;
  treesShown = !treesShown;
  treesButton.setAttribute("aria-pressed", String(treesShown));
  if (treesShown && shown !== "supernode") setView("supernode");
  showSide();
  layOut();
}

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
  ",": () => timeline?.move(-1), ".": () => timeline?.move(1),
  " ": togglePause, s: stepOn, m: toggleView, h: toggleHub, c: toggleTrees, x: toggleCrossbars, t: toggleTheme, u: () => faults.endLast(),
  Escape: () => select(undefined), Enter: () => document.getElementById("cut")?.focus(),
  "+": () => pace.scale(2), "-": () => pace.scale(0.5),
  ArrowLeft: move, ArrowRight: move, ArrowUp: move, ArrowDown: move, "[": move, "]": move,
};

document.addEventListener("keydown", (event) => {
  const act = KEYS[event.key];
  const typing = event.target instanceof HTMLSelectElement || event.target instanceof HTMLInputElement || (event.target instanceof HTMLButtonElement && [" ", "Enter"].includes(event.key));
  if (!act || typing || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  act(event.key);
});
map.addEventListener("mousemove", (event) => {
  pointer = { x: event.offsetX, y: event.offsetY };
  showTip();
});
map.addEventListener("mouseleave", () => {
  tip.hidden = true;
  pointer = undefined;
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
open.addEventListener("click", toggleHub);
treesButton.addEventListener("click", toggleTrees);
treeButton.addEventListener("click", toggleCrossbars);
element("theme", HTMLButtonElement).addEventListener("click", toggleTheme);
window.addEventListener("resize", showAll);
if (window.matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.dataset["theme"] = "dark";
showLegend();

let behind = 0;
let messages = 0;

function take(kind: string, data: Json): void {
  ++messages;
  const added = model.take(kind, data);
  if (added.length > 0 || kind === "snapshot") shownEvents();
  if (added.length > 0) behind = 8;
  if (faults.possible && faults.unfinished() && (added.length > 0 || behind-- > 0)) void faults.follow();
  showAll();
}

if (recorded) {
  for (const control of [pause, step, span, element("pace", HTMLSelectElement), save, open, treesButton]) control.hidden = true;
  recordedMessages().then((messages) => {
    timeline = new Timeline(messages, model, () => {
      shownEvents();
      showAll();
    });
  }).catch((error: unknown) => report(error instanceof Error ? error.message : "the file is damaged"));
} else {
  void follow({ message: take, connected: () => report(""), lost: report });
}

// For tests: where a link is, and how many frames were drawn.
Object.assign(window, { percs: { get messages() { return messages; }, model, ring, matrix, hubView, inspected, trees, crossbars, bladeView, openBlade, select, go: (moment: number) => timeline?.go(moment) } });
