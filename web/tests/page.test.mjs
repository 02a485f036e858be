// SPDX-License-Identifier: Apache-2.0
// The page in a real browser. PKPROF: the program; FIXTURES: profiles that tests/fixtures.cc wrote.
// No request leaves the machine: the page has to do without.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { pathToFileURL } from "node:url";

import puppeteer from "puppeteer-core";

const pkprof = process.env.PKPROF;
const fixtures = process.env.FIXTURES;
const scratch = mkdtempSync(join(tmpdir(), "pkprof-page-"));
let browser;
let page;
let complaints;

before(async () => {
  browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
  });
});
after(async () => {
  await browser?.close();
  rmSync(scratch, { recursive: true });
});
// Whatever a test did: nothing went wrong unseen, and nothing was asked for.
afterEach(async () => {
  assert.deepEqual(complaints, []);
  await page?.close();
  page = undefined;
});

function pageOf(name) {
  const file = join(scratch, `${name}.html`);
  execFileSync(pkprof, ["report", join(fixtures, `${name}.pb.gz`), "--html", file]);
  return file;
}

const open = (file, hash = "") => openUrl(pathToFileURL(file).href + hash);

// Nothing but the page itself is asked for.
async function openUrl(url) {
  await page?.close();
  page = await browser.newPage();
  await page.setViewport({ width: 1200, height: 900 });
  complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  page.on("request", (request) => {
    const asked = request.url();
    if (!/^(file|blob|data):/.test(asked) && asked !== url) complaints.push(`asked for ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  await page.goto(url);
  await page.waitForSelector("[role=tab]");
}

const text = (selector) => page.$eval(selector, (e) => e.textContent);
const texts = (selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent));
const tab = (name) => page.click(`#tab-${name}`);
const rows = ".ledger tbody:first-of-type";
const report = (name, ...more) =>
  JSON.parse(
    execFileSync(pkprof, ["report", join(fixtures, `${name}.pb.gz`), "--json", ...more], {
      maxBuffer: 1 << 28,
    }),
  );
const percent = (ns, of) => {
  const value = (100 * ns) / of.duration_ns;
  if (!value) return "–";
  return value < 0.05 ? "0.0" : value.toFixed(1);
};

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

// As the terminal shows it, too.
const printable = (name) =>
  name.replace(/[\x00-\x1f\x7f]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`);

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
  const [a, b] = ["small", "grouped"].map((name) => join(fixtures, `${name}.pb.gz`));
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

// fetch() would set its own name of the host.
const ask = (url, options = {}) =>
  new Promise((resolve, reject) => {
    const request = http.request(url, options, (response) => {
      let body = "";
      response.on("data", (part) => (body += part));
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, body }));
    });
    request.on("error", reject);
    request.end();
  });

describe("serve", () => {
  let server;
  let url;
  const file = join(scratch, "served.pb.gz");
  before(async () => {
    copyFileSync(join(fixtures, "small.pb.gz"), file);
    server = spawn(pkprof, ["serve", file], { stdio: ["ignore", "pipe", "inherit"] });
    const [said] = await once(server.stdout, "data");
    url = /http:\S+/.exec(said)[0];
  });
  after(() => server?.kill("SIGKILL"));

  test("shows the page on loopback, whatever the file is by then", async () => {
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/\?token=[0-9a-f]{32}$/);
    const shownNow = async () => {
      await page.waitForSelector(`${rows} tr`);
      return texts(`${rows} tr`);
    };
    await openUrl(url);
    const shown = await shownNow();
    await open(pageOf("small"));
    assert.deepEqual(await shownNow(), shown);
    copyFileSync(join(fixtures, "called.pb.gz"), file);
    await openUrl(url);
    assert.notDeepEqual(await shownNow(), shown);
    copyFileSync(join(fixtures, "small.pb.gz"), file);
  });

  test("shows nothing to those who guess, nor under another name", async () => {
    complaints = [];
    const token = new URL(url).searchParams.get("token");
    const other = (token[0] === "0" ? "1" : "0") + token.slice(1);
    for (const wrong of [url.replace(token, other), url.replace(token, ""), url.split("?")[0]]) {
      const answer = await ask(wrong);
      assert.equal(answer.status, 403);
      assert.ok(answer.body.length < 100);
    }
    assert.equal((await ask(url, { headers: { host: "example.org" } })).status, 403);
    assert.equal((await ask(url, { headers: { host: "localhost:1234" } })).status, 200);
    assert.equal((await ask(url.replace("/?", "/etc/passwd?"))).status, 404);
    assert.notEqual((await ask(url, { method: "POST" })).status, 200);
    const { headers, body } = await ask(url, { method: "HEAD" });
    assert.equal(body, "");
    assert.equal(headers["cache-control"], "no-store");
    assert.equal(headers["referrer-policy"], "no-referrer");
  });

  test("says what is wrong with the file, and goes on", async () => {
    complaints = [];
    writeFileSync(file, "no profile");
    const answer = await ask(url);
    assert.equal(answer.status, 500);
    assert.match(answer.body, /served\.pb\.gz/);
    copyFileSync(join(fixtures, "small.pb.gz"), file);
    assert.equal((await ask(url)).status, 200);
    server.kill("SIGINT");
    assert.deepEqual(await once(server, "exit"), [0, null]);
  });
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
