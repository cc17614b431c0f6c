// A Cell blade: the rings of its two buses with their units, and what moved over them lately.
import { type Details } from "./details";
import { type DmaMove, type Flights, type SpeFlight, commandsOf } from "./flight";
import { count, counted, percent, scaled, virtualTime } from "./format";
import { type JsonObject, num } from "./json";
import { Palette, calm, fresh } from "./paint";

const CELLS = 2;
// In the order in which the rings pass them (emulator/cell/eib.h).
const UNITS = ["PPE", "SPE1", "SPE3", "SPE5", "SPE7", "IOIF1", "IOIF0", "SPE6", "SPE4", "SPE2", "SPE0", "MIC"];
const RINGS = 4;
const SPES = 8; // of a Cell
const BUS_BYTES_PER_PS = 0.2048; // 128 bytes every 0.625 ns
const FONT = '12px system-ui, "DejaVu Sans", sans-serif';

function angleOf(unit: number): number {
  return (unit / UNITS.length) * 2 * Math.PI - Math.PI / 2;
}

function unitOf(spe: number): number {
  return UNITS.indexOf(`SPE${spe % SPES}`);
}

/** What a blade did between the last two looks. */
export interface BladeLately {
  passed: number; // virtual picoseconds; 0: nothing to compare with
  of: (name: string) => number;
  total: (name: string) => number;
}

export function bladeLately(details: Details): BladeLately {
  const now: JsonObject = details.counted?.blade ?? {};
  const before: JsonObject = details.earlier?.blade ?? {};
  const passed = details.counted && details.earlier ? details.counted.at - details.earlier.at : 0;
  return { passed, of: (name) => (passed > 0 ? num(now[name]) - num(before[name]) : 0), total: (name) => num(now[name]) };
}

interface Place { x: number; y: number }

export class BladeView {
  /** Drawn in the last frame, one for each command under way: for tests. */
  dots = 0;

  constructor(private canvas: HTMLCanvasElement, private details: Details, private flights: Flights) {}

  /** Bytes by DMA since the look before, and so far: for tests. */
  lately(): { dma: number; sum: number } {
    const lately = bladeLately(this.details);
    return { dma: lately.of("dma_bytes"), sum: lately.total("dma_bytes") };
  }

  /** One frame; false if nothing moves. */
  draw(now: number, running: boolean): boolean {
    const target = fresh(this.canvas);
    if (!target) return false;
    const { c, width, height } = target;
    const palette = new Palette();
    const lately = bladeLately(this.details);
    c.textBaseline = "middle";
    c.textAlign = "left";
    c.font = `bold ${FONT}`;
    c.fillStyle = palette.text;
    c.fillText(`${this.details.hub}: element interconnect buses of its Cells`, 12, 15);
    const [x, y] = [Math.min(width / 4 - 80, 330), Math.min(height / 2 - 92, 250)];
    const middle = 40 + y + 34;
    const moves = running && !calm.matches;
    let moving = false;
    this.dots = 0;
    const spes = this.flights.of(this.details.hub).spes;
    for (let cell = 0; cell < CELLS; ++cell) {
      const centre = (width / 4) * (1 + 2 * cell);
      moving = this.drawCell(c, palette, lately, cell, { x: centre, y: middle }, x, y, moves ? now : 0, spes) || moving;
    }
    c.fillStyle = palette.accent;
    for (const spe of spes) {
      for (const move of spe.moves) this.drawMove(c, spe.spe, move, (cell) => ({ x: (width / 4) * (1 + 2 * cell), y: middle }), x, y, moves ? now : 0);
    }
    moving ||= this.dots > 0;
    this.drawLink(c, palette, lately, width / 2, middle);
    this.drawNumbers(c, palette, lately, middle + y + 44);
    return moving && moves;
  }

