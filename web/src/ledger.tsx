// SPDX-License-Identifier: Apache-2.0
// The ledger as a table: what each process seems to cost, and what it costs.
import { useMemo, useState } from "preact/hooks";

import { Search, SortHead, useSort } from "./controls";
import { type Ledger, type Row, bases, firstUnsure } from "./data";
import { duration, percent } from "./format";

interface Props {
  ledger: Ledger;
  cpus: number;
  duration: number; // ns
  by: string;
  selected: number | null; // a group
  waits: boolean; // the profile has them
  resources: boolean; // it has others than CPU time and waits
  onSelect: (group: number | null) => void;
  onShow: (tab: string) => void;
}

// A row of the table: of a process or group, or of what is none.
interface Entry {
  name: string;
  group: number | null;
  row?: Row;
  seems: number;
  costs: number;
}

const columns = [
  ["name", "", "by name"],
  ["seems", "seems to cost", "was on the CPU: what top shows"],
  ["costs", "really costs", "the CPU worked for it: user + own kernel + async kernel"],
  ["user", "user", "its own code"],
  ["own", "own kernel", "its system calls and faults"],
  ["async", "async kernel", "interrupts, softirqs, kworkers: for it, whoever was on the CPU"],
  ["stolen", "stolen", "it was on the CPU, and the kernel worked for another"],
] as const;
type Column = (typeof columns)[number][0];

const atFirst = 100; // rows

function entriesOf(ledger: Ledger): { rows: Entry[]; others: Entry[] } {
  const rows = ledger.rows.map((row) => ({
    name: ledger.groups[row.group].name,
    group: row.group,
    row,
    seems: row.seems,
    costs: row.user + row.own + row.async,
  }));
  const others: Entry[] = [
    { name: "kernel itself", group: null, seems: ledger.kernel_seems, costs: ledger.kernel },
    { name: "idle", group: null, seems: ledger.idle_seems, costs: ledger.idle },
    { name: "steal", group: null, seems: ledger.steal_seems, costs: ledger.steal },
    { name: "other", group: null, seems: ledger.other_seems, costs: ledger.other },
  ];
  for (const [reason, ns] of Object.entries(ledger.unclaimed))
    others.push({
      name: `unclaimed: ${reason}`,
      group: null,
      seems: reason === "unsampled" ? ledger.unsampled : 0,
      costs: ns,
    });
  return { rows, others: others.filter((e) => e.costs || e.seems) };
}

function value(entry: Entry, column: Column): number | string {
  switch (column) {
    case "name":
      return entry.name.toLowerCase();
    case "seems":
    case "costs":
      return entry[column];
    default:
      return entry.row?.[column] ?? 0;
  }
}

export function LedgerTable(props: Props) {
  const { ledger, selected } = props;
  const [search, setSearch] = useState("");
  const order = useSort<Column>("costs");
  const { sort, down } = order;
  const [limit, setLimit] = useState(atFirst);
  const { rows, others } = useMemo(() => entriesOf(ledger), [ledger]);
  const wanted = search.toLowerCase();
  const shown = useMemo(() => {
    const kept = rows.filter((e) => e.name.toLowerCase().includes(wanted));
    const sign = down ? -1 : 1;
    return kept.sort((a, b) => {
      const [x, y] = [value(a, sort), value(b, sort)];
      return x < y ? -sign : x > y ? sign : 0;
    });
  }, [rows, wanted, sort, down]);
  const most = useMemo(
    () => Math.max(1, ...rows.map((e) => Math.max(e.seems, e.costs))),
    [rows],
  );
  const sum = (pick: (e: Entry) => number) =>
    [...rows, ...others].reduce((total, e) => total + pick(e), 0);
  const all: Entry = {
    name: `total: ${props.cpus} CPUs × 100 %`,
    group: null,
    seems: sum((e) => e.seems),
    costs: sum((e) => e.costs),
  };
  const line = (entry: Entry, last = false) => (
    <Line
      key={`${entry.group ?? entry.name}`}
      {...props}
      entry={entry}
      most={most}
      last={last}
      open={entry.group !== null && entry.group === selected}
    />
  );
  return (
    <div>
      <div class="controls">
        <Search
          what="name"
          value={search}
          onInput={setSearch}
        />
        <output>
          {wanted ? `${shown.length} of ${rows.length} rows` : `${rows.length} rows`}
        </output>
      </div>
      <div class="wide">
        <table class="ledger">
          <caption>
            Percent of one CPU. Bars: what it seems to cost above, what it really costs below (
            <i class="swatch user" /> user, <i class="swatch own" /> own kernel,{" "}
            <i class="swatch softirq" /> async kernel).
          </caption>
          <thead>
            <tr>
              {columns.map(([column, text, about]) => (
                <SortHead
                  key={column}
                  column={column}
                  text={text || props.by}
                  about={about}
                  by={order}
                />
              ))}
              <th scope="col" class="bars">
                <span class="hidden">bars</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.slice(0, limit).map((e) => line(e))}
            {shown.length > limit && (
              <tr>
                <td colSpan={columns.length + 1}>
                  <button type="button" onClick={() => setLimit(limit * 4)}>
                    {shown.length - limit} more
                  </button>
                </td>
              </tr>
            )}
          </tbody>
          <tbody class="others">
            {others.map((e) => line(e))}
            {line(all, true)}
          </tbody>
        </table>
      </div>
    </div>
  );
}

