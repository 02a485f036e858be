// SPDX-License-Identifier: Apache-2.0
// What a colour says. Each is of the palette in style.css, where it has a light and a dark form.
import { FrameKind, type UsedResource } from "./data";
import type { Frames, Tree } from "./tree";

export type Colouring = "kind" | "basis" | "change" | "name";

// Kinds of work, by the frame that stands between two contexts.
export const works = [
  ["user", "user code"],
  ["own", "system calls, faults"],
  ["softirq", "softirqs"],
  ["irq", "interrupts, IPIs"],
  ["work", "kworkers, kernel threads"],
  ["party", "for whom"],
  ["small", "small ones, summed up"],
] as const;
// What is waited for.
export const waitWorks = [
  ["runnable", "ready, behind others"],
  ["disk", "disk, pages, memory"],
  ["reply", "an answer, a child"],
  ["lock", "a lock"],
  ["event", "word of another thread"],
  ["timer", "a timer"],
  ["waiting", "other things"],
  ["idle", "idle, stopped"],
] as const;
export type WaitWork = (typeof waitWorks)[number][0];
// In the flame graph of waits.
export const offCpuWorks = [
  ["user", "user code"],
  ...waitWorks,
  ["waker", "who woke it"],
  ["party", "who waited"],
] as const;
export type Work = (typeof works)[number][0] | (typeof offCpuWorks)[number][0] | "used";

export type FlameOf = "cpu" | "wait" | UsedResource;

const usedWorks: Record<UsedResource, string> = {
  lock: "waiting for a lock",
  disk: "how, and which disk",
  net: "how, and which interface",
  memory: "what it is for",
};

// What a flame graph's colours are of.
export function worksOf(resource: FlameOf): readonly (readonly [Work, string])[] {
  if (resource === "cpu") return works;
  if (resource === "wait") return offCpuWorks;
  const contexts = 5; // of works
  return [...works.slice(0, contexts), ["used", usedWorks[resource]], ...works.slice(contexts)];
}

const waitWorkOf: Record<string, WaitWork> = {
  runnable: "runnable",
  disk: "disk",
  fault: "disk",
  memory: "disk",
  reply: "reply",
  child: "reply",
  lock: "lock",
  event: "event",
  timer: "timer",
  idle: "idle",
  stopped: "idle",
};

// Kinds come from a file, and may be anything.
export function waitWork(kind: string): WaitWork {
  return Object.hasOwn(waitWorkOf, kind) ? waitWorkOf[kind] : "waiting";
}

function workOf(source: string, of: FlameOf): Work {
  const [word, kind = ""] = source.split(":", 2);
  if (word === "wait") return of === "lock" ? "used" : waitWork(kind);
  if (word === of) return "used";
  if (word === "softirq" || word === "timer") return "softirq";
  if (word === "irq" || word === "ipi") return "irq";
  if (word === "work" || word === "kthread") return "work";
  if (word === "user") return "user";
  return "own";
}

export type Palette = (name: string) => string;

// Reads the palette once; colours of a page do not change but with its theme.
export function palette(element: Element): Palette {
  const style = getComputedStyle(element);
  const known = new Map<string, string>();
  return (name) => {
    let colour = known.get(name);
    if (colour === undefined)
      known.set(name, (colour = style.getPropertyValue(`--${name}`).trim() || "#888"));
    return colour;
  };
}

function hue(text: string): number {
  let hash = 2166136261;
  for (let i = 0; i < text.length; ++i) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return (hash >>> 0) % 360;
}

export class Painter {
  private readonly works: (Work | undefined)[] = [];

  constructor(
    private readonly frames: Frames,
    private readonly tree: Tree,
    private readonly of: FlameOf,
    private readonly colouring: Colouring,
    private readonly turned: boolean,
    private readonly colour: Palette,
  ) {}

  fill(node: number): string {
    const frame = this.tree.frame[node];
    if (this.frames.kind[frame] === "small") return this.colour("small");
    switch (this.colouring) {
      case "change":
        return this.ofChange(node);
      case "basis":
        return this.ofBasis(node);
      case "name":
        return `hsl(${hue(this.frames.name[frame])} var-s var-l)`
          .replace("var-s", this.colour("name-s"))
          .replace("var-l", this.colour("name-l"));
      case "kind":
        return this.colour(this.work(node));
    }
  }

  // What it is at: in a tree of calls that stands above it, in a turned one it is not known.
  work(node: number): Work {
    const known = this.works[node];
    if (known) return known;
    const frame = this.tree.frame[node];
    const kind = this.frames.kind[frame];
    let work: Work;
    if (kind === "party" || kind === "small") work = kind;
    else if (kind === "server") work = "party";
    else if (kind === "waker" || this.isOfWaker(node)) work = "waker";
    else if (this.isOfUse(node)) work = "used"; // its device, which may be called anything
    else if (kind === FrameKind.pseudo) work = workOf(this.frames.name[frame], this.of);
    else if (kind === FrameKind.user) work = "user";
    else if (this.turned || !this.tree.parent[node]) work = "own";
    else {
      work = this.work(this.tree.parent[node]);
      if (work === "user" || work === "party") work = "own";
    }
    return (this.works[node] = work);
  }

  private isOfWaker(node: number): boolean {
    return !this.turned && node > 0 && this.work(this.tree.parent[node]) === "waker";
  }

  private isOfUse(node: number): boolean {
    return !this.turned && node > 0 && this.work(this.tree.parent[node]) === "used";
  }

  private ofBasis(node: number): string {
    const total = this.tree.total(node);
    const unsure = total ? this.tree.unsure(node) / total : 0;
    return mix(this.colour("sure"), this.colour("unsure"), unsure);
  }

  private ofChange(node: number): string {
    const after = this.tree.total(node);
    const before = this.tree.before(node);
    const most = Math.max(after, before);
    const part = most ? (after - before) / most : 0;
    return mix(this.colour("same"), this.colour(part > 0 ? "more" : "less"), Math.abs(part));
  }
}

function mix(from: string, to: string, part: number): string {
  const channel = (colour: string, i: number) => parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16);
  const mixed = [0, 1, 2].map((i) =>
    Math.round(channel(from, i) + (channel(to, i) - channel(from, i)) * part),
  );
  return `rgb(${mixed.join(" ")})`;
}
