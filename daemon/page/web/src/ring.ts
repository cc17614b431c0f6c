// One supernode: its hubs in a circle, drawer by drawer, and the links between them. Links to other
// supernodes are short spokes outwards. Or a network of switches, each where the feed says.
import { type Curve, type Point, along } from "./curve";
import { type Hub, type Link, type Model } from "./model";
import { Palette, calm, fresh } from "./paint";

/** What is drawn over the circle; true if it moves. */
export type Over = (c: CanvasRenderingContext2D, palette: Palette, now: number) => boolean;

export type Target = { hub: string } | { link: string } | undefined;

// `turned`: it begins at the far end of the link.
interface Drawn extends Curve { link: Link; turned: boolean }

// By the bandwidth of the class: LL 24, D 10, LR 5 GB/s.
const WIDTH: Record<string, number> = { LL: 2.6, D: 1.8, LR: 1.1 };
const FLASH_MS = 2500;
const NEAR = 6;
const DOTS = 160;
// Of a network of switches.
const BORDER = 54;
const STEP_MOST = 120; // pixels between neighbours
const NAME = 8; // the height of one below a switch
const BEND = 0.15; // of the length of a link; less than to the next row
const LETTER = 0.6; // its width, of the size of its font

function distance(a: Point, b: Point): number {
  return Math.hypot(a.x - b.x, a.y - b.y);
}

function between(places: number[] | undefined, from: number, to: number): boolean {
  return (places ?? []).some((place) => place > Math.min(from, to) && place < Math.max(from, to));
}

export class Ring {
  supernode = 0;
  selected: Target;
  hovered: Target;
  private places = new Map<string, Point>();
  private curves: Drawn[] = [];
  private dots: Drawn[] = [];
  private base = document.createElement("canvas");
  private centre: Point = { x: 0, y: 0 };
  private radius = 0;
  private hubRadius = 10;
  // Of a network of switches: pixels between neighbours, and what stands in each row and column.
  private step = 0;
  private rows = new Map<number, number[]>();
  private columns = new Map<number, number[]>();
  private palette = new Palette();
  frames = 0;

  constructor(private canvas: HTMLCanvasElement, private model: Model, private over: Over) {}

  hubs(): Hub[] {
    return [...this.model.hubs.values()].filter((hub) => hub.supernode === this.supernode)
      .sort((a, b) => a.drawer - b.drawer || a.hub - b.hub);
  }

  /** After new data or another size: where everything is, and what does not move. */
  layOut(): void {
    const { width, height } = this.canvas.getBoundingClientRect();
    const hubs = this.hubs();
    this.palette = new Palette();
    this.centre = { x: width / 2, y: height / 2 };
    this.radius = Math.max(60, Math.min(width, height) / 2 - 62);
    if (this.model.ofSwitches) this.placeSwitches(width, height);
    else this.placeHubs(hubs);
    this.curves = [];
    const spokes = new Map<string, number>();
    for (const link of this.model.links.values()) {
      const [near, far] = [this.places.get(link.ends[0]), this.places.get(link.ends[1])];
      if (near && far) this.curves.push({ link, from: near, bend: this.bend(link, near, far), to: far, turned: false });
      else if (near || far) this.curves.push(this.spoke(link, near ? link.ends[0] : link.ends[1], spokes));
    }
    const busy = (link: Link) => Math.max(link.forward.recent, link.backward.recent);
    this.curves.sort((a, b) => busy(a.link) - busy(b.link));
    this.dots = this.curves.filter((curve) => curve.link.up && busy(curve.link) > 0.002).slice(-DOTS);
    this.drawBase();
  }

  private placeHubs(hubs: Hub[]): void {
    this.hubRadius = Math.max(5, Math.min(14, (Math.PI * this.radius) / Math.max(hubs.length, 8) / 1.5));
    const drawers = new Set(hubs.map((hub) => hub.drawer)).size;
    const gap = drawers > 1 ? 0.8 : 0; // places left free between drawers
    const places = hubs.length + drawers * gap;
    this.places.clear();
    hubs.forEach((hub, i) => {
      const order = [...new Set(hubs.map((h) => h.drawer))].indexOf(hub.drawer);
      const angle = ((i + order * gap + 0.5 + gap / 2) / places) * 2 * Math.PI - Math.PI / 2;
      this.places.set(hub.name, this.at(angle, 1));
    });
  }

