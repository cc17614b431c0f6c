// Trees of CAUs: asked for from time to time, and drawn over the circle of a supernode.
import { type JsonObject, list, num, object, text } from "./json";
import { type Palette } from "./paint";
import { type Curve, type Point, along } from "./curve";
import { type Flights, type TreeFlight, packetsOf } from "./flight";
import { call } from "./wire";

export interface Vertex { node: string; parent: number | undefined; participant: boolean }

export interface Tree {
  id: number;
  name: string;
  state: string;
  generation: number;
  vertices: Vertex[];
  sent: number; // packets of the CAU at its top, so far
  lately: number; // ... since the look before
}

const EVERY_MS = 1000;
const SHOWN_MAX = 8;
const CLEAR = 15; // from the middle of a hub, whose number stays readable
const DOTS_MAX = 8; // on one edge, one way

export function treeColour(id: number, palette: Palette): string {
  return palette.marks[id % palette.marks.length] ?? palette.accent;
}

// From hub to hub, at the edge of both, `aside` pixels nearer to the middle than the tree before.
function bent(from: Point, to: Point, middle: Point, aside: number): Curve {
  const half = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
  const inwards = Math.hypot(middle.x - half.x, middle.y - half.y) || 1;
  const depth = 0.4 * Math.min(inwards, Math.hypot(to.x - from.x, to.y - from.y)) + aside;
  const bend = { x: half.x + ((middle.x - half.x) / inwards) * depth, y: half.y + ((middle.y - half.y) / inwards) * depth };
  const clear = (hub: Point): Point => {
    const length = Math.hypot(bend.x - hub.x, bend.y - hub.y) || 1;
    return { x: hub.x + ((bend.x - hub.x) / length) * CLEAR, y: hub.y + ((bend.y - hub.y) / length) * CLEAR };
  };
  return { from: clear(from), bend, to: clear(to) };
}

/** A hub's name as seen from another one: without the supernode that they share. */
export function shortName(name: string, from: string): string {
  const supernode = `${from.split("-")[0] ?? ""}-`;
  return name.startsWith(supernode) ? name.slice(supernode.length) : name;
}

export class Trees {
  trees: Tree[] = [];
  private asked = -Infinity;
  private asking = false;
  private run = 0;
  /** Drawn in the last frame, one for each packet under way: for tests. */
  dots = 0;

  constructor(private flights: Flights, private changed: () => void) {}

  of(hub: string): Tree[] {
    return this.trees.filter((tree) => tree.vertices.some((vertex) => vertex.node === hub));
  }

  /** Asks anew if it is time. */
  follow(run: number): void {
    const now = performance.now();
    if (run !== this.run) [this.run, this.trees, this.asked] = [run, [], -Infinity];
    if (this.asking || now - this.asked < EVERY_MS) return;
    this.asked = now;
    this.asking = true;
    void this.ask(run);
  }

  private async ask(run: number): Promise<void> {
    try {
      const all = list((await call("ListTrees"))["trees"]).map(object).filter((tree) => text(tree["state"]) !== "deleted");
      const trees = await Promise.all(all.slice(0, SHOWN_MAX).map((tree) => this.look(tree)));
      if (run === this.run) this.trees = trees;
      this.changed();
    } catch {
      this.asked = performance.now() + EVERY_MS; // the run may be over
    } finally {
      this.asking = false;
    }
  }

  // A tree that is set up anew has another generation: only then its vertices are asked for.
  private async look(tree: JsonObject): Promise<Tree> {
    const name = text(tree["name"]);
    const before = this.trees.find((one) => one.id === num(tree["id"]));
    const generation = num(tree["generation"]);
    const vertices = before && before.generation === generation && before.state === text(tree["state"]) ? before.vertices : await this.vertices(name);
    const top = vertices.find((vertex) => vertex.parent === undefined)?.node;
    const counters = top ? object(object(list((await call("GetCounters", { node: top }))["nodes"])[0])["counters"]) : {};
    const sent = num(object(counters["cau"])["packets_sent"]);
    return { id: num(tree["id"]), name, state: text(tree["state"]), generation, vertices, sent, lately: before ? sent - before.sent : 0 };
  }

