// One hub: its 56 ports with their virtual channels, and its CAU with the trees that it is part of.
import { type Counted, type Details } from "./details";
import { count, percent, virtualTime } from "./format";
import { list, num, object, text } from "./json";
import { Palette, fresh } from "./paint";
import { type Tree, type Trees, shortName, treeColour } from "./trees";

export interface Channel {
  packets: number;
  used: number | undefined; // share of the link lately; undefined: not known
  stalled: number; // share of virtual time lately in which only a credit was missing
  held: number; // the most flits that its buffer held at once
}

export interface Port {
  number: number;
  name: string;
  peer: string; // hub or blade; "": nothing is plugged in, or it is no port of a link
  link: string; // "": no link of the fabric
  up: boolean;
  channels: Channel[];
}

interface Box { port: Port; x: number; y: number; width: number; height: number }

// First port and number of ports of each class, as docs/semantics.md has them.
const CLASSES: [string, number, number][] = [["LL", 0, 7], ["LR", 7, 24], ["D", 31, 16], ["HFI", 47, 8]];
const PORTS = 56;
const LINK_PORTS = 47; // those before the HFI's
const ROWS = 19;
const COLUMNS = 3;
const SIDE = 190; // for the CAU
const FONT = '11px system-ui, "DejaVu Sans", sans-serif';

export function portName(number: number): string {
  const found = CLASSES.find(([, first, size]) => number >= first && number < first + size);
  return found ? `${found[0]}${number - found[1]}` : "service";
}

function vcsOf(number: number): number {
  return number < 31 ? 3 : number < LINK_PORTS ? 2 : 1;
}

// `flitTime` 0: nothing was sent so far; undefined: not known.
function channels(number: number, now: Counted, before: Counted | undefined, flitTime: number | undefined): Channel[] {
  const passed = before ? now.at - before.at : 0;
  const find = (counted: Counted | undefined, vc: number) =>
    object(list(counted?.ports.get(number)?.["vcs"]).map(object).find((one) => num(one["vc"]) === vc));
  return Array.from({ length: vcsOf(number) }, (_, vc) => {
    const [a, b] = [find(before, vc), find(now, vc)];
    const grown = (field: string) => num(b[field]) - num(a[field]);
    const share = (time: number) => (passed > 0 ? Math.min(1, Math.max(0, time / passed)) : 0);
    return {
      packets: num(b["packets"]), held: num(b["most_held"]), stalled: share(grown("credit_stall_ps")),
      used: flitTime === undefined ? undefined : share(grown("flits") * flitTime),
    };
  });
}

/** All ports of the hub that `details` follows. */
export function portsOf(details: Details): Port[] {
  const now = details.counted;
  if (!now) return [];
  const links = new Map(details.links.map((link) => {
    const outward = text(link["name"]).startsWith(`${details.hub}:`);
    return [num(object(link[outward ? "forward" : "backward"])["port"]), { link, outward }];
  }));
  return Array.from({ length: PORTS }, (_, number) => {
    const found = links.get(number);
    const ends = text(found?.link["ends"]).split("/");
    // What is used of a link says how long a flit takes on it.
    const way = found?.outward ? "forward" : "backward";
    const flits = num(object(found?.link[way])["flits"]);
    const sending = flits > 0 ? (num(found?.link[`utilisation_${way}`]) * now.linksAt) / flits : 0;
    return {
      number, name: portName(number), link: text(found?.link["name"]), up: found ? found.link["up"] === true : true,
      peer: found ? ends[found.outward ? 1 : 0] ?? "" : "",
      channels: channels(number, now, details.earlier, found ? sending : undefined),
    };
  });
}

export class HubView {
  private boxes: Box[] = [];

  constructor(private canvas: HTMLCanvasElement, private details: Details, private trees: Trees) {}

  draw(selectedLink: string | undefined): void {
    const target = fresh(this.canvas);
    if (!target) return;
    const { c, width, height } = target;
    const palette = new Palette();
    const ports = portsOf(this.details);
    this.boxes = [];
    c.textBaseline = "middle";
    c.textAlign = "left";
    c.fillStyle = palette.text;
    c.font = `bold ${FONT}`;
    c.fillText(ports.length > 0 ? `${this.details.hub}: ${PORTS} ports by virtual channel` : `${this.details.hub}: no counters yet`, 12, 15);
    const column = (width - SIDE - 24) / COLUMNS;
    const row = (height - 66) / ROWS;
    ports.forEach((port, i) => {
      const box = { port, x: 12 + Math.floor(i / ROWS) * column, y: 28 + (i % ROWS) * row, width: column - 12, height: row - 3 };
      this.boxes.push(box);
      this.drawPort(c, palette, box, port.link !== "" && port.link === selectedLink);
    });
    this.drawLegend(c, palette, height - 18);
    this.drawCau(c, palette, width - SIDE, height);
  }