interface LineProps extends Props {
  entry: Entry;
  most: number;
  last: boolean;
  open: boolean;
}

function Line(props: LineProps) {
  const { entry, most, open, last, duration: length } = props;
  const { row } = entry;
  const share = (ns: number) => percent(ns / length);
  const cell = (ns: number) => (
    <td class="number" title={duration(ns)}>
      {share(ns)}
    </td>
  );
  return (
    <>
      <tr class={open ? "open" : last ? "last" : ""}>
        <th scope="row">
          {entry.group === null ? (
            entry.name
          ) : (
            <button
              type="button"
              class="name"
              aria-expanded={open}
              onClick={() => props.onSelect(open ? null : entry.group)}
            >
              {entry.name}
            </button>
          )}
        </th>
        {cell(entry.seems)}
        {cell(entry.costs)}
        {row ? (
          <>
            {cell(row.user)}
            {cell(row.own)}
            {cell(row.async)}
            {cell(row.stolen)}
          </>
        ) : (
          <td colSpan={4} />
        )}
        <td class="bars">{row && <Bars row={row} most={most} />}</td>
      </tr>
      {open && row && (
        <tr class="open">
          <td colSpan={columns.length + 1}>
            <Details {...props} row={row} />
          </td>
        </tr>
      )}
    </>
  );
}

function Bars({ row, most }: { row: Row; most: number }) {
  const part = (name: string, ns: number) =>
    ns > 0 && <i class={name} style={{ width: `${(100 * ns) / most}%` }} />;
  return (
    <>
      <div class="bar" aria-hidden="true">
        {part("seems", row.seems - row.stolen)}
        {part("stolen", row.stolen)}
      </div>
      <div class="bar" aria-hidden="true">
        {part("user", row.user)}
        {part("own", row.own)}
        {part("softirq", row.async)}
      </div>
    </>
  );
}

function Details({ row, duration: length, waits, resources, onShow }: LineProps & { row: Row }) {
  const costs = row.user + row.own + row.async;
  const sources = Object.entries(row.sources).sort((a, b) => b[1] - a[1]);
  const unsure = row.basis.slice(firstUnsure).reduce((sum, ns) => sum + ns, 0);
  return (
    <div class="details">
      <div>
        <h3>By what</h3>
        <table>
          <tbody>
            {sources.slice(0, 15).map(([source, ns]) => (
              <tr key={source}>
                <th scope="row">{source}</th>
                <td class="number">{percent(ns / length)}</td>
                <td class="number">{duration(ns)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {sources.length > 15 && <p>and {sources.length - 15} more</p>}
      </div>
      <div>
        <h3>Why it was charged</h3>
        <table>
          <tbody>
            {row.basis.map(
              (ns, i) =>
                ns > 0 && (
                  <tr key={bases[i]}>
                    <th scope="row">
                      <i class={`swatch ${i >= firstUnsure ? "unsure" : "sure"}`} /> {bases[i]}
                    </th>
                    <td class="number">{((100 * ns) / costs).toFixed(1)} %</td>
                  </tr>
                ),
            )}
          </tbody>
        </table>
        <p>
          {unsure > 0
            ? `${((100 * unsure) / costs).toFixed(1)} % of it is a share of work for several, or a guess.`
            : "All of it is known to be for it."}
        </p>
      </div>
      <div class="actions">
        <button type="button" onClick={() => onShow("flame")}>
          its flame graph
        </button>
        <button type="button" onClick={() => onShow("flows")}>
          who worked for it
        </button>
        <button type="button" onClick={() => onShow("timeline")}>
          its timeline
        </button>
        {waits && (
          <button type="button" onClick={() => onShow("waits")}>
            what it waited for
          </button>
        )}
        {resources && (
          <button type="button" onClick={() => onShow("resources")}>
            what it used
          </button>
        )}
      </div>
    </div>
  );
}
