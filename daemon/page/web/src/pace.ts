// How much virtual time passes in a wall second: shown, and set for a run with the clock live.
import { short } from "./format";
import { num, text } from "./json";
import { type Model } from "./model";
import { element, make } from "./paint";

const CHOICES = [1e5, 1e6, 5e6, 2e7, 1e8, 1e9, 0]; // virtual picoseconds per wall second; 0: no limit
const UNITS: [number, string][] = [[1e12, "s"], [1e9, "ms"], [1e6, "us"], [1e3, "ns"], [1, "ps"]];
const SLOWEST = 1000;

function nameOf(pace: number): string {
  const [size, unit] = UNITS.find(([s]) => pace >= s) ?? [1, "ps"];
  return pace === 0 ? "no pace" : `${short(pace / size)} ${unit}/s`;
}

export class Pace {
  private select = element("pace", HTMLSelectElement);
  private shown = -1;

  /** `set`: the pace that was chosen, in virtual picoseconds per wall second. */
  constructor(private model: Model, private set: (pace: number) => void) {
    this.select.addEventListener("change", () => {
      this.select.blur(); // keys are the page's again, and it shows what holds
      set(Number(this.select.value));
    });
  }

  private get now(): number {
    return num(this.model.status["pace"]);
  }
  private get possible(): boolean {
    return this.model.mayChange && text(this.model.status["clock"]) === "CLOCK_LIVE" && ["running", "paused", "idle"].includes(this.model.state);
  }

  show(): void {
    this.select.disabled = !this.possible;
    if (this.now === this.shown || document.activeElement === this.select && this.shown >= 0) return;
    this.shown = this.now;
    const paces = CHOICES.includes(this.now) ? CHOICES : [this.now, ...CHOICES];
    this.select.replaceChildren(...paces.map((pace) => {
      const option = make("option", nameOf(pace));
      option.setAttribute("value", String(pace));
      return option;
    }));
    this.select.value = String(this.now);
  }

  /** Twice as fast, or half; nothing without a pace. */
  scale(by: number): void {
    if (this.possible && this.now > 0) this.set(Math.max(SLOWEST, Math.round(this.now * by)));
  }
}
