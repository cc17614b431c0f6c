// Text beside the map: facts of the fabric, what is selected, and events.
import { count, counted, percent, scaled, short, virtualTime } from "./format";
import { list, num, object, text } from "./json";
import { type Cells } from "./cells";
import { type FabricEvent, type Link, type Model, RANK_STATES, type Way, dropped } from "./model";
import { make } from "./paint";
import { recorded } from "./saved";

const EVENTS_SHOWN = 60;
const RANKS_SHOWN = 12;
const WALL = new Set(["pace", "windows", "daemons"]); // facts of wall time, which a recorded run has not
const BAD = new Set(["fault_injected", "alert", "plan_refused", "tree_failed", "daemon_lost", "miswired"]);

export function showFacts(place: HTMLElement, model: Model): void {
  const s = model.status;
  const here = list(s["processes"]).map(object).filter((p) => p["connected"] === true).length;
  const lost = dropped(model.counters);
  const daemons = num(s["daemons_expected"]); // 0: a run in one process
  const facts: [string, string][] = [
    ["scenario", text(s["scenario"]) || "none"],
    ["state", model.state || "unknown"],
    ["time", `${virtualTime(num(s["virtual_time"]))} (virtual)`],
    ["pace", `${virtualTime(num(s["pace_reached"]))} (virtual) per s (wall)`],
    ["windows", `${scaled(num(s["windows_per_second"]), "").trim()} per s (wall)`],
    ["daemons", `${here} of ${daemons}`],
    ["route epoch", String(num(s["epoch"]))],
    ["delivered", counted(num(model.counters["packets_delivered"]), "packet")],
    ["dropped", counted(lost, "packet")],
  ];
  const told = facts.filter(([name]) => !(recorded && WALL.has(name)) && !(daemons === 0 && name === "daemons"));
  place.replaceChildren(...told.map(([name, value]) => {
    const dd = make("dd", value);
    dd.dataset["fact"] = name;
    return make("div", [make("dt", name), dd]);
  }));
}

export function linkTip(link: Link): string {
  const worst = Math.max(link.forward.recent, link.backward.recent);
  const way = (name: string, of: Way) =>
    `${name}: ${counted(of.packets, "packet")}, ${counted(of.flits, "flit")}, ${virtualTime(of.stall)} without credit`;
  return `${link.name}  ${link.kind}  ${link.up ? percent(worst) + " used" : "DOWN"}\n${link.ends.join(" / ")}\n`
    + `${way("forward", link.forward)}\n${way("backward", link.backward)}`;
}

export function hubTip(model: Model, hub: string): string {
  const links = model.linksOf(hub);
  const down = links.filter((link) => !link.up).length;
  const busy = links.reduce((sum, link) => sum + link.forward.recent + link.backward.recent, 0);
  const ranks = model.rankWords([hub]);
  const counts = model.hubCounts.get(hub);
  return `${hub}\n${links.length} links, ${down} down\n${percent(busy / Math.max(1, 2 * links.length))} used on average`
    + (ranks ? `\nranks: ${ranks}` : "")
    + (counts ? `\n${counted(counts.dropped, "packet")} dropped here, packets sent another way after ${counted(counts.reroutes, "reroute")}` : "");
}

export function table(head: string[], rows: [string, string[]][]): HTMLElement {
  const made = make("table", rows.map(([name, cells]) => make("tr", [make("th", name), ...cells.map((cell) => make("td", cell))])));
  if (head.length > 0) made.prepend(make("thead", [make("tr", head.map((cell) => make("th", cell)))]));
  return made;
}

