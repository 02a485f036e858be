// SPDX-License-Identifier: Apache-2.0
// What threads waited for: the table and its sentences, the graph, and the flame graph.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { beforeEach, describe, test } from "node:test";

import {
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

const waits = (...more) => report("waits", "--view", "waits", ...more);
const titleOf = (who) =>
  typeof who === "object" ? `${printable(who.comm)}[${who.pid}]` : printable(who);
const isIdle = (kind) => kind === "idle" || kind === "stopped";
const told = () => text(".told");

// Of a row of the table, or of a box of the graph.
async function choose(name) {
  const button = await page.waitForSelector(`xpath/.//*[@id="panel"]//button[text()="${name}"]`);
  await button.click();
  await page.waitForSelector(".reasons");
}

async function showAll() {
  for (let more; (more = await page.$(".waits + button")); ) await more.click();
}

test("a recording without waits offers none", async () => {
  await open(pageOf("small"));
  assert.equal(await page.$("#tab-waits"), null);
  await page.click(".ledger .name");
  assert.ok(!(await texts(".actions button")).includes("what it waited for"));
});

describe("who waited", () => {
  beforeEach(async () => {
    await open(pageOf("waits"), "#waits");
    await page.waitForSelector(".waits");
  });

  test("has the report's numbers", async () => {
    await showAll();
    const wanted = waits().waits;
    const shown = await cells(".waits tbody tr");
    const heads = await texts(".waits thead th");
    assert.equal(heads.join(), "process,on CPU,waited ▾,runnable,disk,reply,lock,timer,other,idle");
    assert.equal(shown.length, wanted.length);
    const time = (ns) => (ns ? duration(ns) : "–");
    wanted.forEach(({ who, cpu_ns, wait_ns, idle_ns, kinds }, i) => {
      const { runnable, disk, reply, lock, timer } = kinds;
      const others = wait_ns - [runnable, disk, reply, lock, timer].reduce((a, b) => a + (b ?? 0), 0);
      assert.deepEqual(
        shown[i],
        [titleOf(who)].concat(
          [cpu_ns, wait_ns, runnable, disk, reply, lock, timer, others, idle_ns].map(time),
        ),
      );
    });
  });

  test("is sorted by what one clicks on, and searched", async () => {
    await page.click(".waits thead th:last-child button");
    assert.equal((await cells(".waits tbody tr"))[0][0], "postgres[812]");
    await page.keyboard.press("/");
    await page.keyboard.type("client[10");
    const names = await texts(".waits tbody th");
    assert.ok(names.length > 0);
    for (const name of names) assert.match(name, /^client\[10/);
  });

  test("is told in sentences", async () => {
    await choose("worker[77]");
    const sentences = await texts(".reasons li");
    assert.equal(sentences.length, 4);
    assert.match(sentences[0], /^ ?2\.10 s for postgres\[812\], 420 times, 5\.00 ms each/);
    assert.match(
      sentences[0],
      /2\.00 s of it after being woken by the kernel, and that one by \\x1b\[2J<img src=x.*\[666\]$/,
    );
    assert.match(sentences[1], /^ ?800\.0 ms ready to run behind stress-ng\[99\], 90 times, 8\.89 ms each$/);
    assert.match(sentences[2], /^ ?500\.0 ms for a lock of its own threads, 12 times/);
    assert.match(sentences[3], /^20\.0 ms for other things$/);
    await page.click(".reasons button");
    assert.match((await texts(".reasons li"))[3], /ready to run behind an idle CPU that wakes up/);
  });

  test("can be by other rows", async () => {
    await page.select(".by", "comm");
    const wanted = waits("--by", "comm").waits;
    const shown = await cells(".waits tbody tr");
    assert.deepEqual(
      shown.map(([name, , waited]) => [name, waited]),
      wanted.map(({ who, wait_ns }) => [printable(who), duration(wait_ns)]),
    );
  });

  test("can be one of the ledger's rows", async () => {
    await tab("ledger");
    const name = await page.waitForSelector('xpath/.//table//button[text()="postgres[812]"]');
    await name.click();
    const leads = await page.waitForSelector('xpath/.//button[text()="what it waited for"]');
    await leads.click();
    await page.waitForSelector(".reasons");
    assert.deepEqual(await texts(".waits tbody th"), ["postgres[812]"]);
    assert.match((await texts("#panel h2"))[0], /, of postgres\[812\]$/);
    const [hog] = await page.$$eval(".only option", (all) =>
      all.filter((e) => e.textContent === "stress-ng[99]").map((e) => e.value),
    );
    await page.select(".only", hog);
    assert.match(await text("#panel"), /stress-ng\[99\] did not wait/);
  });
});

describe("the graph of who waits for whom", () => {
  beforeEach(async () => {
    await open(pageOf("waits"), "#waits");
    await page.waitForSelector(".graph");
  });

  const boxes = () => page.$$eval(".graph .box", (all) => all.map((e) => e.textContent));

  test("has the report's times, but for idle ones and timers, and nobody waits for himself", async () => {
    for (let more; (more = await page.$(".pairs + button")); ) await more.click();
    const sums = new Map();
    for (const { who, reasons } of waits().waits)
      for (const { kind, for: whom, ns } of reasons) {
        if (isIdle(kind) || kind === "timer" || titleOf(who) === titleOf(whom)) continue;
        const key = `${titleOf(who)} ${whom.pid ? titleOf(whom) : ""}`;
        sums.set(key, (sums.get(key) ?? 0) + ns);
      }
    const shown = await cells(".pairs tbody tr");
    const [known, others] = [[], []];
    for (const row of shown) (row[1].endsWith("]") ? known : others).push(row);
    for (const [who, whom, time] of known) assert.equal(time, duration(sums.get(`${who} ${whom}`)));
    assert.deepEqual(
      others.map((row) => row.slice(0, 3)),
      [
        ["postgres[812]", "the kernel", "1.10 s"],
        ["\\x1b[2J<img src=x onerror=alert(1)>[666]", "not known", "30.0 ms"],
        ["worker[77]", "an idle CPU that wakes up", "20.0 ms"],
      ],
    );
  });

  test("draws the longest, and more of them when asked", async () => {
    const lines = () => page.$$eval(".graph .end", (all) => all.length);
    assert.equal(await lines(), 16);
    await page.click(".wide:has(.graph) + button");
    assert.equal(await lines(), (await page.$$(".graph .time")).length);
    assert.ok((await lines()) > 30);
    for (const d of await page.$$eval(".graph path", (all) => all.map((e) => e.getAttribute("d"))))
      assert.doesNotMatch(d, /NaN|undefined|Infinity/);
  });

  test("has who waits to the left, and no box on another", async () => {
    await choose("worker[77]");
    const places = await page.$$eval(".graph .box", (all) =>
      all.map((e) => {
        const { x, y, width, height } = e.querySelector("rect").getBoundingClientRect();
        return { name: e.querySelector("text").textContent, x, y, width, height };
      }),
    );
    const x = (name) => places.find((p) => p.name === name).x;
    assert.ok(x("worker[77]") < x("postgres[812]") && x("postgres[812]") < x("the kernel"));
    for (const a of places)
      for (const b of places)
        assert.ok(
          a === b ||
            a.x + a.width <= b.x || b.x + b.width <= a.x ||
            a.y + a.height <= b.y || b.y + b.height <= a.y,
          `${a.name} is on ${b.name}`,
        );
  });

  test("is the same each time", async () => {
    const drawn = () => page.$eval(".graph", (e) => e.outerHTML);
    const first = await drawn();
    await open(pageOf("waits"), "#waits");
    await page.waitForSelector(".graph");
    assert.equal(await drawn(), first);
  });

  test("is used with the keys, and read out", async () => {
    const label = '.graph [aria-label^="postgres[812]"]';
    assert.match(
      await page.$eval(label, (e) => e.getAttribute("aria-label")),
      /^postgres\[812\]: waits 1\.25 s, others wait 2\.10 s for it$/,
    );
    assert.equal(await page.$eval(label, (e) => e.getAttribute("role")), "button");
    await page.$eval(label, (e) => e.focus());
    await page.keyboard.press("Enter");
    await page.waitForSelector(`${label}[aria-pressed=true]`);
    assert.ok((await boxes()).every((name) => !/client/.test(name)), await boxes());
    assert.match(await text(".reasons"), /1\.10 s for the disk/);
    await page.keyboard.press(" ");
    await page.waitForSelector(`${label}[aria-pressed=false]`);
    // Who cannot be chosen is no button.
    assert.equal(await page.$('.graph [role=button][aria-label^="the kernel"]'), null);
  });

  test("can be of one kind", async () => {
    await page.select(".kind", "lock");
    assert.deepEqual(
      (await cells(".pairs tbody tr")).map((row) => row.join(" ")),
      ["postgres[812] worker[77] 150.0 ms a lock 150.0 ms"],
    );
    await page.select(".kind", "idle");
    assert.equal(await page.$(".graph"), null);
    assert.match(await text("#panel"), /Nobody waited for another/);
  });

  test("is dark where the page is", async () => {
    const colour = () => page.$eval(".graph rect", (e) => getComputedStyle(e).fill);
    const light = await colour();
    await page.click(".theme");
    assert.notEqual(await colour(), light);
  });
});

describe("the flame graph of time off the CPU", () => {
  beforeEach(async () => {
    await open(pageOf("waits"), "#waits");
    await page.waitForSelector("canvas");
  });

  const home = async () => {
    await page.focus("canvas");
    await page.keyboard.press("Home");
  };
  const sum = (wanted) =>
    waits()
      .waits.flatMap(({ reasons }) => reasons)
      .filter(({ kind }) => wanted(kind))
      .reduce((all, { ns }) => all + ns, 0);

  test("is of all that is not idle, or of one kind", async () => {
    await home();
    assert.equal((await told()).trim(), `all: ${duration(sum((kind) => !isIdle(kind)))}`);
    await page.select(".kind", "idle");
    await home();
    assert.equal((await told()).trim(), `all: ${duration(sum(isIdle))}`);
  });

  test("has the waiter's stack, and on it who woke it, and where that was", async () => {
    await choose("worker[77]");
    await home();
    assert.match(await told(), /^all: 3\.42 s/);
    for (const frame of [
      /^worker:77: 3\.42 s/,
      /^main/,
      /^wait_for_reply: 2\.10 s/,
      /^«wait:reply»/,
      /^schedule/,
      /^«woken by postgres:812»: 2\.10 s/,
      /^main/,
      /^send_answer: 2\.00 s/,
      /^try_to_wake_up/,
    ]) {
      await page.keyboard.press("ArrowDown");
      assert.match(await told(), frame);
    }
  });

  // Of the last box in a row, near its end, where no letters are.
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

  test("has wakers in a colour of their own", async () => {
    await choose("postgres[812]");
    await page.select(".kind", "disk");
    await page.waitForFunction(() => /1\.10 s/.test(document.querySelector(".told").textContent));
    // all, party, main, wait_for_disk, «wait:disk», schedule, «woken by KERNEL», main, ...
    const [user, wait, kernel, woken, waker] = await Promise.all([2, 4, 5, 6, 7].map(colourAt));
    assert.equal(wait, kernel);
    assert.equal(woken, waker);
    assert.equal(new Set([user, wait, woken]).size, 3);
  });

  test("is searched", async () => {
    await page.type(".flame .find", "send_answer");
    const clients = 30 * 10e6 + (29 * 30 * 1e6) / 2;
    assert.equal(await text(".found"), `${duration(2e9 + clients)} matches`);
  });
});

test("hostile names are text", async () => {
  await open(pageOf("waits"), "#waits");
  await page.waitForSelector(".graph");
  assert.equal(await page.$("#root img, #root script, #root iframe, #root a"), null);
  assert.ok((await texts(".graph title")).some((name) => name.includes("<img src=x")));
  await choose("worker[77]");
  assert.equal(await page.$("#root img, #root script, #root a"), null);
});

test("exported and alone it has them; two recordings compared have none", async () => {
  const file = join(scratch, "waits-exported.html");
  execFileSync(pkprof, ["export", fixture("waits"), "--to", "html", "-o", file]);
  await open(file, "#waits");
  await page.waitForSelector(".graph");
  execFileSync(pkprof, ["report", fixture("waits"), "--resource", "wait", "--html", file]);
  await open(file, "#waits");
  await page.waitForSelector(".graph");
  assert.ok(!(await texts(".waits thead th")).includes("on CPU"));
  execFileSync(pkprof, ["diff", fixture("waits"), fixture("waits"), "--html", file]);
  await open(file);
  assert.equal(await page.$("#tab-waits"), null);
});
