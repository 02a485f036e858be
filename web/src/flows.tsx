// SPDX-License-Identifier: Apache-2.0
// Who takes from whom: on whose time on the CPU the kernel worked for whom, as a matrix and a list.
import { useMemo, useState } from "preact/hooks";

import { More } from "./controls";
import type { Ledger, Profile } from "./data";
import { duration, percent } from "./format";

interface Props {
  profile: Profile;
  ledger: Ledger;
  selected: number | null;
}

const most = 12; // rows and columns of the matrix

interface Sum {
  ranOn: number;
  served: number;
  ns: number;
  sources: Map<number, number>;
}

function sumsOf(ledger: Ledger, selected: number | null): Sum[] {
  const sums = new Map<string, Sum>();
  for (const [ranOn, served, source, ns, taken] of ledger.flows) {
    if (!taken || (selected !== null && ranOn !== selected && served !== selected)) continue;
    const key = `${ranOn} ${served}`;
    let sum = sums.get(key);
    if (!sum) sums.set(key, (sum = { ranOn, served, ns: 0, sources: new Map() }));
    sum.ns += ns;
    sum.sources.set(source, (sum.sources.get(source) ?? 0) + ns);
  }
  return [...sums.values()].sort((a, b) => b.ns - a.ns);
}

// Those with the most, in that order.
function largest(sums: Sum[], of: "ranOn" | "served"): number[] {
  const total = new Map<number, number>();
  for (const sum of sums) total.set(sum[of], (total.get(sum[of]) ?? 0) + sum.ns);
  return [...total]
    .sort((a, b) => b[1] - a[1])
    .slice(0, most)
    .map(([group]) => group);
}

export function Flows({ profile, ledger, selected }: Props) {
  const [limit, setLimit] = useState(30);
  const sums = useMemo(() => sumsOf(ledger, selected), [ledger, selected]);
  if (!sums.length) return <p>Nothing was taken from anyone{selected !== null && " here"}.</p>;
  const name = (group: number) => ledger.groups[group].name;
  const rows = largest(sums, "ranOn");
  const columns = largest(sums, "served");
  const share = (ns: number) => percent(ns / profile.duration_ns);
  const sources = ledger.sources ?? profile.sources;
  const at = new Map(sums.map((sum) => [`${sum.ranOn} ${sum.served}`, sum]));
  const top = sums[0].ns;
  const words = (sum: Sum) =>
    [...sum.sources]
      .sort((a, b) => b[1] - a[1])
      .map(([source, ns]) => `${sources[source]} ${share(ns)}`)
      .join(", ");
  return (
    <div>
      <div class="wide">
        <table class="matrix">
          <caption>
            Rows: who was on the CPU. Columns: for whom the kernel worked. Percent of one CPU.
          </caption>
          <thead>
            <tr>
              <td />
              {columns.map((group) => (
                <th key={group} scope="col">
                  <span>{name(group)}</span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row}>
                <th scope="row">{name(row)}</th>
                {columns.map((column) => {
                  const sum = at.get(`${row} ${column}`);
                  return (
                    <td
                      key={column}
                      class="number"
                      title={sum && words(sum)}
                      style={{ "--heat": sum ? Math.sqrt(sum.ns / top) : 0 }}
                    >
                      {sum ? share(sum.ns) : ""}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div class="wide">
        <table class="flows">
          <thead>
            <tr>
              <th scope="col">on the CPU</th>
              <th scope="col">worked for</th>
              <th scope="col" class="number">
                % of one CPU
              </th>
              <th scope="col">by</th>
            </tr>
          </thead>
          <tbody>
            {sums.slice(0, limit).map((sum) => (
              <tr key={`${sum.ranOn} ${sum.served}`}>
                <td>{name(sum.ranOn)}</td>
                <td>{name(sum.served)}</td>
                <td class="number" title={duration(sum.ns)}>
                  {share(sum.ns)}
                </td>
                <td>{words(sum)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <More all={sums.length} limit={limit} onMore={setLimit} />
      </div>
    </div>
  );
}
