// SPDX-License-Identifier: Apache-2.0
// What the page shows, and what one does with it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, test } from "node:test";

import {
  complaints,
  fixture,
  open,
  page,
  pageOf,
  percent,
  pkprof,
  printable,
  report,
  rows,
  scratch,
  tab,
  text,
  texts,
} from "./browser.mjs";

describe("the ledger", () => {
  beforeEach(() => open(pageOf("small")));

  test("has the report's numbers", async () => {
    const wanted = report("small");
    const shown = await page.$$eval(`${rows} tr`, (all) =>
      all.map((tr) => [...tr.querySelectorAll("th, td.number")].map((e) => e.textContent)),
    );
    assert.equal(shown.length, wanted.processes.length);
    for (const process of wanted.processes) {
      const { user_ns, own_ns, async_ns, stolen_ns } = process;
      const numbers = [user_ns + own_ns + async_ns, user_ns, own_ns, async_ns, stolen_ns]
        .map((ns) => percent(ns, wanted))
        .join();
      assert.ok(
        shown.some((row) => row[0].endsWith(`[${process.pid}]`) && row.slice(2).join() === numbers),
        `${process.pid}: ${numbers} is not in ${JSON.stringify(shown)}`,
      );
    }
  });

  test("adds up to all CPUs", async () => {
    const last = await texts(".ledger .last td.number");
    assert.equal(last[1], (100 * report("small").cpus).toFixed(1));
  });

  test("has the time that the host took in a row of its own", async () => {
    const wanted = report("small");
    const others = await page.$$eval(".ledger .others tr", (all) =>
      all.map((tr) => [...tr.querySelectorAll("th, td.number")].map((e) => e.textContent)),
    );
    const steal = percent(wanted.steal_ns, wanted);
    assert.deepEqual(
      others.filter(([name]) => name === "steal"),
      [["steal", steal, steal]],
    );
    const [[, , other]] = others.filter(([name]) => name === "other");
    assert.equal(other, percent(wanted.other_ns, wanted));
  });

  test("is sorted by what one clicks on", async () => {
    const seems = async () =>
      (await texts(`${rows} tr td:nth-of-type(1)`)).map((t) => Number(t.replace("–", "0")));
    const button = ".ledger thead th:nth-child(2)";
    await page.click(`${button} button`);
    const down = await seems();
    assert.deepEqual(down, [...down].sort((a, b) => b - a));
    await page.click(`${button} button`);
    assert.deepEqual(await seems(), [...down].sort((a, b) => a - b));
    assert.equal(await page.$eval(button, (e) => e.getAttribute("aria-sort")), "ascending");
  });

  test("is searched", async () => {
    await page.keyboard.press("/");
    await page.keyboard.type("nginx");
    const names = await texts(`${rows} th`);
    assert.ok(names.length > 0);
    for (const name of names) assert.match(name, /nginx/);
  });

  test("shows why a process was charged, and its flame graph", async () => {
    const [first] = await texts(`${rows} th`);
    await page.click(".ledger .name");
    assert.match(await text(".details"), /own|consumed/);
    await page.click(".actions button");
    await page.waitForSelector("canvas");
    assert.equal(await page.$eval(".only", (e) => e.selectedOptions[0].textContent), first);
  });

  test("is all there is", async () => {
    assert.doesNotMatch(await text("#root"), /Unpacking/);
  });

  test("says what was lost at the top", async () => {
    const { degraded } = report("small");
    assert.ok(degraded.length > 0);
    assert.ok((await text(".lost")).includes(degraded[0]));
  });
});

test("the header says what share of the time was watched, if it is not all", async () => {
  await open(pageOf("small"));
  assert.match(await text(".facts"), / watched 31 % of the time \(--budget\)\.$/);
  await open(pageOf("called"));
  assert.doesNotMatch(await text(".facts"), /watched/);
});

test("groups are the report's", async () => {
  await open(pageOf("grouped"));
  for (const by of ["comm", "cgroup", "container", "unit", "thread"]) {
    await page.select(".by", by);
    const wanted = report("grouped", "--by", by).groups.map((group) => printable(group.name));
    assert.deepEqual((await texts(`${rows} th`)).sort(), wanted.sort());
  }
});

// The line below the flame graph tells which box is chosen.
const told = () => text(".told");

