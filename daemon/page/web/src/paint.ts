// Colours of the theme, and canvases that fit their place and the screen's pixels.
const UTILISATION = [0.005, 0.15, 0.4, 0.7]; // where the next colour begins

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Which of the palette's steps stands for a share. */
export function utilisationStep(share: number): number {
  let step = 0;
  while (step < UTILISATION.length && share >= (UTILISATION[step] ?? 0)) ++step;
  return step;
}

export class Palette {
  readonly ground = colour("ground");
  readonly panel = colour("panel");
  readonly line = colour("line");
  readonly text = colour("text");
  readonly dim = colour("dim");
  readonly accent = colour("accent");
  readonly down = colour("down");
  readonly warn = colour("warn");
  readonly marks = ["m0", "m1", "m2", "m3"].map(colour); // of trees and ranks
  readonly steps = ["u0", "u1", "u2", "u3", "u4"].map(colour);

  /** Of what a rank does, by its letter in the feed. */
  rank(state: string): string {
    return this.marks["scrw".indexOf(state === "b" ? "c" : state)] ?? this.line;
  }

  utilisation(share: number): string {
    return this.steps[utilisationStep(share)] ?? this.line;
  }
}

export const UTILISATION_LEGEND = ["idle", "below 15 %", "15 to 40 %", "40 to 70 %", "above 70 %"];

/** The context of a canvas, cleared, in CSS pixels. */
export function fresh(canvas: HTMLCanvasElement): { c: CanvasRenderingContext2D; width: number; height: number } | undefined {
  const c = canvas.getContext("2d");
  const { width, height } = canvas.getBoundingClientRect();
  if (!c || width < 4 || height < 4) return undefined;
  const scale = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  c.setTransform(scale, 0, 0, scale, 0, 0);
  c.clearRect(0, 0, width, height);
  return { c, width, height };
}

export function element<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}

export function make(tag: string, content: string | Node[] = "", className = ""): HTMLElement {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (typeof content === "string") made.textContent = content;
  else made.append(...content);
  return made;
}

export const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
