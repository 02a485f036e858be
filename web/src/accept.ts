// SPDX-License-Identifier: Apache-2.0
import type { Label, Profile } from "./data";
import type { Wanted } from "./tree";

export type Side = "served" | "ran_on";

// Which samples a view is about. Of the profile before, processes have other numbers: they are the
// same where their names are.
export function accept(
  profile: Profile,
  labels: Set<number> | null,
  side: Side,
  part: string,
): Wanted["accept"] {
  const names = labels && new Set([...labels].map((l) => nameOf(profile.labels[l])));
  const inBefore = new Map<Profile, boolean[]>();
  return (of, i) => {
    const { samples } = of;
    if (part === "taken" && !samples.taken[i]) return false;
    if (part !== "all" && part !== "taken" && samples.part[i] !== Number(part)) return false;
    if (!labels || !names) return true;
    const label = samples[side][i];
    if (of === profile) return labels.has(label);
    let known = inBefore.get(of);
    if (!known)
      inBefore.set(of, (known = of.labels.map((l) => names.has(nameOf(l)))));
    return known[label];
  };
}

// What a process of one profile has in common with a process of another.
function nameOf({ kind, comm, name }: Label): string {
  return `${kind} ${kind === "process" ? comm : name}`;
}
