// SPDX-License-Identifier: Apache-2.0
// The call graph, a function at a time: who calls it, what it calls.
import { useMemo, useState } from "preact/hooks";

import { More, Search } from "./controls";
import { matcher, title } from "./flame";
import { percent } from "./format";
import { type Calls, type Frames, around, functionsOf } from "./tree";

interface Props {
  calls: Calls;
  frames: Frames;
  chosen: number | null; // a frame
  onChoose: (frame: number | null) => void;
}

const atFirst = 100; // rows

export function Functions({ calls, frames, chosen, onChoose }: Props) {
  const [search, setSearch] = useState("");
  const [bySelf, setBySelf] = useState(true);
  const [limit, setLimit] = useState(atFirst);
  const all = useMemo(() => functionsOf(calls), [calls]);
  const rows = useMemo(() => {
    const matches = search ? matcher(search, frames) : () => true;
    const kept = all.filter((row) => typeof frames.kind[row.frame] === "number" && matches?.(row.frame));
    return kept.sort((a, b) => (bySelf ? b.self - a.self : b.total - a.total));
  }, [all, search, bySelf, frames]);
  return (
    <div>
      {chosen !== null && <Both calls={calls} frames={frames} chosen={chosen} onChoose={onChoose} />}
      <div class="controls">
        <Search
          what="function, as a regular expression"
          value={search}
          onInput={setSearch}
        />
        <output>{rows.length} functions</output>
      </div>
      <div class="wide">
        <table class="functions">
          <caption>Percent of one CPU. Choose a function to see who calls it.</caption>
          <thead>
            <tr>
              <th scope="col" aria-sort={bySelf ? "descending" : "none"}>
                <button type="button" onClick={() => setBySelf(true)}>
                  self{bySelf && " ▾"}
                </button>
              </th>
              <th scope="col" aria-sort={bySelf ? "none" : "descending"}>
                <button type="button" onClick={() => setBySelf(false)}>
                  with callees{!bySelf && " ▾"}
                </button>
              </th>
              <th scope="col">function</th>
              <th scope="col">in</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, limit).map((row) => (
              <tr key={row.frame}>
                <td class="number">{percent(row.self)}</td>
                <td class="number">{percent(row.total)}</td>
                <th scope="row">
                  <button type="button" class="name" onClick={() => onChoose(row.frame)}>
                    {title(frames, row.frame)}
                  </button>
                </th>
                <td>{frames.place[row.frame]}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <More all={rows.length} limit={limit} onMore={setLimit} />
      </div>
    </div>
  );
}

function Both({ calls, frames, chosen, onChoose }: Props & { chosen: number }) {
  const both = useMemo(() => around(calls, chosen), [calls, chosen]);
  const list = (name: string, all: [number, number][], none: string) => (
    <div>
      <h3>{name}</h3>
      {all.length ? (
        <table>
          <tbody>
            {all.slice(0, 40).map(([frame, share]) => (
              <tr key={frame}>
                <td class="number">{percent(share)}</td>
                <td>
                  <button
                    type="button"
                    class="name"
                    disabled={frame < 0}
                    onClick={() => onChoose(frame)}
                  >
                    {title(frames, frame)}
                  </button>
                </td>
                <td>{frame >= 0 && frames.place[frame]}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p>{none}</p>
      )}
      {all.length > 40 && <p>and {all.length - 40} more</p>}
    </div>
  );
  return (
    <section class="both" aria-live="polite">
      <h2>
        {title(frames, chosen)}{" "}
        <button type="button" onClick={() => onChoose(null)}>
          close
        </button>
      </h2>
      <p>
        {frames.place[chosen] && `in ${frames.place[chosen]}; `}
        {percent(both.self)} % of a CPU itself, {percent(both.total)} % with what it calls
      </p>
      <div class="details">
        {list("is called by", both.callers, "nobody")}
        {list("calls", both.callees, "nothing")}
      </div>
    </section>
  );
}
