// The whole machine: a matrix of supernodes. A cell is the links from the supernode of its row to that
// of its column, one on the diagonal the links within; a click opens the supernode of its row.
import { type Cells } from "./cells";
import { type Link, type Model, parseHub } from "./model";
import { Palette, fresh, utilisationStep } from "./paint";

export interface Cell {
  row: number;
  column: number;
  links: number;
  down: number;
  recent: number; // mean utilisation of the way from row to column; within, of both
}

/** A pixel of this colour (#rrggbb). */
function pixel(style: string): number {
  const value = parseInt(style.slice(1), 16);
  const bytes = new Uint8Array([value >> 16, value >> 8, value, 255]);
  return new Uint32Array(bytes.buffer)[0] ?? 0;
}

const MARGIN = 44;

export class Matrix {
  private cells = new Map<string, Cell>();
  private size = 1;
  private cell = 1;
  private image = document.createElement("canvas"); // of a machine told by supernode: a pixel a cell
  private painted = ""; // what it shows

  constructor(private canvas: HTMLCanvasElement, private model: Model) {}

  layOut(): void {
    this.cells.clear();
    this.size = Math.max(1, this.model.supernodes);
    for (const link of this.model.links.values()) this.add(link);
    const { width, height } = this.canvas.getBoundingClientRect();
    this.cell = Math.max(1, (Math.min(width, height) - 2 * MARGIN) / this.size);
  }

  private add(link: Link): void {
    const [near, far] = [parseHub(link.ends[0]), parseHub(link.ends[1])];
    if (!near || !far) return;
    const within = near.supernode === far.supernode;
    const mean = (link.forward.recent + link.backward.recent) / 2;
    const ways = within ? [{ a: near, b: far, busy: mean }]
      : [{ a: near, b: far, busy: link.forward.recent }, { a: far, b: near, busy: link.backward.recent }];
    for (const { a, b, busy } of ways) {
      const key = `${a.supernode},${b.supernode}`;
      const cell = this.cells.get(key) ?? { row: a.supernode, column: b.supernode, links: 0, down: 0, recent: 0 };
      cell.recent = (cell.recent * cell.links + busy) / (cell.links + 1);
      cell.links += 1;
      cell.down += link.up ? 0 : 1;
      this.cells.set(key, cell);
    }
  }

  private origin(width: number, height: number): [number, number] {
    const side = this.cell * this.size;
    return [Math.max(MARGIN, (width - side) / 2), Math.max(MARGIN - 16, (height - side) / 2)];
  }

  draw(): void {
    const target = fresh(this.canvas);
    if (!target) return;
    const { c, width, height } = target;
    const palette = new Palette();
    const [left, top] = this.origin(width, height);
    if (this.model.cells) {
      this.paint(this.model.cells, palette);
      c.imageSmoothingEnabled = false;
      c.drawImage(this.image, left, top, this.cell * this.size, this.cell * this.size);
      this.drawNames(c, palette, left, top);
      return;
    }
    const gap = this.cell > 8 ? 1.5 : 0;
    for (const cell of this.cells.values()) {
      const [x, y] = [left + cell.column * this.cell, top + cell.row * this.cell];
      c.fillStyle = palette.utilisation(cell.recent);
      c.fillRect(x, y, this.cell - gap, this.cell - gap);
      if (cell.down === 0) continue;
      c.strokeStyle = palette.down;
      c.lineWidth = Math.min(3, this.cell / 3);
      c.strokeRect(x + 2, y + 2, this.cell - gap - 4, this.cell - gap - 4);
      if (this.cell > 40) this.drawCount(c, palette, cell, x, y);
    }
    this.drawNames(c, palette, left, top);
  }

  // Colour by colour as the palette's steps; cells with a link down have the colour of those.
  private paint(cells: Cells, palette: Palette): void {
    const shown = `${cells.changes} ${cells.at} ${palette.ground}`;
    if (shown === this.painted) return;
    this.painted = shown;
    this.image.width = this.image.height = cells.size;
    const c = this.image.getContext("2d");
    if (!c) return;
    const steps = Uint32Array.from(palette.steps.map(pixel));
    const [none, down] = [pixel(palette.ground), pixel(palette.down)];
    const image = c.createImageData(cells.size, cells.size);
    const pixels = new Uint32Array(image.data.buffer);
    for (let i = 0; i < pixels.length; ++i) {
      pixels[i] = (cells.outputs[i] ?? 0) === 0 ? none
        : (cells.down[i] ?? 0) > 0 ? down : steps[utilisationStep(cells.used[i] ?? 0)] ?? none;
    }
    c.putImageData(image, 0, 0);
  }

  private drawCount(c: CanvasRenderingContext2D, palette: Palette, cell: Cell, x: number, y: number): void {
    const middle = y + this.cell / 2;
    c.fillStyle = palette.ground;
    c.fillRect(x + 4, middle - 9, this.cell - 9, 18);
    c.fillStyle = palette.down;
    c.font = '11px system-ui, "DejaVu Sans", sans-serif';
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.fillText(`${cell.down} down`, x + this.cell / 2, middle);
  }

  private drawNames(c: CanvasRenderingContext2D, palette: Palette, left: number, top: number): void {
    const every = Math.max(1, Math.ceil(34 / this.cell));
    c.fillStyle = palette.dim;
    c.font = '12px system-ui, "DejaVu Sans", sans-serif';
    c.textBaseline = "middle";
    for (let i = 0; i < this.size; i += every) {
      const middle = (i + 0.5) * this.cell;
      c.textAlign = "right";
      c.fillText(`sn${i}`, left - 6, top + middle);
      c.textAlign = "center";
      c.fillText(`sn${i}`, left + middle, top - 10);
    }
  }

  find(x: number, y: number): Cell | undefined {
    const { width, height } = this.canvas.getBoundingClientRect();
    const [left, top] = this.origin(width, height);
    const [row, column] = [Math.floor((y - top) / this.cell), Math.floor((x - left) / this.cell)];
    const cells = this.model.cells;
    if (!cells) return this.cells.get(`${row},${column}`);
    if (row < 0 || column < 0 || row >= cells.size || column >= cells.size) return undefined;
    const i = row * cells.size + column;
    return { row, column, links: cells.outputs[i] ?? 0, down: cells.down[i] ?? 0, recent: cells.used[i] ?? 0 };
  }

  /** Where the middle of a cell is, in CSS pixels: for tests. */
  placeOf(row: number, column: number): { x: number; y: number } {
    const { width, height } = this.canvas.getBoundingClientRect();
    const [left, top] = this.origin(width, height);
    return { x: left + (column + 0.5) * this.cell, y: top + (row + 0.5) * this.cell };
  }
}
