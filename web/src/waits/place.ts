// SPDX-License-Identifier: Apache-2.0
// Where the nodes and edges of a graph of waits lie: who waits to the left of whom it waits for, as
// far as there is no circle; the same for the same pairs.
import type { WaitWork } from "../colours";
import type { Pair } from "./rows";

export interface Box {
  group: number;
  x: number;
  y: number;
  height: number;
}

export interface Line {
  pair: Pair;
  kind: WaitWork;
  ns: number;
  width: number;
  path: string;
}

export interface Placed {
  width: number;
  height: number;
  boxes: Box[];
  lines: Line[];
  ends: { pair: Pair; kind: WaitWork; path: string }[]; // where an edge ends, an arrow head
  words: { pair: Pair; x: number; y: number }[]; // where the time of a pair stands
}

export const boxWidth = 170;
const leastHeight = 40;
const gapX = 110;
const gapY = 16;
const thickest = 24;
const thinnest = 1.5;
const arrow = 8;
const margin = 6;
const wordWidth = 46; // of a time
const wordHeight = 12;

// A box, or where a long edge passes between boxes.
interface Item {
  group: number | null;
  layer: number;
  height: number;
  y: number;
  left: Link[];
  right: Link[];
}

// A part of an edge, from one layer to the next.
interface Link {
  pair: Pair;
  from: Item;
  to: Item;
  fromY: number;
  toY: number;
}

type Arc = [number, number, Pair];

// Edges from left to right. One that would close a circle with longer ones goes the other way.
function arcsOf(pairs: Pair[]): Arc[] {
  const next = new Map<number, number[]>();
  const reaches = (from: number, to: number) => {
    const open = new Set([from]);
    for (const one of open) for (const other of next.get(one) ?? []) open.add(other);
    return open.has(to);
  };
  return pairs.map((pair) => {
    const { who, whom } = pair;
    const [from, to] = reaches(whom, who) ? [whom, who] : [who, whom];
    next.set(from, [...(next.get(from) ?? []), to]);
    return [from, to, pair];
  });
}

// Each group as far to the left as it can be; but who has nothing to its left stands next to its
// first one.
function layersOf(arcs: Arc[]): Map<number, number> {
  const layers = new Map<number, number>();
  for (const [from, to] of arcs) for (const group of [from, to]) layers.set(group, 0);
  for (let moved = true; moved; ) {
    moved = false;
    for (const [from, to] of arcs)
      if (layers.get(to)! <= layers.get(from)!) {
        layers.set(to, layers.get(from)! + 1);
        moved = true;
      }
  }
  const targets = new Set(arcs.map(([, to]) => to));
  for (const group of layers.keys())
    if (!targets.has(group)) {
      const nearest = arcs.filter(([from]) => from === group).map(([, to]) => layers.get(to)!);
      layers.set(group, Math.min(...nearest) - 1);
    }
  return layers;
}

const scaleOf = (pairs: Pair[]) => thickest / Math.max(1, ...pairs.map(({ ns }) => ns));
const longest = ({ kinds }: Pair) => kinds.reduce((most, one) => (one[1] > most[1] ? one : most));
// To scale; but of each pair something can be seen.
const widthOf = (pair: Pair, one: Pair["kinds"][number], scale: number) =>
  Math.max(one === longest(pair) ? thinnest : 0, one[1] * scale);
const thickness = (pair: Pair, scale: number) =>
  pair.kinds.reduce((sum, one) => sum + widthOf(pair, one, scale), 0);

function itemsOf(pairs: Pair[], scale: number): Item[][] {
  const arcs = arcsOf(pairs);
  const layers = layersOf(arcs);
  const columns: Item[][] = [];
  const add = (group: number | null, layer: number, height: number): Item => {
    const item = { group, layer, height, y: 0, left: [], right: [] };
    (columns[layer] ??= []).push(item);
    return item;
  };
  const boxes = new Map([...layers].map(([group, layer]) => [group, add(group, layer, 0)]));
  const link = (pair: Pair, from: Item, to: Item) => {
    const one = { pair, from, to, fromY: 0, toY: 0 };
    from.right.push(one);
    to.left.push(one);
  };
  for (const [from, to, pair] of arcs) {
    let at = boxes.get(from)!;
    for (let layer = at.layer + 1; layer < boxes.get(to)!.layer; ++layer) {
      const passed = add(null, layer, thickness(pair, scale));
      link(pair, at, passed);
      at = passed;
    }
    link(pair, at, boxes.get(to)!);
  }
  const all = (links: Link[]) => links.reduce((sum, { pair }) => sum + thickness(pair, scale), 0);
  for (const box of boxes.values())
    box.height = Math.max(leastHeight, all(box.left) + 10, all(box.right) + 10);
  return columns;
}

const middle = (item: Item) => item.y + item.height / 2;

function stack(column: Item[], whole: number): void {
  const height = column.reduce((sum, item) => sum + item.height + gapY, -gapY);
  let y = margin + (whole - height) / 2;
  for (const item of column) {
    item.y = y;
    y += item.height + gapY;
  }
}

