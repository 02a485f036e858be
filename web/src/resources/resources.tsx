// SPDX-License-Identifier: Apache-2.0
// Locks, disks, networks and memory: who used them, and how, in a table; and where in the code that
// was, in a flame graph.
import { useMemo, useState } from "preact/hooks";

import { Everybody, RowCount, Search, Small } from "../controls";
import {
  type Group,
  type Profile,
  type ResourceUsage,
  type UsageRow,
  type UsedResource,
  ofOwnStacks,
  rowOf,
} from "../data";
import { Flame } from "../flame";
import { bytes, duration } from "../format";
import { Calls, Frames, Numbered } from "../tree";
import { UsageTable } from "./table";

interface Props {
  profile: Profile;
  by: string;
  rows: string; // what they are, in words
  only: Group | null;
  theme: string;
}

const names: Record<UsedResource, string> = {
  lock: "locks",
  disk: "disks",
  net: "networks",
  memory: "memory",
};
const wheres: Record<UsedResource, string> = {
  lock: "Where locks were waited for",
  disk: "Where the disks' work came from",
  net: "Where packets were sent and received",
  memory: "Where memory was taken",
};

export function Resources(props: Props) {
  const usages = props.profile.resources!;
  const known = (Object.keys(names) as UsedResource[]).filter((resource) => usages[resource]);
  const [resource, setResource] = useState(known[0]);
  return (
    <div>
      <div class="controls">
        <label>
          resource{" "}
          <select
            class="resource"
            value={resource}
            onChange={(e) => setResource(e.currentTarget.value as UsedResource)}
          >
            {known.map((one) => (
              <option key={one} value={one}>
                {names[one]}
              </option>
            ))}
          </select>
        </label>
      </div>
      <One
        key={`${resource} ${props.by}`}
        {...props}
        resource={resource}
        usage={usages[resource]!}
      />
    </div>
  );
}

interface OneProps extends Props {
  resource: UsedResource;
  usage: ResourceUsage;
}

function One({ profile, by, rows: what, only, theme, resource, usage }: OneProps) {
  const table = usage.by[by] ?? usage.by.pid; // servers use it themselves, whoever the client is
  const [search, setSearch] = useState("");
  const [chosen, setChosen] = useState<UsageRow | null>(null);
  const single = useMemo(() => only && rowOf(table, only), [table, only]);
  const open = single ?? chosen ?? undefined;
  const rows = useMemo(() => {
    if (single) return [single];
    const text = search.toLowerCase();
    return table.rows.filter(({ who }) => table.groups[who].name.toLowerCase().includes(text));
  }, [table, single, search]);
  const frames = useMemo(() => new Frames(), [profile]);
  const numbered = useMemo(
    () => new Numbered(ofOwnStacks(profile, usage), frames),
    [profile, usage, frames],
  );
  const calls = useMemo(() => {
    const labels = open && new Set(table.groups[open.who].labels);
    return new Calls(numbered, undefined, {
      root: "served",
      accept: (_, i) => !labels || labels.has(usage.samples.who[i]),
    });
  }, [numbered, usage, table, open]);

  const isLock = resource === "lock";
  if (only && !single)
    return (
      <p>
        {only.name} {isLock ? "did not wait for a lock" : "used none of it"}, or that was not asked for.
      </p>
    );
  const amount = usage.bytes ? bytes : duration;
  const name = open && table.groups[open.who].name;
  // Stacks are not told apart by thread.
  const of = !open ? "" : by === "thread" ? `, of all threads beside ${name}` : `, of ${name}`;
  return (
    <>
      <h2>{usage.question}</h2>
      <div class="controls">
        {!single && <Search what={isLock ? "who waited" : "who used it"} value={search} onInput={setSearch} />}
        <RowCount rows={rows.length} />
        {!single && chosen && <Everybody onPress={() => setChosen(null)} />}
      </div>
      <UsageTable
        usage={usage}
        resource={resource}
        table={table}
        rows={rows}
        by={what}
        open={open}
        onOpen={setChosen}
      />
      <h2>
        {wheres[resource]}
        {of}
      </h2>
      <Flame
        calls={calls}
        frames={frames}
        compared={false}
        theme={theme}
        of={resource}
        measure={(share) => amount(share * profile.duration_ns)}
      />
      <Small least={usage.small_ns && amount(usage.small_ns)} />
    </>
  );
}
