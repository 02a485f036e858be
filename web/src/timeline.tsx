// SPDX-License-Identifier: Apache-2.0
// Over time: what was done for each process, and what was taken from it.
import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";

import { type Ledger, Part, type Profile } from "./data";
import { palette } from "./colours";

interface Props {
  profile: Profile;
  ledger: Ledger;
  selected: number | null;
  byClient: boolean;
  theme: string;
}

interface Series {
  user: number[];
  own: number[];
  async: number[];
  stolen: number[];
}

const most = 10; // processes

// Percent of one CPU in each slot, of the groups asked for.
function seriesOf(profile: Profile, ledger: Ledger, groups: number[]): Map<number, Series> {
  const { timeline } = profile;
  const slots = Math.max(1, Math.ceil(profile.duration_ns / timeline.slot_ns));
  const zeros = () => new Array<number>(slots).fill(0);
  const all = new Map<number, Series>();
  const groupOf = new Map<number, number>();
  for (const group of groups) {
    all.set(group, { user: zeros(), own: zeros(), async: zeros(), stolen: zeros() });
    for (const label of ledger.groups[group].labels) groupOf.set(label, group);
  }
  const parts: (keyof Series)[] = [];
  parts[Part.user] = "user";
  parts[Part.own] = "own";
  parts[Part.async] = "async";
  for (let i = 0; i < timeline.ns.length; ++i) {
    const slot = timeline.slot[i];
    if (slot >= slots) continue;
    // The last slot may be a part of one.
    const length = Math.min(timeline.slot_ns, profile.duration_ns - slot * timeline.slot_ns);
    const share = (100 * timeline.ns[i]) / length;
    const served = groupOf.get(timeline.served[i]);
    const ranOn = groupOf.get(timeline.ran_on[i]);
    if (served !== undefined) all.get(served)![parts[timeline.part[i]]][slot] += share;
    if (ranOn !== undefined && ranOn !== served && timeline.taken[i])
      all.get(ranOn)!.stolen[slot] += share;
  }
  return all;
}

export function Timeline({ profile, ledger, selected, byClient, theme }: Props) {
  const groups = useMemo(
    () => (selected !== null ? [selected] : ledger.rows.slice(0, most).map((row) => row.group)),
    [ledger, selected],
  );
  const series = useMemo(
    () => (profile.timeline.slot_ns ? seriesOf(profile, ledger, groups) : null),
    [profile, ledger, groups],
  );
  if (!series || !profile.timeline.ns.length)
    return <p>This profile has no timeline: `pkprof record` and `pkprof run` keep one.</p>;
  const slot = profile.timeline.slot_ns;
  return (
    <div>
      {byClient && (
        <p class="note">
          The timeline does not tell clients apart: a server's time is the server's here.
        </p>
      )}
      <p class="legend">
        <span>
          <i class="swatch user" /> user
        </span>
        <span>
          <i class="swatch own" /> own kernel
        </span>
        <span>
          <i class="swatch softirq" /> async kernel
        </span>
        <span>
          <i class="swatch stolen" /> stolen from it (a line)
        </span>
        <span>Percent of one CPU, in slots of {slot / 1e9} s.</span>
      </p>
      {groups.map((group) => (
        <Chart
          key={group}
          name={ledger.groups[group].name}
          series={series.get(group)!}
          seconds={slot / 1e9}
          end={profile.duration_ns / 1e9}
          theme={theme}
          tall={selected !== null}
        />
      ))}
    </div>
  );
}

interface ChartProps {
  name: string;
  series: Series;
  seconds: number; // a slot
  end: number; // of the recording, in seconds
  theme: string;
  tall: boolean;
}

function Chart({ name, series, seconds, end, theme, tall }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current!;
    const chart = new uPlot(optionsOf(element, seconds, tall), dataOf(series, seconds, end), element);
    const observer = new ResizeObserver(([entry]) =>
      chart.setSize({ width: Math.max(200, entry.contentRect.width), height: tall ? 320 : 110 }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
  }, [series, seconds, end, theme, tall]);
  return (
    <section class="chart">
      <h3>{name}</h3>
      <div ref={box} role="img" aria-label={`${name}: ${summary(series)}`} />
    </section>
  );
}

function summary(series: Series): string {
  const top = (of: number[]) => Math.max(...of).toFixed(0);
  return `at most ${top(series.user)} percent user, ${top(series.own)} own kernel, ${top(series.async)} async kernel, ${top(series.stolen)} stolen`;
}

// Each slot is drawn from its begin to its end; series stand on each other, the sum first.
function dataOf(series: Series, seconds: number, end: number): uPlot.AlignedData {
  const slots = series.user.length;
  const steps = (of: (slot: number) => number) =>
    Array.from({ length: slots + 1 }, (_, i) => of(Math.min(i, slots - 1)));
  return [
    Array.from({ length: slots + 1 }, (_, i) => Math.min(i * seconds, end)),
    steps((i) => series.user[i] + series.own[i] + series.async[i]),
    steps((i) => series.user[i] + series.own[i]),
    steps((i) => series.user[i]),
    steps((i) => series.stolen[i]),
  ];
}

function optionsOf(element: Element, seconds: number, tall: boolean): uPlot.Options {
  const colour = palette(element);
  const paths = uPlot.paths.stepped!({ align: 1 });
  const area = (label: string, name: string): uPlot.Series => ({
    label,
    fill: colour(name),
    width: 0,
    paths,
    points: { show: false },
  });
  const axis = { stroke: colour("text"), grid: { stroke: colour("rule"), width: 1 } };
  return {
    width: Math.max(200, element.clientWidth),
    height: tall ? 320 : 110,
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, range: (_, min, max) => [min, max] },
      y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] },
    },
    axes: [
      { ...axis, values: (_, ticks) => ticks.map((t) => `${t} s`) },
      { ...axis, size: 46, space: 24, values: (_, ticks) => ticks.map((t) => `${t} %`) },
    ],
    series: [
      { label: `slots of ${seconds} s` },
      area("async kernel", "softirq"),
      area("own kernel", "own"),
      area("user", "user"),
      { label: "stolen", stroke: colour("stolen"), width: 1.5, paths, points: { show: false } },
    ],
  };
}
