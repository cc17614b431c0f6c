// The use of links by supernode, of a machine with more links than the feed tells one by one.
import { type Json, type JsonObject, list, num, object, text } from "./json";

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const VALUES = new Uint8Array(128);
[...DIGITS].forEach((digit, value) => (VALUES[digit.charCodeAt(0)] = value));
const STEPS = 4095;

/** At row * size + column: the outputs of the supernode of the row that lead to that of the column. */
export class Cells {
  readonly size: number;
  readonly outputs: Int32Array;
  readonly used: Float32Array; // share of virtual time, mean over the outputs
  readonly down: Int32Array; // outputs that are down
  private readonly runs: Json[];
  private told = new Map<string, Json>();
  /** Of the row that was told last. */
  at = 0;
  changes = 0;

  constructor(matrix: JsonObject) {
    this.size = num(matrix["supernodes"]);
    const cells = this.size * this.size;
    [this.outputs, this.used, this.down] = [new Int32Array(cells), new Float32Array(cells), new Int32Array(cells)];
    this.runs = list(matrix["outputs"]);
    let next = 0;
    for (const run of this.runs) {
      const [value, times] = list(run).map(num);
      this.outputs.fill(value ?? 0, next, (next += times ?? 0));
    }
  }

  take(matrix: JsonObject): void {
    this.at = num(matrix["virtual_time"]);
    ++this.changes;
    for (const [name, value] of Object.entries(object(matrix["rows"]))) {
      this.told.set(name, value);
      const [cells, down] = list(value);
      const digits = text(cells);
      const first = Number(name) * this.size;
      for (let i = 0; i < this.size; ++i) {
        const high = VALUES[digits.charCodeAt(2 * i)] ?? 0;
        this.used[first + i] = (64 * high + (VALUES[digits.charCodeAt(2 * i + 1)] ?? 0)) / STEPS;
      }
      this.down.fill(0, first, first + this.size);
      for (const pair of list(down)) {
        const [column, outputs] = list(pair).map(num);
        this.down[first + (column ?? 0)] = outputs ?? 0;
      }
    }
  }

  /** Outputs, those that are down, and their mean use. */
  sum(row?: number): { outputs: number; down: number; used: number } {
    const [from, to] = row === undefined ? [0, this.used.length] : [row * this.size, (row + 1) * this.size];
    let [outputs, down, used] = [0, 0, 0];
    for (let i = from; i < to; ++i) {
      const here = this.outputs[i] ?? 0;
      outputs += here;
      down += this.down[i] ?? 0;
      used += here * (this.used[i] ?? 0);
    }
    return { outputs, down, used: outputs > 0 ? used / outputs : 0 };
  }

  snapshot(): JsonObject {
    return { virtual_time: this.at, supernodes: this.size, outputs: this.runs, rows: Object.fromEntries(this.told) };
  }
}