  private drawCell(c: CanvasRenderingContext2D, palette: Palette, lately: BladeLately, cell: number,
    at: Place, x: number, y: number, now: number, spes: SpeFlight[]): boolean {
    const bytes = lately.of(`eib_bytes_cell${cell}`);
    const used = lately.passed > 0 ? bytes / lately.passed / BUS_BYTES_PER_PS : 0;
    for (let ring = 0; ring < RINGS; ++ring) {
      const inset = 24 + ring * 8;
      c.strokeStyle = palette.utilisation(used);
      c.lineWidth = 3;
      c.beginPath();
      c.ellipse(at.x, at.y, x - inset, y - inset, 0, 0, 2 * Math.PI);
      c.stroke();
      if (bytes === 0) continue;
      c.fillStyle = palette.text;
      const way = ring < RINGS / 2 ? 1 : -1; // two rings each way
      for (let dot = 0; dot < 3; ++dot) {
        const angle = way * now * (0.0004 + 0.002 * used) + (dot * 2 * Math.PI) / 3 + ring;
        c.fillRect(at.x + Math.cos(angle) * (x - inset) - 1.6, at.y + Math.sin(angle) * (y - inset) - 1.6, 3.2, 3.2);
      }
    }
    c.font = FONT;
    c.textAlign = "center";
    UNITS.forEach((name, unit) => {
      const angle = angleOf(unit);
      const [left, top] = [at.x + Math.cos(angle) * x, at.y + Math.sin(angle) * y];
      const spe = spes.find((one) => Math.floor(one.spe / SPES) === cell && unitOf(one.spe) === unit);
      const half = spe ? 31 : 24;
      c.fillStyle = palette.panel;
      c.fillRect(left - half, top - 11, 2 * half, 22);
      c.strokeStyle = name.startsWith("SPE") ? palette.accent : palette.dim;
      c.lineWidth = 1.4;
      c.strokeRect(left - half, top - 11, 2 * half, 22);
      c.fillStyle = palette.text;
      c.fillText(spe ? `${name} ${commandsOf(spe)}+${spe.queued}` : name, left, top + 0.5, 2 * half - 4);
    });
    const waits = lately.of(`eib_transfers_cell${cell}`);
    const lines = [`Cell ${cell}`, `${percent(used)} of the bus`, `${scaled(lately.passed > 0 ? (bytes / lately.passed) * 1e12 : 0, "B/s")}`,
      waits > 0 ? `wait ${virtualTime(lately.of(`eib_wait_ps_cell${cell}`) / waits)}` : "no transfers"];
    lines.forEach((words, i) => c.fillText(words, at.x, at.y + (i - 1.5) * 16, 2 * x - 120));
    c.textAlign = "left";
    return bytes > 0;
  }

  // Around the rings within a Cell, the shorter way as the bus does; straight to the other Cell.
  private drawMove(c: CanvasRenderingContext2D, spe: number, move: DmaMove, centreOf: (cell: number) => Place, x: number, y: number, now: number): void {
    const cell = Math.floor(spe / SPES);
    const [own, far] = [angleOf(unitOf(spe)), angleOf(move.unit)];
    const turn = Math.atan2(Math.sin(far - own), Math.cos(far - own));
    const on = (of: number, angle: number): Place => {
      const centre = centreOf(of);
      return { x: centre.x + Math.cos(angle) * (x - 16), y: centre.y + Math.sin(angle) * (y - 16) };
    };
    const [from, to] = [on(cell, own), on(move.cell, far)];
    for (let i = 0; i < move.commands; ++i) {
      const way = (now * 0.0006 + (i + 0.5) / move.commands) % 1;
      const share = move.out ? way : 1 - way;
      const at = move.cell === cell ? on(cell, own + share * turn)
        : { x: from.x + share * (to.x - from.x), y: from.y + share * (to.y - from.y) };
      c.beginPath();
      c.arc(at.x, at.y, 3.4, 0, 2 * Math.PI);
      c.fill();
    }
    this.dots += move.commands;
  }

  private drawLink(c: CanvasRenderingContext2D, palette: Palette, lately: BladeLately, x: number, y: number): void {
    c.font = FONT;
    c.textAlign = "center";
    c.fillStyle = palette.dim;
    const words = (cell: number) => scaled(lately.passed > 0 ? (lately.of(`link_bytes_cell${cell}`) / lately.passed) * 1e12 : 0, "B/s");
    c.fillText("chip link", x, y - 28);
    c.fillText(`${words(0)} \u2192`, x, y - 8);
    c.fillText(`\u2190 ${words(1)}`, x, y + 12);
    c.textAlign = "left";
  }

  private drawNumbers(c: CanvasRenderingContext2D, palette: Palette, lately: BladeLately, y: number): void {
    const facts: [string, string][] = [
      ["DMA commands", count(lately.of("dma_commands"))], ["DMA", `${count(lately.of("dma_bytes"))} B`],
      ["signals", count(lately.of("signals"))], ["mailbox messages", count(lately.of("mailbox_messages"))],
      ["atomics", count(lately.of("atomics"))],
    ];
    c.font = FONT;
    c.fillStyle = palette.text;
    const span = lately.passed > 0 ? `In the last ${virtualTime(lately.passed)} (virtual): ` : "Waits for a second look: ";
    c.fillText(span + facts.map(([name, value]) => `${value} ${name === "DMA" ? "by DMA" : name}`).join(", "), 12, y, this.canvas.clientWidth - 24);
    c.fillStyle = palette.dim;
    c.fillText(`So far: ${count(lately.total("dma_commands"))} DMA commands with ${count(lately.total("dma_bytes"))} B, `
      + `${count(lately.total("operations"))} operations of programs.`, 12, y + 19, this.canvas.clientWidth - 24);
    const spes = this.flights.of(this.details.hub).spes;
    const total = (of: (spe: SpeFlight) => number) => spes.reduce((sum, spe) => sum + of(spe), 0);
    c.fillStyle = palette.text;
    c.fillText(`In flight: ${counted(total(commandsOf), "DMA command")} under way (dots; the first number at an SPE), `
      + `${count(total((spe) => spe.queued))} waiting in queues (the second).`, 12, y + 38, this.canvas.clientWidth - 24);
  }
}
