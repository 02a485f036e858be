// SPDX-License-Identifier: Apache-2.0
// Locks, disks, networks and memory: the chooser, the table and what is below a row, the flame graph.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { beforeEach, describe, test } from "node:test";

import {
  bytes,
  cells,
  duration,
  fixture,
  open,
  page,
  pageOf,
  pkprof,
  printable,
  report,
  scratch,
  tab,
  text,
  texts,
} from "./browser.mjs";

const usage = (...more) => report("usage", "--view", "usage", ...more).resources;
// JSON has a label's name, the page says what it is.
const titleOf = (who) =>
  typeof who === "object"
    ? `${printable(who.comm)}[${who.pid}]`
    : printable(who).replace(/^UNCLAIMED:/, "unclaimed: ");
const told = async () => (await text(".told")).trim();
const heads = (selector) => texts(`${selector} > thead th`);
const count = (n) => n.toLocaleString("en").replaceAll(",", "\u202f");
const or = (value, write) => (value ? write(value) : "–");

async function show(resource) {
  await page.select(".resource", resource);
  await page.waitForFunction(
    (wanted) => document.querySelector("canvas").getAttribute("aria-label").includes(wanted),
    {},
    { lock: "locks", disk: "disks", net: "networks", memory: "memory" }[resource],
  );
}

async function choose(name) {
  const button = await page.waitForSelector(`xpath/.//*[@id="panel"]//button[text()="${name}"]`);
  await button.click();
  await page.waitForSelector(".usage tr.open");
}

async function home() {
  await page.focus("canvas");
  await page.keyboard.press("Home");
}

test("a recording of CPU time and waits offers none", async () => {
  for (const name of ["small", "waits"]) {
    await open(pageOf(name));
    assert.equal(await page.$("#tab-resources"), null);
    await page.click(".ledger .name");
    assert.ok(!(await texts(".actions button")).includes("what it used"));
  }
});