  private placeSwitches(width: number, height: number): void {
    const spots = [...this.model.spots];
    const [wide, high] = [Math.max(...spots.map(([, at]) => at.x)), Math.max(...spots.map(([, at]) => at.y))];
    [this.rows, this.columns] = [new Map(), new Map()];
    for (const [, at] of spots) {
      this.rows.set(at.y, [...(this.rows.get(at.y) ?? []), at.x]);
      this.columns.set(at.x, [...(this.columns.get(at.x) ?? []), at.y]);
    }
    this.step = Math.min((width - 2 * BORDER) / Math.max(wide, 1), (height - 2 * BORDER) / Math.max(high, 1), STEP_MOST);
    this.hubRadius = Math.max(3, Math.min(14, this.step / 4));
    const [left, top] = [(width - wide * this.step) / 2, (height - high * this.step) / 2 - NAME];
    this.places.clear();
    for (const [name, at] of spots) this.places.set(name, { x: left + at.x * this.step, y: top + at.y * this.step });
  }

  private at(angle: number, share: number): Point {
    return { x: this.centre.x + Math.cos(angle) * this.radius * share, y: this.centre.y + Math.sin(angle) * this.radius * share };
  }

  private bend(link: Link, near: Point, far: Point): Point {
    if (this.model.ofSwitches) return this.bendPast(link, near, far);
    const share = link.kind === "LL" ? 0.25 : 0.45; // towards the centre
    const middle = { x: (near.x + far.x) / 2, y: (near.y + far.y) / 2 };
    return { x: middle.x + (this.centre.x - middle.x) * share, y: middle.y + (this.centre.y - middle.y) * share };
  }

  // Past the switches between the ends of a link along a row or column of them; else straight.
  private bendPast(link: Link, near: Point, far: Point): Point {
    const [a, b] = link.ends.map((end) => this.model.spots.get(end));
    const past = a && b && ((a.y === b.y && between(this.rows.get(a.y), a.x, b.x)) || (a.x === b.x && between(this.columns.get(a.x), a.y, b.y)));
    const [share, x, y] = [past ? Math.min(BEND, (0.9 * this.step) / distance(near, far)) : 0, (near.x + far.x) / 2, (near.y + far.y) / 2];
    return { x: x + share * (far.y - near.y), y: y - share * (far.x - near.x) };
  }

  private spoke(link: Link, hub: string, spokes: Map<string, number>): Drawn {
    const from = this.places.get(hub) ?? this.centre;
    const index = spokes.get(hub) ?? 0;
    spokes.set(hub, index + 1);
    const angle = Math.atan2(from.y - this.centre.y, from.x - this.centre.x) + (index - 3.5) * 0.018;
    const to = this.at(angle, 1 + 34 / this.radius);
    return { link, from, bend: { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 }, to, turned: hub !== link.ends[0] };
  }

  private drawBase(): void {
    const { width, height } = this.canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    this.base.width = Math.round(width * scale);
    this.base.height = Math.round(height * scale);
    const c = this.base.getContext("2d");
    if (!c) return;
    c.setTransform(scale, 0, 0, scale, 0, 0);
    const palette = this.palette;
    const focus = this.selected ?? this.hovered;
    const chosen = (link: Link) => focus !== undefined && ("link" in focus ? focus.link === link.name : link.ends.includes(focus.hub));
    const faint = focus !== undefined ? 0.25 : 1;
    for (const curve of this.curves) {
      if (curve.link.up && !chosen(curve.link)) this.stroke(c, curve, palette, faint);
    }
    for (const curve of this.curves) {
      if (curve.link.up && chosen(curve.link)) this.stroke(c, curve, palette, 1);
    }
    for (const curve of this.curves) if (!curve.link.up) this.stroke(c, curve, palette, 1);
    this.drawHubs(c, palette);
  }

