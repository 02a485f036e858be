// SPDX-License-Identifier: Apache-2.0
// A real browser for the tests of the page. PKPROF: the program; FIXTURES: profiles that
// tests/fixtures.cc wrote. No request leaves the machine: the page has to do without.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before } from "node:test";
import { pathToFileURL } from "node:url";

import puppeteer from "puppeteer-core";

export const pkprof = process.env.PKPROF;
const fixtures = process.env.FIXTURES;
export const fixture = (name) => join(fixtures, `${name}.pb.gz`);
export const scratch = mkdtempSync(join(tmpdir(), "pkprof-page-"));
let browser;
export let page;
// What went wrong, since the page was opened.
export let complaints = [];

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

export function pageOf(name) {
  const file = join(scratch, `${name}.html`);
  execFileSync(pkprof, ["report", fixture(name), "--html", file]);
  return file;
}

// The same profile's report, as JSON.
export const report = (name, ...more) =>
  JSON.parse(
    execFileSync(pkprof, ["report", fixture(name), "--json", ...more], {
      maxBuffer: 1 << 28,
    }),
  );
// Of one CPU, rounded as the page does it.
export const percent = (ns, of) => {
  const value = (ns / of.duration_ns) * 100;
  if (!value) return "–";
  return value < 0.05 ? "0.0" : value.toFixed(1);
};
// As the page writes times.
export function duration(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]])
    if (ns >= size) return `${(ns / size).toFixed(ns / size < 10 ? 2 : 1)} ${unit}`;
  return `${Math.round(ns)} ns`;
}
export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; ++unit) n /= 1024;
  return `${unit && n < 100 ? n.toFixed(1) : n.toFixed(0)} ${units[unit]}`;
}
// As the terminal shows it, too.
export const printable = (name) =>
  name.replace(/[\x00-\x1f\x7f]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`);

export const open = (file, hash = "") => openUrl(pathToFileURL(file).href + hash);

// Nothing but the page itself is asked for.
export async function openUrl(url) {
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

export const text = (selector) => page.$eval(selector, (e) => e.textContent);
export const texts = (selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent));
// Of each row that is met, the texts of its cells.
export const cells = (selector) =>
  page.$$eval(selector, (all) => all.map((tr) => [...tr.children].map((e) => e.textContent)));
export const tab = (name) => page.click(`#tab-${name}`);
export const rows = ".ledger tbody:first-of-type";