// Each column in the order of what its items lead to, so that few edges cross.
function arrange(columns: Item[][]): number {
  const heights = columns.map((column) =>
    column.reduce((sum, item) => sum + item.height + gapY, -gapY),
  );
  const whole = Math.max(...heights);
  for (const column of columns) stack(column, whole);
  const order = (column: Item[], side: "left" | "right", end: "from" | "to") => {
    const aim = (item: Item) => {
      const links = item[side];
      if (!links.length) return middle(item);
      return links.reduce((sum, one) => sum + middle(one[end]), 0) / links.length;
    };
    const aims = new Map(column.map((item) => [item, aim(item)]));
    column.sort((a, b) => aims.get(a)! - aims.get(b)!);
    stack(column, whole);
  };
  for (let sweep = 0; sweep < 4; ++sweep) {
    for (const column of columns) order(column, "left", "from");
    for (const column of [...columns].reverse()) order(column, "right", "to");
  }
  return whole;
}

// Where at an item's side each edge begins, one below the other.
function join(item: Item, scale: number): void {
  const put = (links: Link[], far: (one: Link) => number, set: (one: Link, y: number) => void) => {
    links.sort((a, b) => far(a) - far(b));
    const all = links.reduce((sum, { pair }) => sum + thickness(pair, scale), 0);
    let y = middle(item) - all / 2;
    for (const one of links) {
      const thick = thickness(one.pair, scale);
      set(one, y + thick / 2);
      y += thick;
    }
  };
  put(item.right, (one) => middle(one.to), (one, y) => (one.fromY = y));
  put(item.left, (one) => middle(one.from), (one, y) => (one.toY = y));
}

const xOf = (layer: number) => margin + layer * (boxWidth + gapX);

// Through all its parts, shifted down by `shift`.
function pathOf(links: Link[], shift: number, isBack: boolean): string {
  const last = links.length - 1;
  return links
    .map((one, i) => {
      const x0 = xOf(one.from.layer) + boxWidth + (i === 0 && isBack ? arrow : 0);
      const x1 = xOf(one.to.layer) - (i === last && !isBack ? arrow : 0);
      const bend = (x0 + x1) / 2;
      const [y0, y1] = [one.fromY + shift, one.toY + shift];
      return `${i ? "L" : "M"}${x0} ${y0}C${bend} ${y0} ${bend} ${y1} ${x1} ${y1}`;
    })
    .join("");
}

export function place(pairs: Pair[]): Placed {
  const scale = scaleOf(pairs);
  const columns = itemsOf(pairs, scale);
  const whole = arrange(columns);
  const parts = new Map<Pair, Link[]>(pairs.map((pair) => [pair, []]));
  for (const item of columns.flat()) join(item, scale);
  for (const item of columns.flat()) for (const one of item.right) parts.get(one.pair)!.push(one);
  const placed: Placed = {
    width: xOf(columns.length - 1) + boxWidth + margin,
    height: whole + 2 * margin,
    boxes: [],
    lines: [],
    ends: [],
    words: [],
  };
  for (const { group, layer, y, height } of columns.flat())
    if (group !== null) placed.boxes.push({ group, x: xOf(layer), y, height });
  for (const [pair, links] of parts) {
    const isBack = links[0].from.group !== pair.who;
    const all = thickness(pair, scale);
    let shift = -all / 2;
    for (const one of pair.kinds) {
      const [kind, ns] = one;
      const width = widthOf(pair, one, scale);
      const path = pathOf(links, shift + width / 2, isBack);
      placed.lines.push({ pair, kind, ns, width, path });
      shift += width;
    }
    placed.ends.push({ pair, kind: longest(pair)[0], path: headOf(links, all, isBack) });
    placed.words.push({ pair, ...freeEnd(links) });
  }
  spread(placed.words);
  return placed;
}

// No word on another: the lower one is moved down.
function spread(words: Placed["words"]): void {
  words.sort((a, b) => a.x - b.x || a.y - b.y);
  words.forEach((word, i) => {
    for (const other of words.slice(0, i))
      if (Math.abs(other.x - word.x) < wordWidth && Math.abs(other.y - word.y) < wordHeight)
        word.y = other.y + wordHeight;
  });
}

// Where an edge is least in the way of others: at the end that has fewer.
function freeEnd(links: Link[]): { x: number; y: number } {
  const [first, last] = [links[0], links[links.length - 1]];
  return first.from.right.length <= last.to.left.length
    ? { x: xOf(first.from.layer) + boxWidth + arrow + wordWidth / 2, y: first.fromY }
    : { x: xOf(last.to.layer) - arrow - wordWidth / 2, y: last.toY };
}

function headOf(links: Link[], thick: number, isBack: boolean): string {
  const end = isBack ? links[0] : links[links.length - 1];
  const x = isBack ? xOf(end.from.layer) + boxWidth : xOf(end.to.layer);
  const y = isBack ? end.fromY : end.toY;
  const from = isBack ? x + arrow : x - arrow;
  const half = Math.max(4.5, thick / 2 + 2);
  return `M${x} ${y}L${from} ${y - half}V${y + half}Z`;
}
