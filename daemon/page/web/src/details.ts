// What one hub counts, asked for while it or one of its links is selected: ports and virtual
// channels, windows of programs, the CAU.
import { count, counted, virtualTime } from "./format";
import { type Json, type JsonObject, list, num, object, text } from "./json";
import { type Link } from "./model";
import { table } from "./panel";
import { make } from "./paint";
import { type Target } from "./ring";
import { call } from "./wire";

const EVERY_MS = 1000;

/** What the ports of a hub had counted at one virtual time. */
export interface Counted {
  at: number;
  linksAt: number; // of the links, which are asked for beside them
  ports: Map<number, JsonObject>;
  blade: JsonObject; // of a Cell blade
}

export class Details {
  private counters: JsonObject = {};
  links: JsonObject[] = [];
  hub = "";
  counted: Counted | undefined;
  earlier: Counted | undefined; // the look before
  private asked = -Infinity;

  constructor(private changed: () => void) {}

  /** What is selected, `link` if that is a link, `open` the hub that is opened; asks anew from time to time. */
  follow(target: Target, link: Link | undefined, open: string): void {
    const hub = open || (link ? link.ends[0] : target && "hub" in target ? target.hub : "");
    if (hub !== this.hub) [this.counters, this.links, this.asked, this.counted, this.earlier] = [{}, [], -Infinity, undefined, undefined];
    this.hub = hub;
    const now = performance.now();
    if (hub === "" || now - this.asked < EVERY_MS) return;
    this.asked = now;
    void this.ask(hub);
  }

  private async ask(hub: string): Promise<void> {
    try {
      const [links, counters] = await Promise.all([call("ListLinks", { node: hub }), call("GetCounters", { node: hub })]);
      if (hub !== this.hub) return;
      this.links = list(links["links"]).map(object);
      this.counters = object(object(list(counters["nodes"])[0])["counters"]);
      const at = num(counters["virtual_time"]);
      const ports = list(this.counters["ports"]).map(object).map((port): [number, JsonObject] => [num(port["port"]), port]);
      if (!this.counted || at > this.counted.at) this.earlier = this.counted;
      this.counted = { at, linksAt: num(links["virtual_time"]), ports: new Map(ports), blade: object(this.counters["blade"]) };
      this.changed();
    } catch {
      this.asked = performance.now() + EVERY_MS; // the run may be over
    }
  }

  ofLink(name: string): HTMLElement[] {
    const status = this.links.find((link) => text(link["name"]) === name);
    if (!status) return [];
    return (["forward", "backward"] as const).flatMap((way) => {
      const vcs = list(object(status[way])["vcs"]).map(object);
      return vcs.length === 0 ? [] : [this.vcs(way, vcs)];
    });
  }

  /** What is known of a link's virtual channels, for the tip. */
  linesOfLink(name: string): string[] {
    const status = this.links.find((link) => text(link["name"]) === name);
    return (["forward", "backward"] as const).flatMap((way) => list(object(status?.[way])["vcs"]).map(object).map((vc) =>
      `VC ${num(vc["vc"])} ${way}: ${counted(num(vc["packets"]), "packet")}, ${virtualTime(num(vc["credit_stall_ps"]))} without credit, buffer at most ${counted(num(vc["most_held"]), "flit")}`));
  }

  /** ... and of a hub's packets. */
  linesOfHub(name: string): string[] {
    const c = this.counters;
    if (name !== this.hub || Object.keys(c).length === 0) return [];
    return [`${counted(num(c["packets_created"]), "packet")} created, ${count(num(c["packets_delivered"]))} delivered, ${count(num(c["packets_resent"]))} sent again`];
  }

  private vcs(way: string, vcs: JsonObject[]): HTMLElement {
    const number = (of: JsonObject, field: string) => count(num(of[field]));
    return table([`VC, ${way}`, "flits", "packets", "no credit", "buffer used"], vcs.map((vc) => [
      String(num(vc["vc"])), [number(vc, "flits"), number(vc, "packets"),
        virtualTime(num(vc["credit_stall_ps"])), number(vc, "most_held")]]));
  }

  ofHub(): HTMLElement[] {
    const c = this.counters;
    if (Object.keys(c).length === 0) return [];
    const parts = [table(["at this hub", "packets"], [
      ["created", [count(num(c["packets_created"]))]], ["delivered", [count(num(c["packets_delivered"]))]],
      ["dropped", [count(Object.values(object(c["packets_dropped"])).reduce((sum: number, n: Json) => sum + num(n), 0))]],
      ["sent again", [count(num(c["packets_resent"]))]]])];
    parts.push(...this.named("CAU", c["cau"]), ...this.named("Cell blade", c["blade"]));
    list(c["hfis"]).forEach((hfi, i) => parts.push(...this.named(`windows of HFI ${i}`, object(hfi)["counts"])));
    parts.push(this.ports());
    return parts;
  }

  private named(title: string, counts: Json | undefined): HTMLElement[] {
    const rows = Object.entries(object(counts)).map(([name, value]): [string, string[]] => [name.replaceAll("_", " "), [count(num(value))]]);
    return rows.length === 0 ? [] : [table([title, ""], rows)];
  }

  private ports(): HTMLElement {
    const rows = this.links.map((link): [string, string[]] => {
      const outward = text(link["name"]).startsWith(`${this.hub}:`);
      const [near, far] = text(link["ends"]).split("/");
      const port = object(link[outward ? "forward" : "backward"]);
      return [`to ${outward ? far ?? "" : near ?? ""}`, [text(link["link_class"]), link["up"] === true ? "up" : "DOWN",
        count(num(port["packets"])), virtualTime(num(port["credit_stall_ps"]))]];
    });
    const made = make("details", [make("summary", `${rows.length} ports`), table(["", "class", "", "packets out", "no credit"], rows)]);
    return made;
  }
}
