// What is known of the fabric, from the feed.
import { levelOf } from "./crossbars";
import { Cells } from "./cells";
import { Flights } from "./flight";
import { type Point } from "./curve";
import { type Json, type JsonObject, list, num, object, text } from "./json";

export interface Way {
  recent: number; // utilisation, 0..1
  flits: number;
  packets: number;
  stall: number; // picoseconds
  crcErrors: number;
  replays: number;
  lanesLost: number;
}

export interface Link {
  name: string;
  ends: [string, string]; // hubs
  kind: string; // LL, LR, D
  up: boolean;
  forward: Way;
  backward: Way;
  flash: number; // when something was lost or changed here, wall milliseconds
}

export interface Hub {
  name: string;
  supernode: number;
  drawer: number;
  hub: number;
}

export interface FabricEvent {
  sequence: number;
  at: number;
  kind: string;
  subject: string;
  text: string;
}

/** One point of the charts. */
export interface Sample {
  at: number; // virtual picoseconds
  bytesPerSecond: number;
  p50: number; // picoseconds
  p99: number;
  dropped: number; // packets since the point before
}

/** What a hub has counted, and when that grew last, in wall milliseconds; 0: not since it is known. */
export interface HubCounts {
  dropped: number; // packets
  reroutes: number; // after which it sent packets another way
  lost: number;
  rerouted: number;
}

/** Ranks of a program or trace on one hub; a letter for what each does. */
export interface Ranks {
  numbers: number[];
  states: string;
}

export const RANK_STATES: Record<string, string> = {
  i: "idle", c: "computing", s: "sending", r: "receiving", b: "busy", w: "waiting", d: "done",
};

const SAMPLES = 480;
const EVENTS = 256;

function way(row: Json[], from: number, recent: number): Way {
  const at = (i: number) => num(row[from + i]);
  return { recent, flits: at(0), packets: at(1), stall: at(2), crcErrors: at(3), replays: at(4), lanesLost: at(5) };
}

export function parseHub(name: string): Hub | undefined {
  const m = /^sn(\d+)-d(\d+)-h(\d+)$/.exec(name);
  return m ? { name, supernode: Number(m[1]), drawer: Number(m[2]), hub: Number(m[3]) } : undefined;
}

/** Upper edge of bucket `index` of the emulator's histograms: 8 per power of two. */
export function bucketEdge(index: number): number {
  return index < 8 ? index : (8 + (index % 8) + 1) * 2 ** (Math.floor(index / 8) - 1);
}

function quantile(buckets: number[], share: number): number {
  const total = buckets.reduce((a, b) => a + b, 0);
  let left = share * total;
  for (let i = 0; total > 0 && i < buckets.length; ++i) {
    left -= buckets[i] ?? 0;
    if (left <= 0) return bucketEdge(i);
  }
  return 0;
}

export class Model {
  role = "";
  run = 0;
  status: JsonObject = {};
  counters: JsonObject = {};
  countersAt = 0;
  links = new Map<string, Link>();
  hubs = new Map<string, Hub>();
  /** Of a network of switches: where each stands, in steps between neighbours. */
  spots = new Map<string, Point>();
  events: FabricEvent[] = [];
  samples: Sample[] = [];
  linksAt = 0;
  ranks = new Map<string, Ranks>();
  readonly flights = new Flights();
  /** By hub, of those that have dropped or rerouted packets. */
  hubCounts = new Map<string, HubCounts>();
  /** Of a machine with so many links that the feed has their use by supernode alone. */
  cells: Cells | undefined;

  get mayChange(): boolean {
    return this.role === "operator";
  }
  get state(): string {
    return text(this.status["state"]).replace("FABRIC_STATE_", "").toLowerCase();
  }
  get supernodes(): number {
    if (this.cells) return this.cells.size;
    return 1 + Math.max(-1, ...[...this.hubs.values()].map((hub) => hub.supernode));
  }

  /** As before the first message. */
  restart(): void {
    this.run = 0;
    this.samples = [];
    this.counters = {};
    this.countersAt = 0;
    this.links.clear();
    this.spots.clear();
    this.ranks.clear();
    this.hubCounts.clear();
    this.flights.take({});
    this.cells = undefined;
  }

  forgetFlashes(): void {
    for (const link of this.links.values()) link.flash = 0;
    for (const hub of this.hubCounts.values()) hub.lost = hub.rerouted = 0;
  }

