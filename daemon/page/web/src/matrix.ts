// The whole machine: a matrix of supernodes. A cell is the D links between two of them, one on the
// diagonal the links within; a click opens the supernode of its row.
import { type Link, type Model, parseHub } from "./model";
import { Palette, fresh } from "./paint";

export interface Cell {
  row: number;
  column: number;
  links: number;
  down: number;
  recent: number; // mean utilisation of the busier way
}

const MARGIN = 44;

export class Matrix {
  private cells = new Map<string, Cell>();
  private size = 1;
  private cell = 1;

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
    const pairs = near.supernode === far.supernode ? [[near, far]] : [[near, far], [far, near]];
    for (const [a, b] of pairs) {
      if (!a || !b) continue;
      const key = `${a.supernode},${b.supernode}`;
      const cell = this.cells.get(key) ?? { row: a.supernode, column: b.supernode, links: 0, down: 0, recent: 0 };
      const busy = Math.max(link.forward.recent, link.backward.recent);
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
    return this.cells.get(`${Math.floor((y - top) / this.cell)},${Math.floor((x - left) / this.cell)}`);
  }
}
