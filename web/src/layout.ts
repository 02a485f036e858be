// SPDX-License-Identifier: Apache-2.0
// Where the boxes of a flame graph lie: those that can be seen.
import type { Tree } from "./tree";

export interface Box {
  node: number;
  x: number;
  width: number;
}

export const rowHeight = 19;
// In pixels: what is narrower is not drawn, nor what is below it.
const narrowest = 0.6;

// By row. The first rows are the path to `zoomed`, each as wide as the whole.
export function layout(tree: Tree, zoomed: number, width: number): Box[][] {
  const rows: Box[][] = [[{ node: 0, x: 0, width }]];
  for (const node of tree.path(zoomed)) rows.push([{ node, x: 0, width }]);
  const whole = tree.width(zoomed);
  if (!whole) return rows;
  const scale = width / whole;
  for (let row = rows[rows.length - 1]; row.length; ) {
    const next: Box[] = [];
    for (const box of row) {
      let x = box.x;
      for (const kid of tree.children(box.node)) {
        const wide = tree.width(kid) * scale;
        if (wide >= narrowest) next.push({ node: kid, x, width: wide });
        x += wide;
      }
    }
    if (next.length) rows.push(next);
    row = next;
  }
  return rows;
}

export function boxAt(rows: Box[][], row: number, x: number): Box | undefined {
  const boxes = rows[row];
  if (!boxes) return undefined;
  let low = 0;
  let high = boxes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (boxes[middle].x + boxes[middle].width <= x) low = middle + 1;
    else high = middle;
  }
  const box = boxes[low];
  return box && box.x <= x ? box : undefined;
}
