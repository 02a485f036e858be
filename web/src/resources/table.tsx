// SPDX-License-Identifier: Apache-2.0
// Who used a resource, in what ways and how much; of each row by device, and whom it used it with.
// Numbers are those of `pkprof report --view usage`.
import { Fragment } from "preact";
import { useMemo, useState } from "preact/hooks";

import { More, Opener, SortHead, useSort } from "../controls";
import type {
  ResourceUsage,
  Usage,
  UsageRow,
  UsageTable as Table,
  UsedResource,
  Ways,
} from "../data";
import { bytes, count, duration } from "../format";

interface Props {
  usage: ResourceUsage;
  resource: UsedResource;
  table: Table;
  rows: UsageRow[]; // that are wanted
  by: string; // what they are
  open: UsageRow | undefined;
  onOpen: (row: UsageRow | null) => void;
}

interface Column {
  key: string;
  head: string;
  about: string;
  value: (of: Usage) => number;
  text: (value: number) => string;
}

const captions: Record<UsedResource, string> = {
  lock: "A name shows who held the locks, and its stacks.",
  disk: "A name shows its disks and its stacks.",
  net: "A name shows its interfaces, who was at the other end, and its stacks.",
  memory: "A name shows its stacks. What is given back is not subtracted.",
};

const atFirst = 15; // rows
const othersTold = 10;

const wayOf = (ways: Ways, word: number) => ways.find(([one]) => one === word)?.[1];

// Each way that there is, the largest first; all of it; how often; of disks, for how long.
function columnsOf({ usage, resource, table }: Props): Column[] {
  const amount = usage.bytes ? bytes : duration;
  const ways = table.total.ways.filter(([, [used]]) => used).sort((a, b) => b[1][0] - a[1][0]);
  const columns: Column[] = ways.map(([word]) => ({
    key: `way ${word}`,
    head: usage.words[word],
    about: "",
    value: (of) => wayOf(of.ways, word)?.[0] ?? 0,
    text: amount,
  }));
  const all = usage.bytes ? "bytes in all" : "time of all threads together";
  columns.push(
    { key: "all", head: "all", about: all, value: (of) => of.all[0], text: amount },
    { key: "count", head: usage.count, about: "about", value: (of) => of.all[1], text: count },
  );
  if (resource !== "disk") return columns;
  const queued = usage.words.indexOf("queued");
  columns.push(
    {
      key: "time",
      head: "at disk",
      about: "from when requests were given to the disk to their end; of several at once each counts",
      value: (of) => of.all[2] ?? 0,
      text: duration,
    },
    {
      key: "queued",
      head: "queued",
      about: "from when requests were made to when they were given to the disk",
      value: (of) => wayOf(of.ways, queued)?.[2] ?? 0,
      text: duration,
    },
  );
  return columns;
}

const cells = (columns: Column[], of: Usage) =>
  columns.map(({ key, value, text }) => (
    <td key={key} class="number">
      {value(of) ? text(value(of)) : "–"}
    </td>
  ));

export function UsageTable(props: Props) {
  const { usage, resource, table, rows, by, open, onOpen } = props;
  const order = useSort<string>("all");
  const { sort, down } = order;
  const [limit, setLimit] = useState(atFirst);
  const columns = useMemo(() => columnsOf(props), [usage, table]);
  const name = (row: UsageRow) => table.groups[row.who].name;
  // At the end, as in the report.
  const nobodys = (row: UsageRow) => Number(table.groups[row.who].kind === "special");
  const sorted = useMemo(() => {
    const sign = down ? -1 : 1;
    const value = columns.find(({ key }) => key === sort)?.value;
    return [...rows].sort(
      (a, b) =>
        nobodys(a) - nobodys(b) ||
        sign * (value ? value(a) - value(b) : name(a) < name(b) ? -1 : 1),
    );
  }, [rows, columns, sort, down]);
  const opens = ({ devices, others }: UsageRow) => Boolean(devices ?? others);
  return (
    <div class="wide">
      <table class="usage">
        <caption>{captions[resource]}</caption>
        <thead>
          <tr>
            <SortHead column="name" text={by} about="by name" by={order} />
            {columns.map(({ key, head, about }) => (
              <SortHead key={key} column={key} text={head} about={about} by={order} />
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
                {cells(columns, row)}
              </tr>
              {row === open && opens(row) && (
                <tr class="open">
                  <td colSpan={columns.length + 1}>
                    <div class="details">
                      {row.devices && <Devices {...props} of={row} columns={columns} />}
                      {row.others && <Others {...props} row={row} others={row.others} />}
                    </div>
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">total</th>
            {cells(columns, table.total)}
          </tr>
        </tfoot>
      </table>
      <More all={sorted.length} limit={limit} onMore={setLimit} />
      {table.total.devices && (
        <details class="devices">
          <summary>by {resource === "disk" ? "disk" : "interface"}</summary>
          <Devices {...props} of={table.total} columns={columns} />
        </details>
      )}
    </div>
  );
}

// A device's ways, and all of them but the time in queues.
function asUsage(ways: Ways, queued: number): Usage {
  const all: [number, number, number] = [0, 0, 0];
  for (const [word, [amount, times, ns]] of ways) {
    if (word === queued) continue;
    all[0] += amount;
    all[1] += times;
    all[2] += ns ?? 0;
  }
  return { all, ways };
}

function Devices({ usage, resource, of, columns }: Props & { of: Usage; columns: Column[] }) {
  const queued = usage.words.indexOf("queued");
  const devices = of
    .devices!.map(([word, ways]) => ({ word, used: asUsage(ways, queued) }))
    .sort((a, b) => b.used.all[0] - a.used.all[0]);
  return (
    <table class="by-device">
      <thead>
        <tr>
          <th scope="col">{resource === "disk" ? "disk" : "interface"}</th>
          {columns.map(({ key, head }) => (
            <th key={key} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {devices.map(({ word, used }) => (
          <tr key={word}>
            <th scope="row">{usage.words[word]}</th>
            {cells(columns, used)}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface OthersProps extends Props {
  row: UsageRow;
  others: [number, number][];
}

// Of locks: who held them; of networks: who is at the other end.
function Others({ usage, resource, table, row, others }: OthersProps) {
  const [limit, setLimit] = useState(othersTold);
  const amount = usage.bytes ? bytes : duration;
  const shown = others.slice(0, limit);
  const rest = row.all[0] - shown.reduce((sum, [, used]) => sum + used, 0);
  return (
    <table class="others">
      <thead>
        <tr>
          <th scope="col">{resource === "lock" ? "held by" : "with"}</th>
          <th scope="col">all</th>
        </tr>
      </thead>
      <tbody>
        {shown.map(([who, used]) => (
          <tr key={who}>
            <th scope="row">{who === row.who ? "itself" : table.groups[who].name}</th>
            <td class="number">{amount(used)}</td>
          </tr>
        ))}
        {rest > 0 && (
          <tr>
            <th scope="row">
              {others.length > limit ? (
                <button type="button" onClick={() => setLimit(limit * 4)}>
                  others
                </button>
              ) : (
                "others"
              )}
            </th>
            <td class="number">{amount(rest)}</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}