  take(kind: string, data: Json): FabricEvent[] {
    const message = object(data);
    if (kind === "hello") {
      this.role = text(message["role"]);
      return [];
    }
    const status = message["status"];
    if (status !== undefined) this.takeStatus(object(status), kind === "snapshot");
    if (message["spots"] !== undefined) this.takeSpots(object(message["spots"]));
    this.takeLinks(object(message["links"]));
    this.takeRanks(object(message["ranks"]));
    this.takeHubs(object(message["hubs"]), kind === "snapshot");
    if (message["in_flight"] !== undefined || kind === "snapshot") this.flights.take(object(message["in_flight"]));
    if (message["matrix"] !== undefined) this.takeCells(object(message["matrix"]));
    if (message["counters"] !== undefined) this.takeCounters(object(message["counters"]));
    if (message["samples"] !== undefined) this.takeSamples(list(message["samples"]));
    return this.takeEvents(list(message["events"]));
  }

  private takeStatus(status: JsonObject, snapshot: boolean): void {
    const run = num(status["run"]);
    if (run !== this.run || snapshot) {
      this.links.clear();
      this.hubs.clear();
      this.spots.clear();
      this.ranks.clear();
      this.cells = undefined;
      this.events = [];
    }
    if (run !== this.run) {
      this.hubCounts.clear();
      this.flights.take({});
      this.samples = [];
      this.counters = {};
    }
    this.run = run;
    this.status = status;
  }

  // A network of switches, which has no supernodes.
  get ofSwitches(): boolean {
    return this.spots.size > 0;
  }

  private takeSpots(spots: JsonObject): void {
    this.spots.clear();
    this.hubs.clear();
    for (const [name, value] of Object.entries(spots)) {
      const [x = 0, y = 0] = list(value).map(num);
      this.hubs.set(name, { name, supernode: 0, drawer: 0, hub: this.spots.size });
      this.spots.set(name, { x, y });
    }
  }

  private takeLinks(links: JsonObject): void {
    if (links["virtual_time"] !== undefined) this.linksAt = num(links["virtual_time"]);
    for (const [name, value] of Object.entries(object(links["rows"]))) {
      const row = list(value);
      const before = this.links.get(name);
      const [near = "", far = ""] = text(row[0]).split("/");
      const link: Link = {
        name, ends: [near, far], kind: text(row[1]), up: num(row[2]) === 1,
        forward: way(row, 5, num(row[3])), backward: way(row, 11, num(row[4])), flash: before?.flash ?? 0,
      };
      if (before && (before.up !== link.up || before.forward.replays !== link.forward.replays)) {
        link.flash = performance.now();
      }
      this.links.set(name, link);
      for (const end of link.ends) {
        const hub = this.ofSwitches ? this.hubs.get(end) : parseHub(end);
        if (hub) this.hubs.set(end, hub);
      }
    }
  }

  // A delta has the hubs whose counts grew; in a snapshot they may have grown long ago.
  private takeHubs(hubs: JsonObject, snapshot: boolean): void {
    const now = snapshot ? 0 : performance.now();
    for (const [hub, value] of Object.entries(hubs)) {
      const [dropped = 0, reroutes = 0] = list(value).map(num);
      const before = this.hubCounts.get(hub) ?? { dropped: 0, reroutes: 0, lost: 0, rerouted: 0 };
      this.hubCounts.set(hub, {
        dropped, reroutes, lost: dropped > before.dropped ? now : before.lost,
        rerouted: reroutes > before.reroutes ? now : before.rerouted,
      });
    }
  }

  private takeRanks(ranks: JsonObject): void {
    for (const [hub, value] of Object.entries(ranks)) {
      const [numbers, states] = list(value);
      this.ranks.set(hub, { numbers: list(numbers).map(num), states: text(states) });
    }
  }

  private takeCells(matrix: JsonObject): void {
    if (matrix["supernodes"] !== undefined) this.cells = new Cells(matrix);
    this.cells?.take(matrix);
  }

  /** All links of one supernode, as ListLinks answers: only they are kept, of such a machine. */
  takeListed(reply: JsonObject): void {
    const at = num(reply["virtual_time"]);
    const passed = at - this.linksAt;
    const known = this.links;
    this.links = new Map();
    this.hubs.clear();
    const rows: JsonObject = {};
    for (const status of list(reply["links"]).map(object)) {
      const name = text(status["name"]);
      const before = known.get(name);
      const [forward, f] = this.listedWay(status, "forward", before?.forward, passed);
      const [backward, b] = this.listedWay(status, "backward", before?.backward, passed);
      rows[name] = [text(status["ends"]), text(status["link_class"]), status["up"] === true ? 1 : 0, f, b, ...forward, ...backward];
      if (before) this.links.set(name, before); // for what flashes
    }
    this.takeLinks({ virtual_time: at, rows });
  }