describe("who used a resource", () => {
  beforeEach(async () => {
    await open(pageOf("usage"), "#resources");
    await page.waitForSelector(".usage");
  });

  test("is chosen among those that there are", async () => {
    const names = ["locks", "disks", "networks", "memory"];
    assert.deepEqual(await texts(".resource option"), names);
    assert.deepEqual(Object.keys(usage()), ["lock", "disk", "net", "memory"]);
    assert.equal((await texts("#panel h2"))[0], "Who waited for locks?");
    await show("net");
    assert.equal((await texts("#panel h2"))[0], "For whom were packets?");
  });

  const columns = {
    lock: ["futex", "rwsem:write", "spinlock"],
    disk: ["write", "read"],
    net: ["sent", "received", "dropped"],
    memory: ["anonymous", "page cache"],
  };
  const counted = { lock: "waits", disk: "requests", net: "packets", memory: "times" };

  for (const resource of Object.keys(columns))
    test(`has the report's numbers of ${resource}, and their sum`, async () => {
      await show(resource);
      const disk = resource === "disk";
      const ways = columns[resource];
      const amount = resource === "lock" ? duration : bytes;
      const key = resource === "lock" ? "ns" : "bytes";
      assert.deepEqual(await heads(".usage"), [
        "process",
        ...ways,
        "all ▾",
        counted[resource],
        ...(disk ? ["at disk", "queued"] : []),
      ]);
      const line = (name, of) => [
        name,
        ...ways.map((way) => or(of.ways[way]?.[key], amount)),
        or(of[key], amount),
        or(of.count, count),
        ...(disk ? [or(of.time_ns, duration), or(of.ways.queued?.time_ns, duration)] : []),
      ];
      const { rows, total } = usage()[resource];
      assert.deepEqual(
        await cells(".usage > tbody > tr"),
        rows.map((row) => line(titleOf(row.who), row)),
      );
      assert.deepEqual(await cells(".usage > tfoot > tr"), [line("total", total)]);
    });

  test("has what is nobody's, each reason by itself", async () => {
    await show("net");
    assert.deepEqual((await texts(".usage > tbody th")).slice(1), [
      "unclaimed: dropped",
      "unclaimed: forgotten",
    ]);
    // At the end however it is sorted.
    await page.click('.usage > thead th[aria-sort="descending"] button');
    assert.deepEqual(await texts(".usage > tbody th"), [
      "postgres[812]",
      "unclaimed: forgotten",
      "unclaimed: dropped",
    ]);
    await choose("unclaimed: forgotten");
    await home();
    assert.equal(await told(), "all: 900 B");
    await page.keyboard.press("ArrowDown");
    assert.match(await told(), /^UNCLAIMED:forgotten: 900 B/);
  });

  test("is sorted by what one clicks on, and searched", async () => {
    await show("disk");
    const first = async () => (await texts(".usage > tbody th"))[0];
    assert.equal(await first(), "postgres[812]");
    const read = ".usage > thead th:nth-child(3)";
    await page.click(`${read} button`);
    assert.match(await first(), /\[666\]$/);
    assert.equal(await page.$eval(read, (e) => e.getAttribute("aria-sort")), "descending");
    await page.click(`${read} button`);
    assert.equal(await first(), "postgres[812]");
    await page.click(".usage > thead th:first-child button");
    assert.match(await first(), /\[666\]$/);
    await page.keyboard.press("/");
    await page.keyboard.type("POSTGRES");
    assert.deepEqual(await texts(".usage > tbody th"), ["postgres[812]"]);
    assert.equal((await cells(".usage > tfoot > tr"))[0][3], "320 MiB", "of all");
  });

  test("has each disk apart, of a row and of all", async () => {
    await show("disk");
    await choose("postgres[812]");
    assert.deepEqual(await heads(".usage .by-device"), [
      "disk", "write", "read", "all", "requests", "at disk", "queued",
    ]);
    assert.deepEqual(await cells(".usage .by-device > tbody > tr"), [
      ["vda", "300 MiB", "–", "300 MiB", "75", "900.0 ms", "400.0 ms"],
      ["vdb", "20.0 MiB", "–", "20.0 MiB", "5", "10.0 ms", "–"],
    ]);
    await page.click(".devices summary");
    assert.deepEqual(
      (await cells(".devices .by-device > tbody > tr"))[0],
      ["vda", "300 MiB", "4.0 KiB", "300 MiB", "77", "902.0 ms", "400.0 ms"],
    );
  });

  test("says who is at the other end, and who held locks", async () => {
    await show("net");
    await choose("postgres[812]");
    assert.deepEqual(await cells(".others tr"), [["with", "all"], ["192.0.2.7", "97.0 MiB"]]);
    assert.deepEqual((await cells(".usage .by-device > tbody > tr"))[0].slice(0, 3), [
      "eth0", "90.0 MiB", "7.0 MiB",
    ]);
    await show("lock");
    await choose("worker[77]");
    assert.deepEqual(await cells(".others tr"), [
      ["held by", "all"],
      ["postgres[812]", "1.90 s"],
      ["unclaimed: dropped", "3.00 ms"],
    ]);
    await choose("\\x1b[2J<img src=x>[666]");
    assert.deepEqual((await cells(".others tr"))[1], ["itself", "20.0 ms"]);
  });

  test("begins with everybody when another resource is chosen", async () => {
    await show("disk");
    await choose("postgres[812]");
    assert.match((await texts("#panel h2"))[1], /, of postgres\[812\]$/);
    await show("memory");
    assert.equal((await texts("#panel h2"))[1], "Where memory was taken");
    await home();
    assert.equal(await told(), "all: 240 MiB");
  });

  test("can be by other rows, and keeps the resource", async () => {
    await show("disk");
    await page.select(".by", "comm");
    assert.equal(await page.$eval(".resource", (e) => e.value), "disk");
    assert.deepEqual(
      (await cells(".usage > tbody > tr")).map(([name, , , all]) => [name, all]),
      usage("--by", "comm").disk.rows.map((row) => [printable(row.who), bytes(row.bytes)]),
    );
  });

  test("can be one of the ledger's rows", async () => {
    await tab("ledger");
    const name = await page.waitForSelector('xpath/.//table//button[text()="postgres[812]"]');
    await name.click();
    const leads = await page.waitForSelector('xpath/.//button[text()="what it used"]');
    await leads.click();
    await page.waitForSelector(".resource");
    assert.match(await text("#panel"), /postgres\[812\] did not wait for a lock/);
    await page.select(".resource", "memory");
    await page.waitForFunction(() => /used none of it/.test(document.body.textContent));
    await page.select(".resource", "disk");
    await page.waitForSelector(".usage tr.open");
    assert.deepEqual(await texts(".usage > tbody > tr > th"), ["postgres[812]"]);
    assert.match((await texts("#panel h2"))[1], /, of postgres\[812\]$/);
  });
});