  private async vertices(name: string): Promise<Vertex[]> {
    const tree = object(list((await call("ListTrees", { name }))["trees"])[0]);
    return list(tree["vertices"]).map(object).map((vertex) => ({
      node: text(vertex["node"]), participant: vertex["participant"] === true,
      parent: vertex["parent"] === undefined ? undefined : num(vertex["parent"]),
    }));
  }

  /** The words beside the map. */
  describe(): [string, string[]][] {
    return this.trees.map((tree) => {
      const flights = this.flightsOf(tree);
      const sum = (of: (flight: TreeFlight | undefined) => number) => flights.reduce((total, flight) => total + of(flight), 0);
      return [tree.name, [tree.state, String(tree.vertices.length), String(sum(packetsOf)), String(sum((flight) => flight?.held ?? 0)), String(tree.lately)]];
    });
  }

  private flightsOf(tree: Tree): (TreeFlight | undefined)[] {
    return tree.vertices.map((vertex, number) => this.flights.ofTree(vertex.node, tree.id, number));
  }

  /** What the vertices of `tree` at a hub have under way, in words. */
  wordsOf(tree: Tree, hub: string): string {
    const flights = this.flights.of(hub).trees.filter((flight) => flight.tree === tree.id);
    const sum = (of: (flight: TreeFlight) => number) => flights.reduce((total, flight) => total + of(flight), 0);
    return `${sum(packetsOf)} under way, ${sum((flight) => flight.held)} held`;
  }

  /**
   * Over the circle around `middle`: an edge from each hub to the one above it, in the colour of the
   * tree, bent inwards past the hubs between them. A dot is a packet that was sent and not
   * acknowledged at the last look, on its way. True if something moves.
   */
  draw(c: CanvasRenderingContext2D, palette: Palette, place: (hub: string) => Point | undefined, middle: Point, now: number, moves: boolean): boolean {
    this.dots = 0;
    this.trees.forEach((tree, index) => {
      const style = treeColour(tree.id, palette);
      const edges = new Map<number, Curve>(); // by the vertex at the lower end
      tree.vertices.forEach((vertex, number) => {
        const from = place(vertex.node);
        const above = vertex.parent === undefined ? undefined : tree.vertices[vertex.parent];
        const to = above && place(above.node);
        if (!from) return;
        c.strokeStyle = style;
        c.fillStyle = style;
        if (above === undefined) this.ring(c, from, 17 + 4 * index);
        if (!to) return;
        const edge = bent(from, to, middle, 5 * index);
        edges.set(number, edge);
        c.lineWidth = tree.state === "ready" ? 2.4 : 1.2;
        c.setLineDash(tree.state === "ready" ? [] : [6, 4]);
        c.beginPath();
        c.moveTo(edge.from.x, edge.from.y);
        c.quadraticCurveTo(edge.bend.x, edge.bend.y, edge.to.x, edge.to.y);
        c.stroke();
        c.setLineDash([]);
      });
      c.fillStyle = style;
      this.flightsOf(tree).forEach((flight, number) => {
        for (const [neighbor, packets] of flight?.sent ?? []) {
          const up = tree.vertices[number]?.parent === neighbor;
          const edge = edges.get(up ? number : neighbor);
          if (edge) this.drawPackets(c, edge, up, packets, moves ? now : 0);
        }
      });
    });
    return moves && this.dots > 0;
  }

  private drawPackets(c: CanvasRenderingContext2D, edge: Curve, up: boolean, packets: number, now: number): void {
    const shown = Math.min(packets, DOTS_MAX);
    for (let i = 0; i < shown; ++i) {
      const way = 0.1 + 0.8 * ((now * 0.0008 + edge.from.x * 0.013 + (i + (up ? 0 : 0.5)) / shown) % 1);
      const dot = along(edge, up ? way : 1 - way);
      c.beginPath();
      c.arc(dot.x, dot.y, 4, 0, 2 * Math.PI);
      c.fill();
    }
    this.dots += shown;
  }

  private ring(c: CanvasRenderingContext2D, at: Point, radius: number): void {
    c.lineWidth = 2.5;
    c.beginPath();
    c.arc(at.x, at.y, radius, 0, 2 * Math.PI);
    c.stroke();
  }
}
