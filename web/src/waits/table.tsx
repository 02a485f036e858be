// SPDX-License-Identifier: Apache-2.0
// Who waited, how long and for what; and of each its reasons, in sentences. Times are those of
// `pkprof report --view waits`.
import { Fragment } from "preact";
import { useMemo, useState } from "preact/hooks";

import { type WaitWork, waitWorks } from "../colours";
import { More, Opener, SortHead, useSort } from "../controls";
import type { WaitReason, WaitRow, WaitTable, Waits } from "../data";
import { count, duration } from "../format";
import { kindOf, kindsOf } from "./rows";

interface Props {
  waits: Waits;
  table: WaitTable;
  rows: WaitRow[]; // that are wanted
  by: string; // what they are
  open: WaitRow | undefined;
  onOpen: (row: WaitRow | null) => void;
}

type Column = "name" | "cpu" | "wait" | WaitWork;

const atFirst = 15; // rows
const told = 5; // reasons
const leastTold = 0.05; // of all that one waited

const heads: Record<Column, string> = {
  name: "",
  cpu: "on CPU",
  wait: "waited",
  runnable: "runnable",
  disk: "disk",
  reply: "reply",
  lock: "lock",
  event: "event",
  timer: "timer",
  waiting: "other",
  idle: "idle",
};

export function WaitsTable(props: Props) {
  const { waits, table, rows, by, open, onOpen } = props;
  const order = useSort<Column>("wait");
  const { sort, down } = order;
  const [limit, setLimit] = useState(atFirst);
  const columns = useMemo<[Column, string][]>(() => {
    const kinds = kindsOf(waits, table.rows);
    const cpu = table.rows.some((row) => row.cpu);
    return [
      ["name", "by name"],
      ...(cpu ? [["cpu", "its own code and its system calls"] as [Column, string]] : []),
      ["wait", "off the CPU, but for what it was idle"],
      ...waitWorks.filter(([work]) => kinds.has(work) || work === "idle"),
    ] as [Column, string][];
  }, [waits, table]);
  const values = useMemo(
    () => new Map(rows.map((row) => [row, kindsOf(waits, [row])])),
    [waits, rows],
  );
  const name = (row: WaitRow) => table.groups[row.who].name;
  const value = (row: WaitRow, column: Column): number =>
    column === "cpu" || column === "wait" || column === "idle"
      ? row[column]
      : column === "name"
        ? 0
        : (values.get(row)!.get(column) ?? 0);
  const sorted = useMemo(() => {
    const sign = down ? -1 : 1;
    return [...rows].sort((a, b) =>
      sort === "name"
        ? sign * (name(a) < name(b) ? -1 : 1)
        : sign * (value(a, sort) - value(b, sort)),
    );
  }, [rows, values, sort, down]);
  return (
    <div class="wide">
      <table class="waits">
        <caption>
          Time of all threads of a process together. A name shows what it waited for.
        </caption>
        <thead>
          <tr>
            {columns.map(([column, about]) => (
              <SortHead
                key={column}
                column={column}
                text={heads[column] || by}
                about={about}
                by={order}
              />
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.slice(0, limit).map((row) => (
            <Fragment key={row.who}>
              <tr class={row === open ? "open" : ""}>
                <Opener
                  name={name(row)}
                  open={row === open}
                  onPress={() => onOpen(row === open ? null : row)}
                />
                {columns.slice(1).map(([column]) => (
                  <td key={column} class="number">
                    {value(row, column) ? duration(value(row, column)) : "–"}
                  </td>
                ))}
              </tr>
              {row === open && (
                <tr class="open">
                  <td colSpan={columns.length}>
                    <Reasons waits={waits} table={table} row={row} />
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
        </tbody>
      </table>
      <More all={sorted.length} limit={limit} onMore={setLimit} />
    </div>
  );
}

function Reasons({ waits, table, row }: { waits: Waits; table: WaitTable; row: WaitRow }) {
  const [all, setAll] = useState(false);
  const reasons = row.reasons.filter(([kind]) => kindOf(waits, kind) !== "idle");
  if (!reasons.length) return <p>It was idle all of the time.</p>;
  const shown = all
    ? reasons
    : reasons.slice(0, told).filter(([, , ns]) => ns >= leastTold * row.wait);
  const rest = reasons.slice(shown.length).reduce((sum, [, , ns]) => sum + ns, 0);
  return (
    <>
      <p>
        <b>{table.groups[row.who].name}</b> waited {duration(row.wait)}:
      </p>
      <ul class="reasons">
        {shown.map((reason) => (
          <Reason key={reason.slice(0, 2).join()} waits={waits} table={table} reason={reason} />
        ))}
        {rest > 0 && (
          <li>
            {duration(rest)}{" "}
            <button type="button" onClick={() => setAll(true)}>
              for other things
            </button>
          </li>
        )}
      </ul>
    </>
  );
}

interface ReasonProps {
  waits: Waits;
  table: WaitTable;
  reason: WaitReason;
}

function Reason({ waits, table, reason }: ReasonProps) {
  const [kind, , ns, times, sentence, chainNs, chain] = reason;
  const wakers = chain?.map((group) => table.groups[group].name).join(", and that one by ");
  return (
    <li>
      <i class={`swatch ${kindOf(waits, kind)}`} /> {duration(ns)} {waits.sentences[sentence]}
      {times > 1 && `, ${count(times)} times, ${duration(ns / times)} each`}
      {wakers && chainNs! >= leastTold * ns && (
        <div>
          {duration(chainNs!)} of it after being woken by {wakers}
        </div>
      )}
    </li>
  );
}
