// SPDX-License-Identifier: Apache-2.0
// Exports in the programs they are for: speedscope and Chrome's trace viewer, in a browser, and the
// Firefox Profiler's command line. What these say is compared with the folded stacks of the same
// profile, which the unit tests compare with its samples, or with the samples. PKPROF: the program;
// FIXTURES: profiles that tests/fixtures.cc wrote.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import puppeteer from "puppeteer-core";

const here = dirname(fileURLToPath(import.meta.url));
const pkprof = process.env.PKPROF;
const fixtures = process.env.FIXTURES;
const scratch = mkdtempSync(join(tmpdir(), "pkprof-readers-"));
after(() => rmSync(scratch, { recursive: true }));

function exported(name, format, extra = []) {
  const file = join(scratch, `${name}.${format}`);
  execFileSync(pkprof, ["export", join(fixtures, `${name}.pb.gz`), "--to", format, "-o", file, ...extra]);
  return file;
}

// The time that was spent in each function itself, by the name of the party: several may have one.
class Times {
  #parties = new Map();
  add(party, name, ns) {
    if (!this.#parties.has(party)) this.#parties.set(party, new Map());
    const functions = this.#parties.get(party);
    functions.set(name, (functions.get(name) ?? 0) + ns);
  }
  // Names of functions may have been changed for a format; the times may not.
  expectIn(other, tolerance) {
    const values = (functions) => [...functions.values()].filter((ns) => ns > 0).sort((a, b) => b - a);
    assert.deepEqual([...other.#parties.keys()].sort(), [...this.#parties.keys()].sort());
    for (const [party, functions] of this.#parties) {
      const want = values(functions);
      const have = values(other.#parties.get(party));
      assert.equal(have.length, want.length, `functions of ${party}`);
      want.forEach((ns, i) =>
        assert.ok(Math.abs(have[i] - ns) <= tolerance * ns, `${party}: ${have[i]}, not ${ns}`),
      );
    }
  }
}

function timesOf(name, extra = []) {
  const times = new Times();
  for (const line of readFileSync(exported(name, "folded", extra), "utf8").split("\n")) {
    if (!line) continue;
    const space = line.lastIndexOf(" ");
    const frames = line.slice(0, space).split(";");
    times.add(frames[0], frames.length > 1 ? frames.at(-1) : "", Number(line.slice(space + 1)));
  }
  return times;
}

const machines = [
  ["small", []],
  ["grouped", []],
  ["called", []],
  ["small", ["--of", "ran-on"]],
  ["waits", ["--resource", "wait"]],
  ["usage", ["--resource", "disk"]],
];
const titleOf = ([name, extra]) => [name, ...extra].join(" ");

describe("the Firefox Profiler", () => {
  const cli = join(here, "node_modules/.bin/profiler-cli");
  const env = { ...process.env, HOME: scratch };
  const run = (...words) => execFileSync(cli, words, { env, encoding: "utf8", stdio: "pipe" });
  after(() => run("stop", "--all"));

  // Its "load" gives the daemon half a second to come up, which a busy machine does not. Now and then
  // a daemon never comes up: then another is started.
  const load = async (file, session, tries = 3) => {
    const daemon = spawn(cli, ["--daemon", file, "--session", session], { env, stdio: "ignore" });
    const patience = Date.now() + 40_000;
    for (;;) {
      try {
        return run("thread", "list", "--json", "--session", session);
      } catch (error) {
        if (daemon.exitCode === null && Date.now() < patience) {
          await new Promise((resolve) => setTimeout(resolve, 100));
          continue;
        }
        daemon.kill();
        if (tries === 1) throw error;
        try {
          run("stop", "--session", session);
        } catch {
          // It never came up.
        }
        return load(file, session, tries - 1);
      }
    }
  };

  for (const [number, machine] of machines.entries()) {
    test(`has the parties, functions and times of ${titleOf(machine)}`, async () => {
      const [name, extra] = machine;
      const session = `pkprof-${number}`;
      const threads = JSON.parse(await load(exported(name, "firefox", extra), session)).threads;
      const times = new Times();
      for (const thread of threads) {
        const which = ["--thread", thread.threadHandle, "--session", session];
        const all = JSON.parse(run("thread", "functions", "--json", "--limit", "0", ...which));
        const inBytes = extra.includes("disk");
        assert.equal(all.weightType, inBytes ? "bytes" : "tracing-ms");
        for (const one of all.functions)
          times.add(thread.name, one.functionIndex, one.selfSamples * (inBytes ? 1 : 1e6));
      }
      timesOf(name, extra).expectIn(times, 1e-6);
      run("stop", "--session", session);
    });
  }
});

let browser;
before(async () => {
  browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader"],
  });
});
after(() => browser?.close());

describe("speedscope", () => {
  // The way its own command line opens a file.
  async function open(file) {
    const script = `${file}.js`;
    const packed = readFileSync(file).toString("base64");
    writeFileSync(script, `speedscope.loadFileFromBase64("profile.json", "${packed}")`);
    const page = await browser.newPage();
    await page.setViewport({ width: 1200, height: 4000 });
    const app = join(here, "node_modules/speedscope/dist/release/index.html");
    await page.goto(`file://${app}#localProfilePath=${script}`);
    await page.waitForFunction(() => document.body.innerText.includes("Sandwich"));
    await page.keyboard.press("3");
    await page.waitForFunction(() => document.body.innerText.includes("Symbol Name"));
    return page;
  }

  // "2.45s (45%)", "300.00 MB (94%)": three digits of it.
  const units = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9, B: 1, KB: 2 ** 10, MB: 2 ** 20 };
  function nsOf(text) {
    const [, number, unit] = /^([\d.]+) ?(ns|µs|ms|s|B|KB|MB) /.exec(text);
    return Number(number) * units[unit];
  }
  async function table(page) {
    const rows = await page.$$eval("table tr", (all) =>
      all.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.innerText.trim())),
    );
    return rows
      .filter((cells) => cells.length === 3 && cells[0].includes("%"))
      .map(([total, self, name]) => ({ total: nsOf(total), self: nsOf(self), name }));
  }