  private drawPort(c: CanvasRenderingContext2D, palette: Palette, box: Box, selected: boolean): void {
    const { port, x, y, width, height } = box;
    const middle = y + height / 2;
    c.fillStyle = selected ? palette.line : palette.panel;
    c.fillRect(x, y, width, height);
    c.font = FONT;
    c.fillStyle = port.up ? palette.text : palette.down;
    c.fillText(port.name, x + 4, middle);
    c.fillStyle = port.up ? palette.dim : palette.down;
    const unplugged = port.peer === "" && port.number < LINK_PORTS;
    c.fillText(!port.up ? "DOWN" : unplugged ? "no cable" : shortName(port.peer, this.details.hub), x + 46, middle, 50);
    if (unplugged) return;
    const [left, right] = [x + 98, x + width - 56];
    const bar = Math.max(2, Math.min(9, height / port.channels.length - 1.5));
    port.channels.forEach((vc, i) => {
      if (vc.used === undefined) return;
      const top = middle + (i - port.channels.length / 2) * (bar + 1.5);
      const room = Math.max(0, right - left);
      c.fillStyle = palette.line;
      c.fillRect(left, top, room, bar);
      c.fillStyle = palette.accent;
      c.fillRect(left, top, room * vc.used, bar);
      c.fillStyle = palette.down;
      c.fillRect(left + room * vc.used, top, room * Math.min(1 - vc.used, vc.stalled), bar);
    });
    c.fillStyle = palette.dim;
    c.textAlign = "right";
    c.fillText(count(port.channels.reduce((sum, vc) => sum + vc.packets, 0)), x + width - 4, middle, 52);
    c.textAlign = "left";
  }

  private drawLegend(c: CanvasRenderingContext2D, palette: Palette, y: number): void {
    c.font = FONT;
    let x = 12;
    for (const [style, words] of [[palette.accent, "sent, share of the link"], [palette.down, "ready, no credit"]] as const) {
      c.fillStyle = style;
      c.fillRect(x, y - 5, 14, 9);
      c.fillStyle = palette.dim;
      c.fillText(words, x + 19, y);
      x += c.measureText(words).width + 36;
    }
    c.fillText("one bar per virtual channel; right: packets sent so far", x, y);
  }

  private drawCau(c: CanvasRenderingContext2D, palette: Palette, x: number, height: number): void {
    const trees = this.trees.of(this.details.hub);
    c.fillStyle = palette.text;
    c.font = `bold ${FONT}`;
    c.fillText(`CAU: ${trees.length === 0 ? "in no tree" : trees.length === 1 ? "in 1 tree" : `in ${trees.length} trees`}`, x, 15);
    const room = Math.max(120, Math.min(190, (height - 50) / Math.max(1, trees.length)));
    trees.slice(0, Math.floor((height - 40) / room)).forEach((tree, i) => this.drawTree(c, palette, tree, x, 34 + i * room, room));
  }

  // The hub between what is above it in the tree and what is below.
  private drawTree(c: CanvasRenderingContext2D, palette: Palette, tree: Tree, x: number, y: number, height: number): void {
    const hub = this.details.hub;
    const here = tree.vertices.findIndex((vertex) => vertex.node === hub);
    const parent = tree.vertices[here]?.parent;
    const above = parent === undefined ? undefined : tree.vertices[parent];
    const below = tree.vertices.filter((vertex) => vertex.parent === here);
    const style = treeColour(tree.id, palette);
    c.font = FONT;
    c.fillStyle = palette.text;
    c.fillText(`${tree.name}: ${tree.state}, ${tree.vertices.length} CAUs`, x, y, SIDE - 12);
    c.fillStyle = palette.dim;
    c.fillText(this.trees.wordsOf(tree, hub), x, y + 14, SIDE - 12);
    const centre = { x: x + SIDE / 2 - 10, y: y + height / 2 + 6 };
    const node = (name: string, at: { x: number; y: number }, participant: boolean, under: boolean) => {
      c.beginPath();
      c.arc(at.x, at.y, 6, 0, 2 * Math.PI);
      c.fillStyle = participant ? style : palette.ground;
      c.fill();
      c.strokeStyle = style;
      c.lineWidth = 1.6;
      c.stroke();
      c.fillStyle = palette.dim;
      c.textAlign = under ? "center" : "left";
      c.fillText(name, under ? at.x : at.x + 11, under ? at.y + 16 : at.y, under ? 48 : 90);
      c.textAlign = "left";
    };
    const edge = (to: { x: number; y: number }) => {
      c.strokeStyle = style;
      c.lineWidth = 1.6;
      c.beginPath();
      c.moveTo(centre.x, centre.y);
      c.lineTo(to.x, to.y);
      c.stroke();
    };
    const top = { x: centre.x, y: y + 34 };
    const shown = below.slice(0, 4);
    const places = shown.map((_, i) => ({ x: centre.x + (i - (shown.length - 1) / 2) * 50, y: y + height - 44 }));
    if (above) edge(top);
    places.forEach(edge);
    if (above) node(shortName(above.node, hub), top, above.participant, false);
    shown.forEach((vertex, i) => node(shortName(vertex.node, hub), places[i] ?? centre, vertex.participant, true));
    node(above ? "this hub" : "this hub, top", centre, tree.vertices[here]?.participant ?? false, false);
    if (below.length > shown.length) c.fillText(`and ${below.length - shown.length} more below`, x, y + height - 14);
  }

  find(x: number, y: number): Port | undefined {
    return this.boxes.find((box) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height)?.port;
  }

  /** Where a port is drawn, in CSS pixels: for tests. */
  middleOf(name: string): { x: number; y: number } | undefined {
    const box = this.boxes.find((one) => one.port.name === name);
    return box && { x: box.x + 20, y: box.y + box.height / 2 };
  }
}

export function portTip(port: Port): string {
  const lines = port.channels.map((vc, i) =>
    `VC ${i}: ${vc.used === undefined ? "" : `${percent(vc.used)} used, `}${percent(vc.stalled)} without credit, `
    + `${count(vc.packets)} packets, buffer at most ${count(vc.held)} flits`);
  return [`${port.name}${port.link ? `  ${port.link}` : ""}  ${port.up ? "" : "DOWN"}`, ...lines].join("\n");
}

export function ageOf(details: Details): string {
  const [now, before] = [details.counted, details.earlier];
  return now && before ? `shares of the last ${virtualTime(now.at - before.at)} (virtual)` : "";
}
