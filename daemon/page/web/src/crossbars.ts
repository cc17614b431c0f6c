// Roadrunner's tree of InfiniBand crossbars by level, with the load of its cables.
import { type Link, type Model } from "./model";
import { Palette, fresh } from "./paint";

const LEVELS = ["c", "b", "a", "spine", "leaf", "edge"] as const;
const TITLES: Record<Level, string> = {
  c: "switches, C", b: "switches, B", a: "switches, A", spine: "spines", leaf: "leaves", edge: "triblades, hubs",
};
const LEFT = 104;
const NEAR = 5;

type Level = (typeof LEVELS)[number];
interface Place { name: string; level: Level; x: number; y: number; busy: number; up: boolean }

/** Which level of the tree a node is on: `cu0-leaf3`, `cu0-spine4`, `sw2-a5`; undefined: no crossbar. */
export function levelOf(name: string): Level | undefined {
  const m = /^(?:cu\d+-(leaf|spine)|sw\d+-([abc]))\d+$/.exec(name);
  const found = m?.[1] ?? m?.[2];
  return LEVELS.find((level) => level === found);
}

const busyOf = (link: Link) => Math.max(link.forward.recent, link.backward.recent);

export class Crossbars {
  selected: string | undefined; // link
  private places = new Map<string, Place>();
  private links: Link[] = [];

  constructor(private canvas: HTMLCanvasElement, private model: Model) {}

  layOut(): void {
    const { width, height } = this.canvas.getBoundingClientRect();
    this.links = [...this.model.links.values()].filter((link) => link.ends.some((end) => levelOf(end) !== undefined));
    this.places.clear();
    const levels = new Map<Level, Place[]>(LEVELS.map((level) => [level, []]));
    for (const link of this.links) {
      for (const name of link.ends) {
        const level = levelOf(name) ?? "edge";
        const place = this.places.get(name) ?? { name, level, x: 0, y: 0, busy: 0, up: false };
        place.busy = Math.max(place.busy, busyOf(link));
        place.up ||= link.up;
        if (!this.places.has(name)) levels.get(level)?.push(place);
        this.places.set(name, place);
      }
    }
    const shown = LEVELS.filter((level) => (levels.get(level) ?? []).length > 0);
    shown.forEach((level, row) => {
      const of = [...(levels.get(level) ?? [])].sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
      of.forEach((place, i) => {
        place.x = LEFT + ((i + 0.5) / of.length) * (width - LEFT - 12);
        place.y = 34 + ((row + 0.5) / shown.length) * (height - 74);
      });
    });
    this.links.sort((a, b) => busyOf(a) - busyOf(b));
  }

  draw(): void {
    const target = fresh(this.canvas);
    if (!target) return;
    const { c } = target;
    const palette = new Palette();
    for (const link of this.links) if (link.up) this.drawLink(c, palette, link);
    for (const link of this.links) if (!link.up || link.name === this.selected) this.drawLink(c, palette, link);
    c.textBaseline = "middle";
    c.textAlign = "left";
    c.font = '12px system-ui, "DejaVu Sans", sans-serif';
    const titled: Set<Level> = new Set();
    const counts = new Map<Level, number>();
    for (const place of this.places.values()) counts.set(place.level, (counts.get(place.level) ?? 0) + 1);
    for (const place of this.places.values()) {
      const size = Math.max(2, Math.min(10, (this.canvas.clientWidth - LEFT) / (counts.get(place.level) ?? 1) - 2));
      c.fillStyle = place.up ? palette.utilisation(place.busy) : palette.down;
      c.fillRect(place.x - size / 2, place.y - 5, size, 10);
      c.strokeStyle = palette.dim;
      c.lineWidth = 0.8;
      c.strokeRect(place.x - size / 2, place.y - 5, size, 10);
      if (titled.has(place.level)) continue;
      titled.add(place.level);
      c.fillStyle = palette.dim;
      c.fillText(`${counts.get(place.level) ?? 0}`, 12, place.y + 15);
      c.fillText(TITLES[place.level], 12, place.y, LEFT - 20);
    }
    c.fillStyle = palette.text;
    const down = this.links.filter((link) => !link.up).length;
    c.fillText(`${this.links.length} cables of the tree, ${down} down`, 12, 15);
  }

  private drawLink(c: CanvasRenderingContext2D, palette: Palette, link: Link): void {
    const [from, to] = [this.places.get(link.ends[0]), this.places.get(link.ends[1])];
    if (!from || !to) return;
    const busy = busyOf(link);
    const chosen = link.name === this.selected;
    c.strokeStyle = chosen ? palette.accent : !link.up ? palette.down : palette.utilisation(busy);
    c.globalAlpha = !link.up || chosen ? 1 : busy > 0 ? 0.9 : 0.25;
    c.lineWidth = chosen ? 3 : !link.up ? 1.8 : busy > 0 ? 1.6 : 0.6;
    c.setLineDash(link.up ? [] : [5, 4]);
    c.beginPath();
    c.moveTo(from.x, from.y);
    c.lineTo(to.x, to.y);
    c.stroke();
    c.setLineDash([]);
    c.globalAlpha = 1;
  }

  /** A crossbar, or else the busiest of the cables there. */
  find(x: number, y: number): { node: string } | { link: string } | undefined {
    for (const place of this.places.values()) {
      if (Math.abs(place.x - x) <= NEAR && Math.abs(place.y - y) <= NEAR + 2) return { node: place.name };
    }
    for (const link of [...this.links].reverse()) {
      const [from, to] = [this.places.get(link.ends[0]), this.places.get(link.ends[1])];
      if (!from || !to) continue;
      const t = (y - from.y) / (to.y - from.y);
      if (t > 0 && t < 1 && Math.abs(from.x + (to.x - from.x) * t - x) < 2.5) return { link: link.name };
    }
    return undefined;
  }

  tip(node: string): string {
    const of = this.links.filter((link) => link.ends.includes(node));
    const place = this.places.get(node);
    return `${node}\n${of.length} cables, ${of.filter((link) => !link.up).length} down\nbusiest ${((place?.busy ?? 0) * 100).toFixed(1)} % used`;
  }

  /** Crossbars by level: for tests. */
  counts(): Record<string, number> {
    const all: Record<string, number> = {};
    for (const place of this.places.values()) all[place.level] = (all[place.level] ?? 0) + 1;
    return all;
  }
}