  for (const machine of machines) {
    test(`has the parties, functions and times of ${titleOf(machine)}`, async () => {
      const [name, extra] = machine;
      const file = exported(name, "speedscope", extra);
      const page = await open(file);
      const times = new Times();
      const profiles = JSON.parse(readFileSync(file, "utf8")).profiles;
      for (const [i, profile] of profiles.entries()) {
        // "nginx:812 (1/9)" where there are several: of them it shows one, and one key is for the next.
        const title = profiles.length > 1 ? `${profile.name} (${i + 1}/${profiles.length})` : "Sandwich";
        await page.waitForFunction((text) => document.body.innerText.includes(text), {}, title);
        for (const row of await table(page)) times.add(profile.name, row.name, row.self);
        await page.keyboard.press("n");
      }
      timesOf(name, extra).expectIn(times, 0.01);
      await page.close();
    });
  }
});

// What was chrome://tracing. Go's tools bring it along, with what browsers no longer have.
describe("Chrome's trace viewer", () => {
  const goroot = execFileSync("go", ["env", "GOROOT"], { encoding: "utf8" }).trim();
  const page = `<!DOCTYPE html><meta charset="utf-8">
    <script src="/webcomponents.min.js"></script><link rel="import" href="/trace_viewer_full.html">
    <script>document.addEventListener("WebComponentsReady", () => { window.ready = true; });</script>`;
  const file = (name) => readFileSync(join(goroot, "src/cmd/trace/static", name));
  const parts = {
    "/": () => page,
    "/webcomponents.min.js": () => file("webcomponents.min.js"),
    "/trace_viewer_full.html": () => file("trace_viewer_full.html"),
  };
  let server;
  before(async () => {
    server = createServer((request, response) => {
      response.setHeader("Content-Type", "text/html; charset=utf-8");
      const part = parts[request.url];
      response.writeHead(part ? 200 : 404).end(part?.());  // browsers ask for an icon, too
    });
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  });
  after(() => server.close());

  // Of each process that it shows: the time that each series of each counter amounts to, in ms.
  async function counters(trace) {
    const tab = await browser.newPage();
    await tab.goto(`http://127.0.0.1:${server.address().port}/`);
    await tab.waitForFunction(() => window.ready);
    const processes = await tab.evaluate(async (text) => {
      const model = new tr.Model();
      const options = new tr.importer.ImportOptions();
      options.shiftWorldToZero = false;
      await new tr.importer.Import(model, options).importTraces([text]);
      if (model.hasImportWarnings) throw new Error(model.importWarnings[0].message);
      return model.getAllProcesses().map((process) => {
        const series = Object.values(process.counters).flatMap((counter) =>
          counter.series.map(({ name, samples }) => {
            let sum = 0;
            for (const [i, { timestamp, value }] of samples.entries())
              if (i + 1 < samples.length) sum += (value / 100) * (samples[i + 1].timestamp - timestamp);
            return [`${counter.name}: ${name}`, Math.round(sum * 1e3) / 1e3];
          }),
        );
        return { name: process.name, ...Object.fromEntries(series.sort()) };
      });
    }, trace);
    await tab.close();
    return processes;
  }

  test("has each process's time, of its own, received and taken from it", async () => {
    const profile = JSON.parse(readFileSync(exported("timed", "json"), "utf8"));
    const wanted = profile.labels.map(() => new Map());
    const add = (label, series, ns) =>
      wanted[label].set(series, (wanted[label].get(series) ?? 0) + ns / 1e6);
    for (const { ran_on, served, source, ns } of profile.samples) {
      const from = profile.labels[ran_on];
      const to = profile.labels[served];
      const own_work = /^kthread:/.test(source);
      const async = ran_on !== served || own_work || /^(softirq|irq|ipi|timer|work):/.test(source);
      if (to.kind !== "process") add(served, "for it: time", ns);
      else if (async) add(served, "for it: async kernel", ns);
      else add(served, source === "user" ? "for it: user" : "for it: own kernel", ns);
      if (to.kind === "process" && async) add(served, `async: ${source}`, ns);
      if (from.kind === "process" && ran_on !== served && !own_work)
        add(ran_on, "stolen: time", ns);
    }
    const sorted = (all) => all.map((one) => JSON.stringify(one)).sort();
    const shown = await counters(readFileSync(exported("timed", "perfetto"), "utf8"));
    const expected = wanted.map((series) => Object.fromEntries([...series].sort()));
    assert.deepEqual(sorted(shown.map(({ name: _, ...series }) => series)), sorted(expected));
    const names = shown.map(({ name }) => name);
    assert.equal(names.filter((name) => name === "redis-server:900").length, 2, "of one number");
    assert.ok(names.includes("nginx:812") && names.includes("IDLE") && names.includes("STEAL"));
  });
});