  // Counters as in a row of the feed, and the use since `passed` ago: the reply has it since the start.
  private listedWay(status: JsonObject, way: "forward" | "backward", before: Way | undefined, passed: number): [number[], number] {
    const port = object(status[way]);
    const at = (field: string) => num(port[field]);
    const flits = at("flits");
    const mean = num(status[`utilisation_${way}`]);
    const perFlit = flits > 0 ? (mean * (this.linksAt + passed)) / flits : 0;
    const recent = before && passed > 0 ? ((flits - before.flits) * perFlit) / passed : mean;
    return [[flits, at("packets"), at("credit_stall_ps"), at("crc_errors"), at("replays"), at("lanes_lost")],
      Math.min(1, Math.max(0, recent))];
  }

  private takeCounters(reply: JsonObject): void {
    const now = object(object(list(reply["nodes"])[0])["counters"]);
    const before = this.counters;
    const at = num(reply["virtual_time"]);
    const passed = at - this.countersAt;
    if (passed > 0 && Object.keys(before).length > 0) {
      const buckets = (c: JsonObject) => list(object(c["packet_latency"])["buckets"]).map(num);
      const old = buckets(before);
      const fresh = buckets(now).map((value, i) => value - (old[i] ?? 0));
      this.samples.push({
        at,
        bytesPerSecond: ((num(now["bytes_delivered"]) - num(before["bytes_delivered"])) / passed) * 1e12,
        p50: quantile(fresh, 0.5),
        p99: quantile(fresh, 0.99),
        dropped: dropped(now) - dropped(before),
      });
      if (this.samples.length > SAMPLES) this.samples.shift();
    }
    this.counters = now;
    this.countersAt = at;
  }

  private takeEvents(events: Json[]): FabricEvent[] {
    const added = events.map(object).map((e) => ({
      sequence: num(e["sequence"]), at: num(e["at"]), kind: text(e["kind"]),
      subject: text(e["subject"]), text: text(e["text"]),
    }));
    this.events = [...this.events, ...added].slice(-EVENTS);
    return added;
  }

  /** A message that brings another model to where this one is. */
  snapshot(): JsonObject {
    const rows: JsonObject = {};
    const columns = (way: Way) => [way.flits, way.packets, way.stall, way.crcErrors, way.replays, way.lanesLost];
    for (const link of this.links.values()) {
      rows[link.name] = [link.ends.join("/"), link.kind, link.up ? 1 : 0, link.forward.recent, link.backward.recent,
        ...columns(link.forward), ...columns(link.backward)];
    }
    return {
      status: this.status,
      ranks: Object.fromEntries([...this.ranks].map(([hub, of]) => [hub, [of.numbers, of.states]])),
      hubs: Object.fromEntries([...this.hubCounts].map(([hub, of]) => [hub, [of.dropped, of.reroutes]])),
      ...(this.ofSwitches ? { spots: Object.fromEntries([...this.spots].map(([name, at]) => [name, [at.x, at.y]])) } : {}),
      ...(this.cells ? { matrix: this.cells.snapshot() } : {}),
      links: { virtual_time: this.linksAt, rows },
      counters: { virtual_time: this.countersAt, nodes: [{ counters: this.counters }] },
      events: this.events.map((event) => ({ ...event })),
      samples: this.samples.map((sample) => ({ ...sample })),
    };
  }

  private takeSamples(samples: Json[]): void {
    this.samples = samples.map(object).map((s) => ({
      at: num(s["at"]), bytesPerSecond: num(s["bytesPerSecond"]), p50: num(s["p50"]), p99: num(s["p99"]), dropped: num(s["dropped"]),
    }));
  }

  /** Nodes that are neither hubs nor crossbars. */
  get blades(): string[] {
    if (num(this.status["blades"]) === 0) return [];
    const names = [...this.links.values()].flatMap((link) => link.ends)
      .filter((name) => parseHub(name) === undefined && levelOf(name) === undefined);
    return [...new Set(names)].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  }
  get hasCrossbars(): boolean {
    return num(this.status["crossbars"]) > 0;
  }

  /** How many ranks do what: "2 computing, 1 waiting"; of one hub or of all. */
  rankWords(hubs: Iterable<string> = this.ranks.keys()): string {
    const counts = new Map<string, number>();
    for (const hub of hubs)
      for (const state of this.ranks.get(hub)?.states ?? "") counts.set(state, (counts.get(state) ?? 0) + 1);
    return Object.entries(RANK_STATES).filter(([state]) => counts.has(state))
      .map(([state, name]) => `${counts.get(state) ?? 0} ${name}`).join(", ");
  }

  linksOf(hub: string): Link[] {
    return [...this.links.values()].filter((link) => link.ends.includes(hub));
  }
}

export function dropped(counters: JsonObject): number {
  return Object.values(object(counters["packets_dropped"])).reduce((sum: number, value) => sum + num(value), 0);
}
