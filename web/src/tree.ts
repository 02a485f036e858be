// SPDX-License-Identifier: Apache-2.0
// Call trees for the flame graph: from the parties or the outermost functions down, or, turned
// around, from the functions that were running up to who called them. Nodes are made where they
// are looked at, so that a turned tree of 100,000 stacks costs no more than what is drawn of it.
import { FrameKind, type Profile, firstUnsure } from "./data";

// "server": below a client, the server that worked for it. "waker": below a wait, who ended it.
export type FrameWord = FrameKind | "party" | "server" | "waker" | "small";

// Names of frames: the profile's functions, one for what is summed up, then its parties; and,
// where two profiles are compared, what only the one before has.
export class Frames {
  readonly name: string[] = [];
  readonly kind: FrameWord[] = [];
  readonly place: string[] = [];
  private readonly numbers = new Map<string, number>();

  number(name: string, kind: FrameWord, place: string): number {
    const key = `${kind}\0${place}\0${name}`;
    let number = this.numbers.get(key);
    if (number === undefined) {
      number = this.name.length;
      this.numbers.set(key, number);
      this.name.push(name);
      this.kind.push(kind);
      this.place.push(place);
    }
    return number;
  }
}

// A profile whose functions and parties have the numbers of common frames.
export class Numbered {
  readonly functions: Int32Array;
  readonly parties: Int32Array;
  readonly parent: Int32Array; // of each node of the profile
  readonly scale: number; // of a nanosecond: to shares of one CPU

  constructor(
    readonly profile: Profile,
    private readonly frames: Frames,
  ) {
    const { functions, nodes, small } = profile.stacks;
    const count = functions.name.length;
    this.functions = new Int32Array(count + 1);
    for (let i = 0; i < count; ++i) {
      const place = functions.places[functions.place[i]];
      this.functions[i] = frames.number(functions.name[i], functions.kind[i], place);
    }
    if (small !== null) this.functions[small] = frames.number("(small)", "small", "");
    this.parties = Int32Array.from(profile.labels, (l) => frames.number(l.name, "party", ""));
    this.parent = Int32Array.from(nodes.up, (up, i) => i - up);
    this.scale = profile.duration_ns ? 1 / profile.duration_ns : 0;
  }

  servedBy(server: number): number {
    return this.frames.number(`served by ${this.profile.labels[server].name}`, "server", "");
  }

  wokenBy(waker: number): number {
    return this.frames.number(`woken by ${this.profile.labels[waker].name}`, "waker", "");
  }

  // From the outermost call to this one; none for node 0.
  path(node: number): number[] {
    const path = [];
    for (let at = node; at; at = this.parent[at]) path.push(at);
    return path.reverse();
  }

  frameOf(node: number): number {
    return this.functions[this.profile.stacks.nodes.function[node]];
  }
}

export interface Wanted {
  root: "served" | "ran_on" | "none"; // what stands below the root
  accept: (profile: Profile, sample: number) => boolean;
}

const enum Value {
  total,
  before,
  unsure,
}
const values = 3;

export class Tree {
  readonly frame: number[] = [-1];
  readonly parent: number[] = [0];
  widths: "total" | "before" = "total";
  private readonly value: number[] = [0, 0, 0];
  protected readonly kids: (number[] | undefined)[] = [[]];

  total(node: number): number {
    return this.value[node * values + Value.total];
  }
  // Of the profile before, where two are compared.
  before(node: number): number {
    return this.value[node * values + Value.before];
  }
  // Of the total, what was charged by shares or as a guess.
  unsure(node: number): number {
    return this.value[node * values + Value.unsure];
  }
  // As wide as it is drawn: of two that are compared, by one of them.
  width(node: number): number {
    return this.widths === "before" ? this.before(node) : this.total(node);
  }
  children(node: number): number[] {
    return this.kids[node] ?? [];
  }
  depth(node: number): number {
    let depth = 0;
    for (let at = node; at; at = this.parent[at]) ++depth;
    return depth;
  }
  path(node: number): number[] {
    const path = [];
    for (let at = node; at; at = this.parent[at]) path.push(at);
    return path.reverse();
  }

