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