  private stroke(c: CanvasRenderingContext2D, curve: Drawn, palette: Palette, alpha: number): void {
    const { link } = curve;
    const short = link.forward.lanesLost + link.backward.lanesLost > 0;
    const chosen = this.selected !== undefined && "link" in this.selected && this.selected.link === link.name;
    c.globalAlpha = alpha;
    c.lineWidth = (WIDTH[link.kind] ?? 1.4) + (chosen ? 2 : 0);
    c.setLineDash(!link.up ? [7, 5] : short ? [3, 2] : []);
    c.strokeStyle = !link.up ? palette.down : short ? palette.warn : palette.utilisation(Math.max(link.forward.recent, link.backward.recent));
    if (!link.up) c.lineWidth += 1;
    c.beginPath();
    c.moveTo(curve.from.x, curve.from.y);
    c.quadraticCurveTo(curve.bend.x, curve.bend.y, curve.to.x, curve.to.y);
    c.stroke();
    c.setLineDash([]);
    if (!link.up) this.cross(c, along(curve, 0.5), palette.down);
    c.globalAlpha = 1;
  }

  private cross(c: CanvasRenderingContext2D, at: Point, style: string): void {
    c.strokeStyle = style;
    c.lineWidth = 2.5;
    c.beginPath();
    c.moveTo(at.x - 5, at.y - 5);
    c.lineTo(at.x + 5, at.y + 5);
    c.moveTo(at.x + 5, at.y - 5);
    c.lineTo(at.x - 5, at.y + 5);
    c.stroke();
  }

  private drawHubs(c: CanvasRenderingContext2D, palette: Palette): void {
    c.textAlign = "center";
    c.textBaseline = "middle";
    const drawers = new Map<number, Point[]>();
    for (const hub of this.hubs()) {
      const place = this.places.get(hub.name);
      if (!place) continue;
      const links = this.model.linksOf(hub.name);
      const cut = links.length > 0 && links.every((link) => !link.up);
      const chosen = this.selected !== undefined && "hub" in this.selected && this.selected.hub === hub.name;
      c.beginPath();
      c.arc(place.x, place.y, this.hubRadius, 0, 2 * Math.PI);
      c.fillStyle = cut ? palette.down : palette.panel;
      c.fill();
      c.lineWidth = chosen ? 3 : 1.2;
      c.strokeStyle = chosen ? palette.accent : palette.dim;
      c.stroke();
      this.drawName(c, palette, hub, place, cut);
      this.drawRanks(c, palette, hub.name, place);
      drawers.set(hub.drawer, [...(drawers.get(hub.drawer) ?? []), place]);
    }
    c.font = '12px system-ui, "DejaVu Sans", sans-serif';
    c.fillStyle = palette.dim;
    for (const [drawer, places] of this.model.ofSwitches ? [] : drawers) {
      const angle = Math.atan2(
        places.reduce((sum, p) => sum + p.y - this.centre.y, 0), places.reduce((sum, p) => sum + p.x - this.centre.x, 0));
      const at = this.at(angle, 1 + 46 / this.radius);
      c.fillText(`d${drawer}`, at.x, at.y);
    }
  }

  // Inside, or below a switch whose name is longer.
  private drawName(c: CanvasRenderingContext2D, palette: Palette, hub: Hub, place: Point, cut: boolean): void {
    const name = this.model.ofSwitches ? hub.name : String(hub.hub);
    const size = Math.max(9, this.hubRadius);
    const inside = name.length * size * LETTER <= 2 * this.hubRadius || !this.model.ofSwitches;
    c.font = `${inside ? size : 9}px system-ui, "DejaVu Sans", sans-serif`;
    c.fillStyle = cut && inside ? palette.ground : palette.text;
    if (inside) c.fillText(name, place.x, place.y + 0.5);
    else if (this.step >= 3 * this.hubRadius) {
      c.strokeStyle = palette.ground;
      c.lineWidth = 3;
      c.strokeText(name, place.x, place.y + this.hubRadius + 7, this.step);
      c.fillText(name, place.x, place.y + this.hubRadius + 7, this.step);
    }
  }