describe("the flame graph of a resource", () => {
  beforeEach(async () => {
    await open(pageOf("usage"), "#resources");
    await page.waitForSelector("canvas");
  });

  test("is all that was used, in its unit", async () => {
    for (const [resource, { total }] of Object.entries(usage())) {
      await show(resource);
      await home();
      const all = resource === "lock" ? duration(total.ns) : bytes(total.bytes);
      // Of the disks' work a part was charged by votes.
      const unsure = "; for 6 % of it whom it was for is a share or a guess";
      assert.equal(await told(), `all: ${all}${resource === "disk" ? unsure : ""}`);
    }
  });

  test("goes from whom it was for to the device", async () => {
    await show("disk");
    await choose("postgres[812]");
    await home();
    for (const frame of [
      /^postgres:812: 320 MiB/,
      /^main/,
      /^«syscall:write»/,
      /^ksys_write/,
      /^«disk:write»/,
      /^«vda»: 300 MiB/,
    ]) {
      await page.keyboard.press("ArrowDown");
      assert.match(await told(), frame);
    }
    await page.keyboard.press("ArrowRight");
    assert.match(await told(), /^«vdb»: 20\.0 MiB.*; for 100 % of it whom it was for is a share/);
  });

  const colourAt = (row) =>
    page.$eval(
      "canvas",
      (e, row) => {
        const dots = e.width / e.clientWidth;
        const at = [e.width - 6 * dots, (row * 19 + 4) * dots];
        return [...e.getContext("2d").getImageData(...at, 1, 1).data].join();
      },
      row,
    );

  test("has use in a colour of its own, which the legend has", async () => {
    await show("memory");
    await choose("worker[77]");
    await page.waitForFunction(() => /240 MiB/.test(document.querySelector(".told").textContent));
    // all, party, main, «syscall:write», ksys_write, «memory:anonymous», «do_anonymous_page»
    const [user, own, used, leaf] = await Promise.all([2, 4, 5, 6].map(colourAt));
    assert.equal(used, leaf);
    assert.equal(new Set([user, own, used]).size, 3);
    const legend = await page.$eval(".legend .used", (e) => getComputedStyle(e).backgroundColor);
    assert.equal(legend.match(/\d+/g).join(), used.split(",").slice(0, 3).join());
    await show("lock");
    assert.ok((await texts(".legend span")).includes(" waiting for a lock"));
    await choose("worker[77]");
    await page.waitForFunction(() => /1\.90 s/.test(document.querySelector(".told").textContent));
    // all, party, main, take_lock, «lock:futex», schedule
    assert.deepEqual([await colourAt(4), await colourAt(5)], [used, used]);
  });

  test("can be coloured by how sure it is", async () => {
    await show("disk");
    const before = await colourAt(5);
    await page.$$eval(".flame select", ([colours]) => {
      colours.value = "basis";
      colours.dispatchEvent(new Event("change", { bubbles: true }));
    });
    await page.waitForSelector(".legend .unsure");
    assert.notEqual(await colourAt(5), before);
  });

  test("is searched", async () => {
    await show("disk");
    await page.type(".flame .find", "^vdb$");
    assert.equal(await text(".found"), "20.0 MiB matches");
  });
});

test("hostile names are text", async () => {
  await open(pageOf("usage"), "#resources");
  for (const resource of ["lock", "disk", "net", "memory"]) {
    await show(resource);
    assert.equal(await page.$("#root img, #root script, #root iframe, #root a, .usage b"), null);
  }
  await show("net");
  await page.click(".devices summary");
  assert.ok((await texts(".by-device th")).includes("<b>eth1"));
});

test("exported it has them, and alone nothing else", async () => {
  const file = join(scratch, "usage-exported.html");
  execFileSync(pkprof, ["export", fixture("usage"), "--to", "html", "-o", file]);
  await open(file, "#resources");
  await page.waitForSelector(".usage");
  execFileSync(pkprof, ["report", fixture("usage"), "--resource", "disk", "--html", file]);
  await open(file);
  assert.deepEqual(await texts("[role=tab]"), ["Resources"]);
  assert.deepEqual(await texts(".resource option"), ["disks"]);
  assert.equal((await cells(".usage > tfoot > tr"))[0][3], "320 MiB");
  execFileSync(pkprof, ["diff", fixture("usage"), fixture("usage"), "--html", file]);
  await open(file);
  assert.equal(await page.$("#tab-resources"), null);
});
