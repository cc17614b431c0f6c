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

export function drawChart(
  canvas: HTMLCanvasElement, samples: Sample[], events: FabricEvent[], series: Series[],
  show: (value: number) => string, time: (ps: number) => string,
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
  const most = Math.max(...samples.flatMap((s) => series.map((line) => line.of(s))), 1e-9) * HEADROOM;
  const x = (at: number) => LEFT + ((at - first.at) / (last.at - first.at)) * (width - LEFT - RIGHT);
  const y = (value: number) => 3 + (1 - value / most) * (height - BOTTOM - 5);
  c.strokeStyle = palette.line;
  c.lineWidth = 1;
  c.beginPath();
  c.moveTo(LEFT, y(0));
  c.lineTo(width - RIGHT, y(0));
  c.stroke();
  c.fillText(`last ${time(last.at - first.at)} (virtual), at most ${show(most / HEADROOM)}`, LEFT, height - 2);
  c.strokeStyle = palette.down;
  c.globalAlpha = 0.7;
  for (const event of events) {
    if (event.at < first.at || event.at > last.at || event.kind !== "fault_injected") continue;
    c.beginPath();
    c.moveTo(x(event.at), 2);
    c.lineTo(x(event.at), y(0));
    c.stroke();
  }
  c.globalAlpha = 1;
  let above = -Infinity;
  for (const [i, line] of [...series].sort((a, b) => b.of(last) - a.of(last)).entries()) {
    c.strokeStyle = i === 0 ? palette.accent : palette.text;
    c.setLineDash(line.dashed ? [4, 3] : []);
    c.lineWidth = 1.6;
    c.beginPath();
    for (const sample of samples) c.lineTo(x(sample.at), y(line.of(sample)));
    c.stroke();
    c.setLineDash([]);
    c.fillStyle = palette.text;
    above = Math.min(Math.max(y(line.of(last)) + 4, above + 13, 11), height - BOTTOM - 2 + 13 * i);
    c.fillText(`${line.name}${show(line.of(last))}`, width - RIGHT + 5, above);
  }
}