export function linkDetails(model: Model, link: Link): HTMLElement[] {
  const [f, b] = [link.forward, link.backward];
  const kinds: Record<string, string> = { LL: "within a drawer", LR: "between drawers", D: "between supernodes" };
  const kind = model.ofSwitches ? link.kind : `${link.kind} (${kinds[link.kind] ?? "other"})`;
  return [
    make("h2", `Link ${link.name}`),
    make("p", `${link.ends.join(" / ")}, ${kind}, ${link.up ? "up" : "DOWN"}`, link.up ? "note" : "bad"),
    table(["", "forward", "backward"], [
      ["used lately", [percent(f.recent), percent(b.recent)]],
      ["flits", [count(f.flits), count(b.flits)]],
      ["packets", [count(f.packets), count(b.packets)]],
      ["no credit (virtual)", [virtualTime(f.stall), virtualTime(b.stall)]],
      ["CRC errors", [count(f.crcErrors), count(b.crcErrors)]],
      ["replays", [count(f.replays), count(b.replays)]],
      ["lanes lost", [short(f.lanesLost), short(b.lanesLost)]],
    ]),
  ];
}

export function hubDetails(model: Model, hub: string): HTMLElement[] {
  const links = model.linksOf(hub);
  const rows: [string, string[]][] = ["LL", "LR", "D"].map((kind) => [kind, links.filter((link) => link.kind === kind)] as const)
    .filter(([, of]) => of.length > 0)
    .map(([kind, of]) => [kind, [
      count(of.length), count(of.filter((link) => !link.up).length),
      percent(of.reduce((sum, link) => sum + Math.max(link.forward.recent, link.backward.recent), 0) / of.length),
      count(of.reduce((sum, link) => sum + link.forward.packets + link.backward.packets, 0))]]);
  const parts = [make("h2", `${model.ofSwitches ? "Switch" : "Hub"} ${hub}`), table(["", "links", "down", "used", "packets"], rows)];
  const ranks = model.ranks.get(hub);
  if (ranks) {
    parts.push(table(["rank", "now"], ranks.numbers.slice(0, RANKS_SHOWN).map((rank, i) =>
      [String(rank), [RANK_STATES[ranks.states[i] ?? ""] ?? ""]])));
    if (ranks.numbers.length > RANKS_SHOWN) parts.push(make("p", `and ${ranks.numbers.length - RANKS_SHOWN} more: ${model.rankWords([hub])}`, "note"));
  }
  return parts;
}

function cellsDetails(model: Model, cells: Cells): HTMLElement[] {
  const { outputs, down, used } = cells.sum();
  return [
    make("h2", "Machine"),
    table([], [
      ["supernodes", [count(cells.size)]], ["nodes", [count(num(model.status["nodes"]))]],
      ["outputs to links", [count(outputs)]], ["of these down", [count(down)]], ["used lately, mean", [percent(used)]],
    ]),
    make("p", "A cell is the links from the supernode of its row to that of its column. Click it to open the supernode of the row.", "note"),
  ];
}

export function machineDetails(model: Model): HTMLElement[] {
  if (model.cells) return cellsDetails(model, model.cells);
  const all = [...model.links.values()];
  const kinds = ["LL", "LR", "D", ...(model.hasCrossbars ? ["IB"] : [])];
  const node = model.ofSwitches ? "switch" : "hub";
  const there = model.ofSwitches ? kinds.filter((kind) => all.some((link) => link.kind === kind)) : kinds;
  const rows = there.map((kind): [string, string[]] => {
    const of = all.filter((link) => link.kind === kind);
    return [kind, [count(of.length), count(of.filter((link) => !link.up).length)]];
  });
  return [
    make("h2", "Machine"),
    table(["", "links", "down"], rows),
    ...(model.ranks.size > 0 ? [make("p", `Ranks: ${model.rankWords()}.`)] : []),
    make("p", all.length === 0
      ? "No links are shown: no scenario is applied."
      : recorded || !model.mayChange || num(model.status["daemons_expected"]) === 0 ? `Click a link or a ${node} for its counters.`
        : `Click a link or a ${node} to see what a fault there would touch.`, "note"),
  ];
}

export function showEvents(place: HTMLElement, events: FabricEvent[]): void {
  place.replaceChildren(...events.slice(-EVENTS_SHOWN).reverse().map((event) => {
    const time = make("time", virtualTime(event.at));
    time.title = "virtual time";
    const line = make("li", [time, make("span", `${event.kind} ${event.subject}`, BAD.has(event.kind) ? "bad" : ""),
      make("span", event.text ? ` ${event.text}` : "")]);
    line.dataset["sequence"] = String(event.sequence);
    return line;
  }));
}
