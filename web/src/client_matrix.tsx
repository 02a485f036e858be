// SPDX-License-Identifier: Apache-2.0
// Servers in rows, clients in columns. The largest have a row or column each; the rest is summed up
// in one, so that the sums at the edges are of all.
import { useMemo } from "preact/hooks";

import { type NameOf, sum, total } from "./client_rows";
import type { ClientRow, Profile, Server } from "./data";
import { duration, percent } from "./format";

interface Props {
  profile: Profile;
  servers: Server[]; // largest first
  nameOf: NameOf;
  onClient: (label: number) => void;
  onServer: (label: number) => void;
}

const most = 12; // rows and columns, beside the sums of the others

// One or more servers, or clients.
interface Line {
  label: number | null; // null: several
  count: number;
}

interface Cells {
  rows: Line[];
  columns: Line[]; // without those for the servers themselves and for the sums
  cells: ClientRow[][]; // by row and column; of each row the last is what servers did for themselves
  hasItself: boolean;
}

// The largest of them, and the rest.
function lines(labels: number[]): Line[] {
  const one = (label: number): Line => ({ label, count: 1 });
  if (labels.length <= most + 1) return labels.map(one);
  return [...labels.slice(0, most).map(one), { label: null, count: labels.length - most }];
}

function cellsOf(servers: Server[]): Cells {
  const totals = new Map<number, number>();
  for (const { clients } of servers)
    for (const row of clients)
      if (row.client !== undefined)
        totals.set(row.client, (totals.get(row.client) ?? 0) + total(row));
  const clients = [...totals].sort((a, b) => b[1] - a[1]).map(([label]) => label);
  const rows = lines(servers.map(({ label }) => label));
  const columns = lines(clients);
  const place = new Map(clients.map((label, i) => [label, Math.min(i, columns.length - 1)]));
  const cells = rows.map(() => [...columns, null].map((): ClientRow => sum([])));
  servers.forEach((server, i) => {
    const to = cells[Math.min(i, rows.length - 1)];
    for (const row of server.clients) {
      const at = row.client === undefined ? columns.length : place.get(row.client)!;
      to[at] = sum([to[at], row]);
    }
  });
  const hasItself = servers.some(({ clients }) => clients.some((r) => r.client === undefined));
  return { rows, columns, cells, hasItself };
}

export function Matrix({ profile, servers, nameOf, onClient, onServer }: Props) {
  const { rows, columns, cells, hasItself } = useMemo(() => cellsOf(servers), [servers]);
  const share = (ns: number) => percent(ns / profile.duration_ns);
  const top = Math.max(1, ...cells.flat().map(total));
  const words = (row: ClientRow) =>
    `${duration(total(row))}: user ${share(row.user)}, own kernel ${share(row.own)}, async kernel ${share(row.async)}`;
  const cell = (key: string, row: ClientRow, heat: boolean) => {
    const ns = total(row);
    return (
      <td
        key={key}
        class="number"
        title={ns ? words(row) : undefined}
        style={heat ? { "--heat": Math.sqrt(ns / top) } : undefined}
      >
        {ns ? share(ns) : ""}
      </td>
    );
  };
  const name = ({ label, count }: Line, onClick: (label: number) => void) =>
    label === null ? (
      `${count} others`
    ) : (
      <button type="button" class="name" onClick={() => onClick(label)}>
        {nameOf(label)}
      </button>
    );
  const width = columns.length + (hasItself ? 1 : 0);
  const row = (cells: ClientRow[], heat: boolean) => [
    ...cells.slice(0, width).map((c, i) => cell(String(i), c, heat)),
    cell("all", sum(cells), false),
  ];
  return (
    <div class="wide" role="region" tabIndex={0} aria-label="Servers and their clients">
      <table class="matrix servers">
        <caption>
          Rows: servers. Columns: the clients that they worked for. Percent of one CPU. A name leads to
          its flame graph.
        </caption>
        <thead>
          <tr>
            <td />
            {columns.map((column, i) => (
              <th key={i} scope="col">
                {name(column, onClient)}
              </th>
            ))}
            {hasItself && <th scope="col">itself</th>}
            <th scope="col">all</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((line, i) => (
            <tr key={i}>
              <th scope="row">{name(line, onServer)}</th>
              {row(cells[i], true)}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">all</th>
            {row(
              cells[0].map((_, i) => sum(cells.map((of) => of[i]))),
              false,
            )}
          </tr>
        </tfoot>
      </table>
    </div>
  );
}
