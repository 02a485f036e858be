// SPDX-License-Identifier: Apache-2.0
// What threads waited for off the CPU, and for whom: a table, a graph of who waits for whom, and a
// flame graph of where they waited, with whoever woke them on top.
import { useMemo, useState } from "preact/hooks";

import { type WaitWork, waitWorks } from "../colours";
import { Everybody, RowCount, Search, Small } from "../controls";
import { type Group, type Profile, type WaitRow, ofOwnStacks, rowOf } from "../data";
import { Flame } from "../flame";
import { duration } from "../format";
import { Calls, Frames, Numbered } from "../tree";
import { Graph } from "./graph";
import { around, kindOf, kindsOf, pairsOf } from "./rows";
import { WaitsTable } from "./table";

interface Props {
  profile: Profile;
  by: string;
  rows: string; // what they are, in words
  only: Group | null;
  theme: string;
}

export function Waits({ profile, by, rows: what, only, theme }: Props) {
  const waits = profile.waits!;
  const table = waits.by[by] ?? waits.by.pid; // servers wait themselves, whoever the client is
  const [search, setSearch] = useState("");
  const [kind, setKind] = useState<WaitWork | "all">("all");
  const [chosen, setChosen] = useState<WaitRow | null>(null);
  const single = useMemo(() => only && rowOf(table, only), [table, only]);
  const open = single ?? chosen ?? undefined;
  const rows = useMemo(() => {
    if (single) return [single];
    const text = search.toLowerCase();
    return table.rows.filter(({ who }) => table.groups[who].name.toLowerCase().includes(text));
  }, [table, single, search]);
  const kinds = useMemo(() => kindsOf(waits, table.rows), [waits, table]);
  const pairs = useMemo(() => pairsOf(waits, table, kind), [waits, table, kind]);
  const shown = useMemo(() => (open ? around(pairs, open.who) : pairs), [pairs, open]);

  const frames = useMemo(() => new Frames(), [profile]);
  const numbered = useMemo(() => new Numbered(ofOwnStacks(profile, waits), frames), [profile, frames]);
  const calls = useMemo(() => {
    const labels = open && new Set(table.groups[open.who].labels);
    const { samples } = waits;
    return new Calls(numbered, undefined, {
      root: "served",
      accept: (_, i) => {
        const work = kindOf(waits, samples.kind[i]);
        if (kind === "all" ? work === "idle" : work !== kind) return false;
        return !labels || labels.has(samples.who[i]);
      },
    });
  }, [numbered, waits, table, open, kind]);

  if (only && !single)
    return <p>{only.name} did not wait, or what it waited for was not asked for.</p>;
  const name = open && table.groups[open.who].name;
  const of = open ? `, of ${name}` : "";
  // Stacks are not told apart by thread.
  const ofStacks = open && by === "thread" ? `, of all threads beside ${name}` : of;
  return (
    <div>
      <div class="controls">
        {!single && <Search what="who waited" value={search} onInput={setSearch} />}
        <RowCount rows={rows.length} />
        <label>
          waits{" "}
          <select
            class="kind"
            value={kind}
            onChange={(e) => setKind(e.currentTarget.value as WaitWork | "all")}
          >
            <option value="all">all but idle ones</option>
            {waitWorks
              .filter(([work]) => kinds.has(work))
              .map(([work, text]) => (
                <option key={work} value={work}>
                  {text}
                </option>
              ))}
          </select>
        </label>
        {!single && chosen && <Everybody onPress={() => setChosen(null)} />}
      </div>
      <WaitsTable
        waits={waits}
        table={table}
        rows={rows}
        by={what}
        open={open}
        onOpen={setChosen}
      />
      <h2>Who waits for whom{of}</h2>
      <p class="legend">
        {waitWorks
          .filter(([work]) => kinds.has(work) && work !== "idle" && work !== "timer")
          .map(([work, text]) => (
            <span key={work}>
              <i class={`swatch ${work}`} /> {text}
            </span>
          ))}
        <span>An arrow leads from who waits. Without timers and what is for itself.</span>
      </p>
      <Graph table={table} pairs={shown} open={open} onOpen={setChosen} />
      <h2>Where time off the CPU went{ofStacks}</h2>
      <Flame
        calls={calls}
        frames={frames}
        compared={false}
        theme={theme}
        of="wait"
        measure={(share) => duration(share * profile.duration_ns)}
      />
      <Small least={waits.small_ns && duration(waits.small_ns)} />
    </div>
  );
}
