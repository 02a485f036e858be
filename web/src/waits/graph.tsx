// SPDX-License-Identifier: Apache-2.0
// Who waits for whom, drawn; and the same as a list, for those who do not see it and for numbers.
import { useMemo, useState } from "preact/hooks";

import { waitWorks } from "../colours";
import { More } from "../controls";
import type { WaitRow, WaitTable } from "../data";
import { duration } from "../format";
import { boxWidth, place } from "./place";
import type { Pair } from "./rows";

interface Props {
  table: WaitTable;
  pairs: Pair[]; // the longest first
  open: WaitRow | undefined;
  onOpen: (row: WaitRow | null) => void;
}

const drawnAtFirst = 16; // pairs
const mostDrawn = 256; // nobody reads more in a picture; the list has them all
const listedAtFirst = 10;
const characters = 22; // of a name, in a box

const short = (name: string) =>
  name.length > characters ? `${name.slice(0, characters - 1)}…` : name;
const kindText = new Map<string, string>(waitWorks);

function words({ kinds }: Pair): string {
  return kinds.map(([kind, ns]) => `${kindText.get(kind)} ${duration(ns)}`).join(", ");
}

export function Graph({ table, pairs, open, onOpen }: Props) {
  const [drawn, setDrawn] = useState(drawnAtFirst);
  const most = Math.min(pairs.length, mostDrawn);
  const shown = useMemo(() => pairs.slice(0, Math.min(drawn, most)), [pairs, drawn, most]);
  if (!pairs.length) return <p>Nobody waited for another{open && " here"}.</p>;
  return (
    <>
      <Picture table={table} pairs={shown} open={open} onOpen={onOpen} />
      <More all={most} limit={drawn} onMore={setDrawn} />
      <List table={table} pairs={pairs} />
    </>
  );
}

function Picture({ table, pairs, open, onOpen }: Props) {
  const placed = useMemo(() => place(pairs), [pairs]);
  const rows = useMemo(() => new Map(table.rows.map((row) => [row.who, row])), [table]);
  const name = (group: number) => table.groups[group].name;
  const sumOf = (group: number, end: "who" | "whom") =>
    pairs.filter((pair) => pair[end] === group).reduce((sum, { ns }) => sum + ns, 0);
  const about = (group: number) => {
    const waited = sumOf(group, "who");
    const waitedFor = sumOf(group, "whom");
    return [
      waited && `waits ${duration(waited)}`,
      waitedFor && `others wait ${duration(waitedFor)} for it`,
    ]
      .filter(Boolean)
      .join(", ");
  };
  const box = (group: number) => {
    const row = rows.get(group);
    if (!row) return {};
    const choose = () => onOpen(row === open ? null : row);
    return {
      role: "button" as const,
      tabindex: 0, // as SVG spells it
      "aria-pressed": row === open,
      "aria-label": `${name(group)}: ${about(group)}`,
      onClick: choose,
      onKeyDown: (e: KeyboardEvent) => {
        if (e.key !== "Enter" && e.key !== " ") return;
        e.preventDefault();
        choose();
      },
    };
  };
  return (
    <div class="wide">
      <svg
        class="graph"
        width={placed.width}
        height={placed.height}
        role="group"
        aria-label="Who waits for whom. The list below says the same."
      >
        {placed.lines.map(({ pair, kind, ns, width, path }) => (
          <path key={`${pair.who} ${pair.whom} ${kind}`} class={`line ${kind}`} d={path} stroke-width={width}>
            <title>{`${name(pair.who)} waits for ${name(pair.whom)}: ${kindText.get(kind)}, ${duration(ns)}`}</title>
          </path>
        ))}
        {placed.ends.map(({ pair, kind, path }) => (
          <path key={`${pair.who} ${pair.whom}`} class={`end ${kind}`} d={path} />
        ))}
        {placed.boxes.map(({ group, x, y, height }) => (
          <g
            key={group}
            class={`box ${rows.has(group) ? "" : "other"} ${open?.who === group ? "open" : ""}`}
            transform={`translate(${x} ${y})`}
            {...box(group)}
          >
            <title>{`${name(group)}: ${about(group)}`}</title>
            <rect width={boxWidth} height={height} rx={5} />
            <text x={8} y={height / 2 - 4}>
              {short(name(group))}
            </text>
            <text class="about" x={8} y={height / 2 + 12}>
              {sumOf(group, "who")
                ? `waits ${duration(sumOf(group, "who"))}`
                : `others wait ${duration(sumOf(group, "whom"))}`}
            </text>
          </g>
        ))}
        {placed.words.map(({ pair, x, y }) => (
          <text key={`${pair.who} ${pair.whom}`} class="time" x={x} y={y} aria-hidden="true">
            {duration(pair.ns)}
          </text>
        ))}
      </svg>
    </div>
  );
}

function List({ table, pairs }: { table: WaitTable; pairs: Pair[] }) {
  const [limit, setLimit] = useState(listedAtFirst);
  const name = (group: number) => table.groups[group].name;
  return (
    <div class="wide">
      <table class="pairs">
        <thead>
          <tr>
            <th scope="col">who waited</th>
            <th scope="col">for whom</th>
            <th scope="col">time</th>
            <th scope="col">for what</th>
          </tr>
        </thead>
        <tbody>
          {pairs.slice(0, limit).map((pair) => (
            <tr key={`${pair.who} ${pair.whom}`}>
              <td>{name(pair.who)}</td>
              <td>{name(pair.whom)}</td>
              <td class="number">{duration(pair.ns)}</td>
              <td>{words(pair)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <More all={pairs.length} limit={limit} onMore={setLimit} />
    </div>
  );
}