  // Around the hub, a piece for each rank.
  private drawRanks(c: CanvasRenderingContext2D, palette: Palette, hub: string, place: Point): void {
    const states = this.model.ranks.get(hub)?.states ?? "";
    const piece = (2 * Math.PI) / states.length;
    const gap = states.length > 1 ? Math.min(0.12, piece / 6) : 0;
    c.lineWidth = 4;
    [...states].forEach((state, i) => {
      c.strokeStyle = palette.rank(state);
      c.beginPath();
      c.arc(place.x, place.y, this.hubRadius + 4, i * piece - Math.PI / 2 + gap, (i + 1) * piece - Math.PI / 2 - gap);
      c.stroke();
    });
  }

  /** One frame; false if nothing moves. */
  draw(now: number): boolean {
    const target = fresh(this.canvas);
    if (!target) return false;
    const { c, width, height } = target;
    ++this.frames;
    c.drawImage(this.base, 0, 0, width, height);
    const palette = this.palette;
    let moving = this.over(c, palette, now);
    for (const curve of this.curves) moving = this.flash(c, along(curve, 0.5), curve.link.flash, now, palette.down, 8, []) || moving;
    for (const [name, hub] of this.model.hubCounts) {
      const at = this.places.get(name);
      if (!at) continue;
      moving = this.flash(c, at, hub.rerouted, now, palette.accent, this.hubRadius + 9, [6, 4]) || moving;
      moving = this.flash(c, at, hub.lost, now, palette.down, this.hubRadius + 4, []) || moving;
    }
    if (calm.matches || this.model.state !== "running") return moving;
    c.fillStyle = palette.text;
    c.globalAlpha = 0.7;
    for (const curve of this.dots) this.drawDots(c, curve, now);
    c.globalAlpha = 1;
    return moving || this.dots.length > 0;
  }

  // A circle that grows and fades since `began`, in wall milliseconds; false if it is over.
  private flash(c: CanvasRenderingContext2D, at: Point, began: number, now: number, style: string, radius: number, dash: number[]): boolean {
    const age = Math.max(0, now - began);
    if (began === 0 || age > FLASH_MS) return false;
    c.globalAlpha = calm.matches ? 1 : 1 - age / FLASH_MS;
    c.strokeStyle = style;
    c.lineWidth = 3;
    c.setLineDash(dash);
    c.beginPath();
    c.arc(at.x, at.y, radius + (calm.matches ? 6 : age / 120), 0, 2 * Math.PI);
    c.stroke();
    c.setLineDash([]);
    c.globalAlpha = 1;
    return true;
  }

  // A dot for each way: faster where more of the link is used.
  private drawDots(c: CanvasRenderingContext2D, curve: Drawn, now: number): void {
    const speed = (share: number) => 0.00025 + 0.0009 * share;
    const phase = (curve.from.x * 7 + curve.to.y * 13) % 1;
    const { forward, backward } = curve.link;
    for (const way of [forward, backward]) {
      if (way.recent <= 0.002) continue;
      const t = 0.08 + 0.84 * ((now * speed(way.recent) + phase) % 1); // between the hubs
      const at = along(curve, (way === backward) === curve.turned ? t : 1 - t);
      c.fillRect(at.x - 1.2, at.y - 1.2, 2.4, 2.4);
    }
  }

  /** Where a hub is drawn, in CSS pixels. */
  placeOf(hub: string): Point | undefined {
    return this.places.get(hub);
  }

  get middle(): Point {
    return this.centre;
  }

  find(x: number, y: number): Target {
    const at = { x, y };
    for (const [name, place] of this.places) if (distance(place, at) <= this.hubRadius + 2) return { hub: name };
    let best = NEAR;
    let found: Target;
    for (const curve of this.curves) {
      for (let t = 0.04; t < 1; t += 0.02) {
        const d = distance(along(curve, t), at) - (curve.link.up ? 0 : 1);
        if (d < best) [best, found] = [d, { link: curve.link.name }];
      }
    }
    return found;
  }

  /** Where a link is drawn, in CSS pixels: for tests and the keyboard. */
  middleOf(link: string): Point | undefined {
    const curve = this.curves.find((candidate) => candidate.link.name === link);
    return curve && along(curve, 0.5);
  }
}
