// Faults made here: previewed, created with a lease that this page renews, followed through network
// management's answer, and ended by one click. A page that is closed lets its leases expire.
import { type Json, type JsonObject, has, list, num, object, text } from "./json";
import { count, virtualTime } from "./format";
import { type Model } from "./model";
import { make } from "./paint";
import { type Target } from "./ring";
import { recorded } from "./saved";
import { call } from "./wire";

const LEASE_MS = 30_000;
const STEPS: [string, string][] = [
  ["injected_at", "raised"], ["detected_at", "detected at the hub"], ["alerted_at", "alerted"],
  ["planned_at", "planned"], ["committed_at", "committed"], ["first_packet_at", "first packet by new route"],
];

function faultAt(target: Target, id: string): JsonObject {
  const what: JsonObject = target && "hub" in target
    ? { kind: "FAULT_KIND_HUB_DOWN", select: { in: target.hub } }
    : { kind: "FAULT_KIND_LINK_DOWN", select: { link: target ? target.link : "" } };
  return { id, inject: what };
}

export class Faults {
  preview: JsonObject | undefined;
  previewed = "";
  trouble = "";
  private mine: Set<string> = new Set();
  private followed = new Map<string, JsonObject>();
  private lastMade = "";

  constructor(private model: Model, private changed: () => void) {
    setInterval(() => void this.renew(), LEASE_MS / 3);
  }

  private async attempt(act: () => Promise<void>): Promise<void> {
    this.trouble = "";
    try {
      await act();
    } catch (error) {
      this.trouble = error instanceof Error ? error.message : "the request failed";
    }
    this.changed();
  }

  forget(): void {
    this.preview = undefined;
    this.previewed = "";
    this.trouble = "";
  }

  look(target: Target): Promise<void> {
    this.preview = undefined;
    this.previewed = target ? ("hub" in target ? target.hub : target.link) : "";
    const asked = this.previewed;
    return this.attempt(async () => {
      const reply = await call("PreviewFault", { fault: faultAt(target, "preview") });
      if (asked === this.previewed) this.preview = object(reply["preview"]);
    });
  }

  make(target: Target): Promise<void> {
    return this.attempt(async () => {
      const place = target ? ("hub" in target ? target.hub : target.link) : "";
      const id = `page-${place.replace(":", "-")}-${Date.now().toString(36)}`;
      const reply = await call("CreateFault", { fault: faultAt(target, id), lease_wall_ms: LEASE_MS });
      this.mine.add(id);
      this.lastMade = id;
      this.followed.set(id, object(reply["fault"]));
      this.forget();
    });
  }

  end(id: string): Promise<void> {
    return this.attempt(async () => {
      await call("DeleteFault", { id });
      this.mine.delete(id);
    });
  }

  endLast(): void {
    if (this.mine.has(this.lastMade)) void this.end(this.lastMade);
  }

  private async renew(): Promise<void> {
    for (const id of this.mine) {
      try {
        await call("HoldFault", { id });
      } catch {
        this.mine.delete(id); // its lease or its run is over
      }
    }
  }

  /** Something has happened: what is known of the faults that are listed? */
  async follow(): Promise<void> {
    for (const id of this.listed()) {
      if (has(this.followed.get(id) ?? {}, "first_packet_at")) continue;
      try {
        const reply = await call("ListFaults", { id });
        const fault = object(list(reply["faults"])[0]);
        this.followed.set(id, fault);
      } catch {
        this.followed.delete(id);
      }
    }
    this.changed();
  }

  /** Whether the fabric takes faults from a page: not a recorded run, nor one in a process of its own. */
  get possible(): boolean {
    return !recorded && num(this.model.status["daemons_expected"]) > 0;
  }

  private active(): JsonObject[] {
    return list(this.model.status["faults"]).map(object);
  }

  private listed(): string[] {
    return this.active().map((fault) => text(fault["id"]));
  }

  /** Whether the timeline of a fault may still grow. */
  unfinished(): boolean {
    return this.listed().some((id) => !has(this.followed.get(id) ?? {}, "first_packet_at"));
  }

  showPreview(target: Target): HTMLElement[] {
    const act = make("button", target && "hub" in target ? "Take the hub down" : "Cut the link", "act");
    act.id = "cut";
    act.toggleAttribute("disabled", !this.model.mayChange);
    act.addEventListener("click", () => void this.make(target));
    const row = [act];
    if (!this.model.mayChange) row.push(make("span", "your certificate is a viewer's: it may look only", "note"));
    const parts = [make("div", row, "row")];
    if (this.trouble) parts.push(make("p", this.trouble, "bad"));
    const p = this.preview;
    if (!p) return this.trouble ? parts : [make("p", "asking what it would touch ...", "note"), ...parts];
    const lost = num(p["pairs_unreachable"]);
    const cut = list(p["hubs_cut_off"]).map(text);
    return [
      make("p", `It would touch ${count(num(p["routes"]))} routes of ${count(num(p["pairs"]))} pairs of hubs; `
        + (lost > 0 ? `${count(lost)} pairs would stay unreachable.` : "every pair stays reachable.")),
      make("p", `Packets on the way ${p["loses_packets"] === true ? "are lost" : "are delayed"}.`
        + (cut.length > 0 ? ` Cut off: ${cut.join(", ")}.` : "")
        + (list(p["trees"]).length > 0 ? ` Trees: ${list(p["trees"]).map(text).join(", ")}.` : ""), "note"),
      ...parts,
      make("p", `It ends by itself ${LEASE_MS / 1000} s (wall time) after this page is closed.`, "note"),
    ];
  }

  showAll(): HTMLElement[] {
    const faults = this.active();
    if (faults.length === 0) return [];
    const more = num(this.model.status["faults_active"]) - faults.length;
    return [make("h2", `Faults in force: ${count(num(this.model.status["faults_active"]))}`),
      ...faults.map((fault) => this.show(fault)),
      ...(more > 0 ? [make("p", `and ${count(more)} more`, "note")] : [])];
  }

  private show(fault: JsonObject): HTMLElement {
    const id = text(fault["id"]);
    const known = this.followed.get(id) ?? fault;
    const undo = make("button", "Undo");
    undo.title = "End this fault (u: the one made last)";
    undo.toggleAttribute("disabled", !this.model.mayChange);
    undo.addEventListener("click", () => void this.end(id));
    const targets = list(fault["targets"]).map(text);
    const name = make("strong", `${text(fault["kind"])} ${targets.slice(0, 2).join(", ")}${targets.length > 2 ? " ..." : ""}`);
    const title = make("div", this.possible ? [name, undo] : [name], "row");
    const made = make("div", [title, this.timeline(known)], "fault");
    made.dataset["fault"] = id;
    return made;
  }

  private timeline(fault: JsonObject): HTMLElement {
    const start = num(fault["injected_at"]);
    const cell = (value: Json | undefined, delta: boolean) =>
      make("td", value === undefined ? "" : delta ? `+${virtualTime(num(value) - start)}` : virtualTime(num(value)));
    const rows = STEPS.map(([field, name]) => {
      const there = has(fault, field);
      return make("tr", [make("th", name), there ? cell(fault[field], false) : make("td", "-"), cell(fault[field], true)]);
    });
    const table = make("table", rows);
    table.setAttribute("aria-label", "virtual times");
    return table;
  }
}
