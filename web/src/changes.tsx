// SPDX-License-Identifier: Apache-2.0
// Two profiles: what got dearer and what cheaper. Numbers are `pkprof diff`'s.
import { useState } from "preact/hooks";

import type { Diff, DiffValue } from "./data";
import { change, percent } from "./format";

interface Line {
  name: string;
  value: DiffValue;
}

export function Changes({ diff }: { diff: Diff }) {
  const [all, setAll] = useState(false);
  const table = (title: string, lines: Line[]) => {
    const shown = lines.filter((line) => all || line.value.sure).slice(0, all ? 200 : 30);
    return (
      <section>
        <h3>{title}</h3>
        {shown.length ? (
          <div class="wide">
            <table>
              <thead>
                <tr>
                  <th scope="col">change</th>
                  <th scope="col">by chance</th>
                  <th scope="col">before</th>
                  <th scope="col">after</th>
                  <th scope="col" />
                </tr>
              </thead>
              <tbody>
                {shown.map(({ name, value }) => (
                  <tr key={name} class={value.sure ? "" : "unsure"}>
                    <td class="number">{change(value.change)}</td>
                    <td class="number">±{(100 * value.margin).toFixed(2)}</td>
                    <td class="number">{percent(value.a)}</td>
                    <td class="number">{percent(value.b)}</td>
                    <th scope="row">{name}</th>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : (
          <p>No change that may not as well be chance.</p>
        )}
      </section>
    );
  };
  return (
    <div>
      <div class="controls">
        <label>
          <input
            type="checkbox"
            checked={all}
            onChange={(e) => setAll(e.currentTarget.checked)}
          />{" "}
          with changes that may be chance
        </label>
      </div>
      <p>Percent of one CPU.</p>
      {table(
        `By ${diff.by}`,
        diff.rows.map((row) => ({ name: row.name, value: row.costs })),
      )}
      {table(
        "By source",
        diff.sources.map((s) => ({ name: `${s.source}, for ${s.for}`, value: s.time })),
      )}
      {table(
        "Functions, themselves",
        diff.functions.map((f) => ({ name: f.where ? `${f.name} in ${f.where}` : f.name, value: f.self })),
      )}
    </div>
  );
}
