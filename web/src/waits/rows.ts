// SPDX-License-Identifier: Apache-2.0
// Waits as the views of them have them: who waited for whom, by kinds as they are shown.
import { type WaitWork, waitWork, waitWorks } from "../colours";
import type { WaitRow, WaitTable, Waits } from "../data";

// One waited for another, by kind. Without what was idle.
export interface Pair {
  who: number; // groups
  whom: number;
  ns: number;
  kinds: [WaitWork, number][]; // in the order of waitWorks
}

export function kindOf(waits: Waits, kind: number): WaitWork {
  return waitWork(waits.kinds[kind]);
}

// Each kind that there is, with its time, in the order of waitWorks.
export function kindsOf(waits: Waits, rows: WaitRow[]): Map<WaitWork, number> {
  const sums = new Map<WaitWork, number>(waitWorks.map(([work]) => [work, 0]));
  for (const row of rows)
    for (const [kind, ns] of row.kinds) {
      const work = kindOf(waits, kind);
      sums.set(work, sums.get(work)! + ns);
    }
  for (const [work, ns] of sums) if (!ns) sums.delete(work);
  return sums;
}

// Whom a process waited for, the longest first. Nobody waits for himself, for a timer or for his
// next request: that is no edge.
export function pairsOf(waits: Waits, table: WaitTable, wanted: WaitWork | "all"): Pair[] {
  const pairs: Pair[] = [];
  for (const { who, reasons } of table.rows) {
    const byWhom = new Map<number, Map<WaitWork, number>>();
    for (const [kind, whom, ns] of reasons) {
      const work = kindOf(waits, kind);
      if (whom === who || work === "idle" || work === "timer") continue;
      if (wanted !== "all" && wanted !== work) continue;
      let kinds = byWhom.get(whom);
      if (!kinds) byWhom.set(whom, (kinds = new Map()));
      kinds.set(work, (kinds.get(work) ?? 0) + ns);
    }
    for (const [whom, found] of byWhom) {
      const kinds = waitWorks.flatMap(([work]): [WaitWork, number][] =>
        found.has(work) ? [[work, found.get(work)!]] : [],
      );
      pairs.push({ who, whom, kinds, ns: kinds.reduce((sum, [, ns]) => sum + ns, 0) });
    }
  }
  return pairs.sort((a, b) => b.ns - a.ns || a.who - b.who || a.whom - b.whom);
}

// Of all that one waited for others; less of it leads nowhere.
const leastFollowed = 0.05;

// What one waited for, and what those waited for in their turn; and who waited for the first.
export function around(pairs: Pair[], who: number): Pair[] {
  const byWho = new Map<number, Pair[]>();
  for (const pair of pairs) {
    const others = byWho.get(pair.who);
    if (others) others.push(pair);
    else byWho.set(pair.who, [pair]);
  }
  const followed = new Set<Pair>();
  const reached = new Set([who]);
  for (const one of reached) {
    const all = byWho.get(one) ?? [];
    const least = leastFollowed * all.reduce((sum, { ns }) => sum + ns, 0);
    for (const pair of all)
      if (pair.ns >= least) {
        followed.add(pair);
        reached.add(pair.whom);
      }
  }
  return pairs.filter((pair) => pair.who === who || pair.whom === who || followed.has(pair));
}
