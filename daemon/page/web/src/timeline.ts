// The time line of a recorded run: brings the model to what was known at any of its moments.
import { virtualTime } from "./format";
import { num, object } from "./json";
import { Model, type Sample } from "./model";
import { element } from "./paint";
import { type Message } from "./saved";

const PLAY_MS = 100;
const KEPT_EVERY = 16; // moments at which a whole state is kept

export class Timeline {
  private kept: Message[] = [];
  private at = -1;
  private timer = 0;
  private slider = element("moment", HTMLInputElement);
  private button = element("play", HTMLButtonElement);
  /** Of the whole run. */
  samples: Sample[] = [];
  events = 0;

  /** `show`: the model has changed. */
  constructor(private messages: Message[], private model: Model, private show: () => void) {
    const whole = new Model();
    messages.forEach((message, i) => {
      this.events += whole.take(...message).length;
      if (i % KEPT_EVERY === 0) this.kept.push(["snapshot", whole.snapshot()]);
    });
    this.samples = whole.samples;
    this.slider.max = String(messages.length - 1);
    this.slider.addEventListener("input", () => {
      this.pause();
      this.go(Number(this.slider.value));
    });
    this.button.addEventListener("click", () => this.toggle());
    element("timeline", HTMLElement).hidden = messages.length < 2;
    this.go(messages.length - 1);
  }

  get last(): number {
    return this.messages.length - 1;
  }

  go(moment: number): void {
    const to = Math.min(Math.max(moment, 0), this.last);
    const jump = to !== this.at + 1;
    if (jump) {
      const kept = this.kept[Math.floor(to / KEPT_EVERY)];
      this.model.restart();
      if (kept) this.model.take(...kept);
      this.at = to - (to % KEPT_EVERY);
    }
    while (this.at < to) {
      const message = this.messages[++this.at];
      if (message) this.model.take(...message);
    }
    if (jump) this.model.forgetFlashes();
    const time = `${virtualTime(num(this.model.status["virtual_time"]))} (virtual)`;
    this.slider.value = String(to);
    this.slider.setAttribute("aria-valuetext", time);
    element("when", HTMLOutputElement).textContent =
      `${time} of ${virtualTime(num(object(object(this.messages[this.last]?.[1])["status"])["virtual_time"]))}`;
    this.show();
  }

  move(by: number): void {
    this.pause();
    this.go(this.at + by);
  }

  toggle(): void {
    if (this.timer !== 0) return this.pause();
    if (this.at === this.last) this.go(0);
    this.button.textContent = "Hold";
    this.timer = window.setInterval(() => {
      this.go(this.at + 1);
      if (this.at === this.last) this.pause();
    }, PLAY_MS);
  }

  private pause(): void {
    window.clearInterval(this.timer);
    this.timer = 0;
    this.button.textContent = "Play";
  }
}
