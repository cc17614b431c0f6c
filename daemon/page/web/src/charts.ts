// Small line charts over recent virtual time, with the events as marks.
import { type FabricEvent, type Sample } from "./model";
import { Palette, fresh } from "./paint";

export interface Series {
  name: string;
  of: (sample: Sample) => number;
  dashed?: boolean;
}

const LEFT = 8;
const RIGHT = 92;
const BOTTOM = 15;
const HEADROOM = 1.08;
const LABEL = 13; // height of a line of text

/** Heights for labels that are wanted at `wanted`, from above: in this order, not above `top`, not
 * below `bottom`, and none over another. */
export function labelPlaces(wanted: number[], top: number, bottom: number): number[] {
  const places: number[] = [];
  for (const y of wanted) places.push(Math.max(y, (places[places.length - 1] ?? top - LABEL) + LABEL));
  for (let i = places.length - 1, most = bottom; i >= 0; --i, most -= LABEL) places[i] = Math.min(places[i] ?? most, most);
  return places;
}

export function drawChart(
  canvas: HTMLCanvasElement, samples: Sample[], events: FabricEvent[], series: Series[],
  show: (value: number) => string, time: (ps: number) => string, moment?: number,
): void {
  const target = fresh(canvas);
  if (!target) return;
  const { c, width, height } = target;
  const palette = new Palette();
  const [first, last] = [samples[0], samples[samples.length - 1]];
  c.font = '11px system-ui, "DejaVu Sans", sans-serif';
  c.fillStyle = palette.dim;
  if (!first || !last || first === last) {
    c.fillText("no data yet", LEFT, height / 2);
    return;
  }
  const highest = Math.max(...samples.flatMap((s) => series.map((line) => line.of(s))));
  const most = Math.max(highest, 1e-9) * HEADROOM;
  const x = (at: number) => LEFT + ((at - first.at) / (last.at - first.at)) * (width - LEFT - RIGHT);
  const y = (value: number) => 3 + (1 - value / most) * (height - BOTTOM - 5);
  c.strokeStyle = palette.line;
  c.lineWidth = 1;
  c.beginPath();
  c.moveTo(LEFT, y(0));
  c.lineTo(width - RIGHT, y(0));
  c.stroke();
  c.fillText(`${moment === undefined ? "last " : ""}${time(last.at - first.at)} (virtual), at most ${show(highest)}`, LEFT, height - 2);
  const mark = (at: number, style: string, dash: number[]) => {
    c.strokeStyle = style;
    c.setLineDash(dash);
    c.beginPath();
    c.moveTo(x(at), 2);
    c.lineTo(x(at), y(0));
    c.stroke();
    c.setLineDash([]);
  };
  for (const event of events) {
    if (event.at < first.at || event.at > last.at) continue;
    if (event.kind === "fault_injected") mark(event.at, palette.down, []);
    if (event.kind === "fault_recovered") mark(event.at, palette.dim, [1, 3]);
    if (event.kind === "reroute") mark(event.at, palette.accent, [4, 3]);
  }
  if (moment !== undefined) mark(Math.max(moment, first.at), palette.dim, []);
  const now = samples.findLast((sample) => moment === undefined || sample.at <= moment) ?? first;
  const lines = [...series].sort((a, b) => b.of(now) - a.of(now));
  const places = labelPlaces(lines.map((line) => y(line.of(now)) + 4), 11, height - BOTTOM - 2);
  for (const [i, line] of lines.entries()) {
    c.strokeStyle = i === 0 ? palette.accent : palette.text;
    c.setLineDash(line.dashed ? [4, 3] : []);
    c.lineWidth = 1.6;
    c.beginPath();
    for (const sample of samples) c.lineTo(x(sample.at), y(line.of(sample)));
    c.stroke();
    c.setLineDash([]);
    c.fillStyle = palette.text;
    c.fillText(`${line.name}${show(line.of(now))}`, width - RIGHT + 5, places[i] ?? 11);
  }
  canvas.dataset["labels"] = places.join(" ");
}