  protected make(parent: number, frame: number): number {
    const node = this.frame.length;
    this.frame.push(frame);
    this.parent.push(parent);
    this.value.push(0, 0, 0);
    this.kids.push(undefined);
    return node;
  }
  protected add(node: number, total: number, before: number, unsure: number): void {
    this.value[node * values + Value.total] += total;
    this.value[node * values + Value.before] += before;
    this.value[node * values + Value.unsure] += unsure;
  }
  protected sort(nodes: number[]): number[] {
    return nodes.sort((a, b) => this.width(b) - this.width(a));
  }
}

// From the outside in: parties, their calls, servers that worked for them by those, main, ..., read,
// «syscall:read», vfs_read. Of a wait, then who ended it, and that one's calls.
export class Calls extends Tree {
  private readonly self: number[] = [];

  constructor(profile: Numbered, before: Numbered | undefined, wanted: Wanted) {
    super();
    // Where the root is a party, one node of the profile is one in each party that has it; and one
    // in each server that had it for a client.
    const known = new Map<number, number>();
    this.put(profile, wanted, known, false);
    if (before) this.put(before, wanted, known, true);
    this.sumUp();
  }

  // Nodes at which time was spent itself, for a turned tree.
  leaves(): { node: number; total: number; before: number; unsure: number }[] {
    const all = [];
    for (let node = 0; node < this.frame.length; ++node) {
      const at = node * values;
      if (this.self[at] || this.self[at + 1])
        all.push({
          node,
          total: this.self[at],
          before: this.self[at + 1],
          unsure: this.self[at + 2],
        });
    }
    return all;
  }

  private put(from: Numbered, wanted: Wanted, known: Map<number, number>, isBefore: boolean): void {
    const { samples } = from.profile;
    const places = new Map<number, number>(); // of nodes of this profile, by what stands above
    const above = new Map<string, number>();
    const width = from.parent.length;
    const path: number[] = [];
    for (let i = 0; i < samples.ns.length; ++i) {
      if (!wanted.accept(from.profile, i)) continue;
      const party = wanted.root === "none" ? -1 : samples[wanted.root][i];
      const server = samples.server?.[i] ?? -1;
      const call = party < 0 ? 0 : (samples.call?.[i] ?? 0);
      const key = `${party} ${server} ${call}`;
      let first = above.get(key);
      if (first === undefined) above.set(key, (first = above.size * width));
      path.length = 0;
      let at = samples.node[i];
      let place: number | undefined;
      while ((place = places.get(first + at)) === undefined && at) {
        path.push(at);
        at = from.parent[at];
      }
      if (place === undefined) {
        place = party < 0 ? 0 : this.child(0, from.parties[party], known);
        for (const node of from.path(call)) place = this.child(place, from.frameOf(node), known);
        if (server >= 0) place = this.child(place, from.servedBy(server), known);
        places.set(first, place);
      }
      while (path.length) {
        at = path.pop()!;
        place = this.child(place, from.frameOf(at), known);
        places.set(first + at, place);
      }
      const waker = samples.waker?.[i] ?? -1;
      if (waker >= 0) {
        place = this.child(place, from.wokenBy(waker), known);
        for (const node of from.path(samples.waker_node![i]))
          place = this.child(place, from.frameOf(node), known);
      }
      const share = samples.ns[i] * from.scale;
      const value = place * values;
      while (this.self.length < value + values) this.self.push(0);
      if (isBefore) {
        this.self[value + Value.before] += share;
      } else {
        this.self[value + Value.total] += share;
        if (samples.basis[i] >= firstUnsure) this.self[value + Value.unsure] += share;
      }
    }
  }

  private child(parent: number, frame: number, known: Map<number, number>): number {
    const key = parent * 2 ** 24 + frame; // below 2 ** 53: a page has no 2 ** 29 nodes
    let node = known.get(key);
    if (node === undefined) {
      node = this.make(parent, frame);
      known.set(key, node);
      (this.kids[parent] ??= []).push(node);
    }
    return node;
  }

  private sumUp(): void {
    while (this.self.length < this.frame.length * values) this.self.push(0);
    for (let node = this.frame.length - 1; node >= 0; --node) {
      const at = node * values;
      this.add(node, this.self[at], this.self[at + 1], this.self[at + 2]);
      if (node) this.add(this.parent[node], this.total(node), this.before(node), this.unsure(node));
    }
    for (const kids of this.kids) if (kids) this.sort(kids);
  }
}

// From the inside out: what ran, who called it, who called that.
export class Callers extends Tree {
  private readonly waiting: (ReturnType<Calls["leaves"]> | undefined)[];

