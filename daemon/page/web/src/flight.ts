// What the nodes had under way at the virtual time of the last look: packets of trees of CAUs that
// nobody has acknowledged yet, and DMA commands of SPEs.
import { type Json, type JsonObject, list, num, object } from "./json";

/** Of one vertex of a tree. */
export interface TreeFlight {
  tree: number;
  vertex: number;
  held: number; // operands that wait here for the others of their operations
  sent: [neighbor: number, packets: number][];
}

/** Commands under way between an SPE and a unit of a bus. */
export interface DmaMove { cell: number; unit: number; out: boolean; commands: number }

export interface SpeFlight { spe: number; queued: number; moves: DmaMove[] }

export interface Flight { trees: TreeFlight[]; spes: SpeFlight[] }

function treeOf(value: Json): TreeFlight {
  const [tree, vertex, held, sent] = list(value);
  const pair = (one: Json): [number, number] => [num(list(one)[0]), num(list(one)[1])];
  return { tree: num(tree), vertex: num(vertex), held: num(held), sent: list(sent).map(pair) };
}

function moveOf(value: Json): DmaMove {
  const [cell, unit, out, commands] = list(value).map(num);
  return { cell: cell ?? 0, unit: unit ?? 0, out: out === 1, commands: commands ?? 0 };
}

function speOf(value: Json): SpeFlight {
  const [spe, queued, moves] = list(value);
  return { spe: num(spe), queued: num(queued), moves: list(moves).map(moveOf) };
}

/** By node; those that have something under way. */
export class Flights {
  private nodes = new Map<string, Flight>();

  /** Everything that is under way now. */
  take(nodes: JsonObject): void {
    this.nodes = new Map(Object.entries(object(nodes)).map(([name, value]) => {
      const [trees, spes] = list(value);
      return [name, { trees: list(trees).map(treeOf), spes: list(spes).map(speOf) }];
    }));
  }

  of(node: string): Flight {
    return this.nodes.get(node) ?? { trees: [], spes: [] };
  }

  /** Of vertex number `vertex` of tree number `tree`, which is at `node`. */
  ofTree(node: string, tree: number, vertex: number): TreeFlight | undefined {
    return this.of(node).trees.find((of) => of.tree === tree && of.vertex === vertex);
  }
}

/** Packets that were sent and not acknowledged. */
export function packetsOf(flight: TreeFlight | undefined): number {
  return (flight?.sent ?? []).reduce((sum, [, packets]) => sum + packets, 0);
}

/** DMA commands under way. */
export function commandsOf(spe: SpeFlight | undefined): number {
  return (spe?.moves ?? []).reduce((sum, move) => sum + move.commands, 0);
}