describe("the flame graph", () => {
  beforeEach(async () => {
    await open(pageOf("small"), "#flame");
    await page.waitForSelector("canvas");
    await page.focus("canvas");
    await page.keyboard.press("Home");
  });

  test("is of all that is not idle", async () => {
    const { flows, duration_ns } = report("small");
    const busy = flows
      .filter((flow) => flow.served !== "IDLE")
      .reduce((sum, flow) => sum + flow.ns, 0);
    assert.ok((await told()).startsWith(`all: ${percent(busy, { duration_ns })} %`), await told());
  });

  test("is walked with the keys, zoomed in and out", async () => {
    const zoomedOut = () => page.$eval(".reset", (e) => e.disabled);
    await page.keyboard.press("ArrowDown");
    const party = await told();
    await page.keyboard.press("Enter");
    assert.equal(await zoomedOut(), false);
    await page.keyboard.press("ArrowDown");
    assert.notEqual(await told(), party);
    await page.keyboard.press("Escape");
    assert.equal(await zoomedOut(), true);
  });

  test("is zoomed by a click", async () => {
    const box = await (await page.$("canvas")).boundingBox();
    await page.mouse.click(box.x + 5, box.y + 19 + 9);
    assert.equal(await page.$eval(".reset", (e) => e.disabled), false);
  });

  test("is searched", async () => {
    await page.type(".flame .find", "softirq:NET_RX");
    const share = Number((await text(".found")).match(/[\d.]+/)[0]);
    assert.ok(share > 0);
    await page.type(".flame .find", "(");
    assert.match(await text(".found"), /no regular expression/);
  });

  test("is as large when it is turned around", async () => {
    const all = (await told()).match(/all: ([\d.]+)/)[1];
    await page.click(".turn");
    // Drawn anew, it begins at the root.
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    await page.focus("canvas");
    await page.keyboard.press("Home");
    assert.equal((await told()).match(/all: ([\d.]+)/)[1], all);
    await page.keyboard.press("ArrowDown");
    assert.match(await told(), /% of what it stands under/);
  });

  test("shows a function's callers", async () => {
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("f");
    await page.waitForSelector(".both");
    assert.match(await text(".both"), /is called by/);
  });
});

test("who takes from whom", async () => {
  await open(pageOf("small"), "#flows");
  await page.waitForSelector(".matrix");
  const { flows, duration_ns } = report("small");
  // Those that were not selected when it was recorded, too.
  const taken = flows.filter(
    (f) => f.ran_on !== f.served && (typeof f.ran_on === "number" || f.ran_on === "OTHER"),
  );
  assert.ok(taken.length > 0);
  const shown = await texts(".flows tbody td.number");
  assert.ok(shown.length > 0 && shown.length <= taken.length);
  const most = (100 * Math.max(...taken.map((f) => f.ns))) / duration_ns;
  assert.ok(Math.abs(parseFloat(shown[0]) - most) < 0.051, `${shown[0]}, not ${most}`);
});

test("tabs by keys, and in the address", async () => {
  await open(pageOf("small"));
  await page.focus("#tab-ledger");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.$eval("#tab-flame", (e) => e.getAttribute("aria-selected")), "true");
  assert.match(page.url(), /#flame$/);
});

test("dark and light", async () => {
  await open(pageOf("small"));
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
  const dark = await paper();
  await page.click(".theme");
  assert.notEqual(await paper(), dark);
});

test("a comparison of two profiles", async () => {
  const file = join(scratch, "diff.html");
  const [a, b] = ["small", "grouped"].map((name) => fixture(name));
  execFileSync(pkprof, ["diff", a, b, "--html", file]);
  await open(file);
  assert.ok((await texts("main table tbody tr")).length > 0);
  await tab("flame");
  await page.waitForSelector("canvas");
  assert.equal(await page.$eval(".flame select", (e) => e.value), "change");
});

test("hostile names are text", async () => {
  for (const name of ["small", "grouped", "called"]) {
    await open(pageOf(name));
    for (const view of ["flame", "flows", "timeline", "functions"]) {
      await tab(view);
      await page.waitForSelector(`#tab-${view}[aria-selected=true]`);
      assert.equal(await page.$("#root img, #root script, #root iframe, #root a"), null);
    }
    assert.deepEqual(complaints, []);
  }
});

test("1,000,000 samples of 100,000 stacks: below 10 MB, and every view works", async (context) => {
  const file = pageOf("large");
  const { size } = statSync(file);
  assert.ok(size < 10e6, `${size} bytes`);
  const begin = performance.now();
  await open(file);
  await page.waitForSelector(`${rows} tr`);
  const there = performance.now();
  await tab("flame");
  await page.waitForSelector("canvas");
  await page.focus("canvas");
  const drawn = performance.now();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => !document.querySelector(".reset").disabled);
  const zoomed = performance.now();
  await page.click(".turn");
  await page.focus("canvas");
  await page.keyboard.press("Home");
  assert.match(await told(), /^all/);
  const turned = performance.now();
  await tab("functions");
  await page.waitForSelector(".functions tbody tr");
  const times = { there: there - begin, flame: drawn - there, zoom: zoomed - drawn };
  times.turned = turned - zoomed;
  times.functions = performance.now() - turned;
  for (const [name, ms] of Object.entries(times)) context.diagnostic(`${name}: ${ms.toFixed(0)} ms`);
  context.diagnostic(`${size} bytes`);
});
