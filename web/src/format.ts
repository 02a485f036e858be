// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them.

export function duration(ns: number): string {
  for (const [unit, size] of [
    ["s", 1e9],
    ["ms", 1e6],
    ["µs", 1e3],
  ] as const)
    if (ns >= size) return `${(ns / size).toFixed(ns / size < 10 ? 2 : 1)} ${unit}`;
  return `${Math.round(ns)} ns`;
}

// As the report writes it: "4.2 MiB", "812 B".
export function bytes(n: number): string {
  let value = n;
  let unit = "";
  for (const larger of ["KiB", "MiB", "GiB", "TiB"]) {
    if (value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  return unit ? `${value.toFixed(value < 100 ? 1 : 0)} ${unit}` : `${Math.round(n)} B`;
}

// Of one CPU. `share` is 1 for all of its time.
export function percent(share: number): string {
  const value = share * 100;
  if (!value) return "–";
  if (Math.abs(value) < 0.05) return "0.0";
  return value.toFixed(1);
}

// "31 %" of a share of 0.31; what is below 1 never reads "100 %".
export function shareText(share: number): string {
  const value = share * 100;
  if (value < 9.95) return `${value.toFixed(1)} %`;
  return `${(share < 1 ? Math.min(value, 99) : value).toFixed(0)} %`;
}

export function change(share: number): string {
  return (share >= 0 ? "+" : "−") + Math.abs(share * 100).toFixed(2);
}

export function count(n: number): string {
  return n.toLocaleString("en").replaceAll(",", "\u202f");
}