  constructor(private readonly calls: Calls) {
    super();
    this.kids[0] = undefined;
    this.waiting = [calls.leaves()];
    for (const leaf of this.waiting[0]!) this.add(0, leaf.total, leaf.before, leaf.unsure);
  }

  override children(node: number): number[] {
    const waiting = this.waiting[node];
    if (!waiting) return this.kids[node] ?? [];
    const made = new Map<number, number>();
    for (const leaf of waiting) {
      if (!leaf.node) continue; // the root has no caller
      const frame = this.calls.frame[leaf.node];
      let kid = made.get(frame);
      if (kid === undefined) {
        kid = this.make(node, frame);
        this.waiting[kid] = [];
        made.set(frame, kid);
      }
      this.add(kid, leaf.total, leaf.before, leaf.unsure);
      this.waiting[kid]!.push({ ...leaf, node: this.calls.parent[leaf.node] });
    }
    this.waiting[node] = undefined;
    return (this.kids[node] = this.sort([...made.values()]));
  }
}

// The share of frames that match, of all; where one stands below another it counts once.
export function matching(tree: Calls, matches: (frame: number) => boolean): number {
  let sum = 0;
  const open = [...tree.children(0)];
  while (open.length) {
    const node = open.pop()!;
    if (matches(tree.frame[node])) sum += tree.total(node);
    else open.push(...tree.children(node));
  }
  return sum;
}

export interface Around {
  frame: number;
  self: number;
  total: number;
  callers: [number, number][]; // [frame, share], largest first
  callees: [number, number][];
}

// A function and what is on both sides of it, as gprof's graph has it. Of a function that calls
// itself around, time counts once.
export function around(tree: Calls, frame: number): Around {
  const callers = new Map<number, number>();
  const callees = new Map<number, number>();
  const put = (to: Map<number, number>, key: number, share: number) =>
    to.set(key, (to.get(key) ?? 0) + share);
  let self = 0;
  let total = 0;
  const open: [number, boolean][] = [[0, false]];
  while (open.length) {
    const [node, inside] = open.pop()!;
    const is = node > 0 && tree.frame[node] === frame;
    if (is && !inside) {
      total += tree.total(node);
      put(callers, tree.frame[tree.parent[node]], tree.total(node));
    }
    let below = 0;
    for (const kid of tree.children(node)) {
      below += tree.total(kid);
      if (is && tree.frame[kid] !== frame && !isAround(tree, kid, frame))
        put(callees, tree.frame[kid], tree.total(kid));
      open.push([kid, inside || is]);
    }
    if (is) self += tree.total(node) - below;
  }
  const sorted = (of: Map<number, number>) => [...of].sort((a, b) => b[1] - a[1]);
  return { frame, self, total, callers: sorted(callers), callees: sorted(callees) };
}

// Whether a call is of a function that this one has called itself through already.
function isAround(tree: Tree, kid: number, frame: number): boolean {
  const callee = tree.frame[kid];
  let at = tree.parent[tree.parent[kid]];
  for (let seen = false; at; at = tree.parent[at]) {
    if (tree.frame[at] === callee) seen = true;
    if (seen && tree.frame[at] === frame) return true;
  }
  return false;
}

export interface FunctionRow {
  frame: number;
  self: number;
  total: number;
}

// All functions with their own time and with what they called.
export function functionsOf(tree: Calls): FunctionRow[] {
  const rows = new Map<number, FunctionRow>();
  const inside = new Map<number, number>();
  const visit: [number, boolean][] = [[0, false]];
  while (visit.length) {
    const [node, leaving] = visit.pop()!;
    const frame = tree.frame[node];
    if (leaving) {
      inside.set(frame, inside.get(frame)! - 1);
      continue;
    }
    let below = 0;
    visit.push([node, true]);
    for (const kid of tree.children(node)) {
      below += tree.total(kid);
      visit.push([kid, false]);
    }
    let row = rows.get(frame);
    if (!row) rows.set(frame, (row = { frame, self: 0, total: 0 }));
    const open = inside.get(frame) ?? 0;
    inside.set(frame, open + 1);
    if (!open) row.total += tree.total(node);
    row.self += tree.total(node) - below;
  }
  rows.delete(-1);
  return [...rows.values()].sort((a, b) => b.total - a.total);
}
