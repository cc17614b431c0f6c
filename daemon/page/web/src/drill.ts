// The links of the supernode that is open, of a machine whose feed has no single links: asked for
// while it is shown.
import { type Model } from "./model";
import { call } from "./wire";

const EVERY_MS = 1000;

export class Drill {
  private asked = -Infinity;
  private supernode = -1;
  private asking = false;

  constructor(private model: Model, private changed: () => void) {}

  follow(supernode: number): void {
    if (supernode !== this.supernode) {
      this.asked = -Infinity;
      this.model.links.clear();
      this.model.hubs.clear();
    }
    this.supernode = supernode;
    const now = performance.now();
    if (this.asking || now - this.asked < EVERY_MS) return;
    this.asked = now;
    void this.ask(supernode);
  }

  private async ask(supernode: number): Promise<void> {
    this.asking = true;
    try {
      const reply = await call("ListLinks", { node: `sn${supernode}` });
      if (supernode === this.supernode) this.model.takeListed(reply);
      this.changed();
    } catch {
      // The run may be over: what is shown stays.
    } finally {
      this.asking = false;
    }
  }
}
