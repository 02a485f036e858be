// SPDX-License-Identifier: Apache-2.0
// Servers' time by client: the view of them, and all other views by client.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { beforeEach, describe, test } from "node:test";

import {
  fixture,
  open,
  page,
  pageOf,
  percent,
  pkprof,
  printable,
  report,
  rows,
  tab,
  text,
  texts,
} from "./browser.mjs";

const costs = ({ user_ns, own_ns, async_ns }) => user_ns + own_ns + async_ns;
const sum = (all) => all.reduce((total, ns) => total + ns, 0);
const clients = () => report("clients", "--view", "clients");
// As the page names a process by its pid, and one elsewhere by its address.
const titleOf = (id, comm) => (typeof id === "number" ? `${printable(comm)}[${id}]` : id);
const told = () => text(".told");
const numbers = (all) => all.map((t) => Number(t.replace("–", "0")));
// Each number that is shown is rounded by half a tenth at most, and what is below reads 0.0.
const near = (shown, wanted, count, what) =>
  assert.ok(Math.abs(shown - wanted) <= 0.0501 * count, `${what}: ${shown}, not ${wanted}`);

test("a recording without clients offers none", async () => {
  await open(pageOf("small"));
  assert.equal(await page.$("#tab-clients"), null);
  assert.ok(!(await texts(".by option")).includes("client"));
});

describe("the servers", () => {
  beforeEach(async () => {
    await open(pageOf("clients"), "#clients");
    await page.waitForSelector(".server");
  });

  const tables = () =>
    page.$$eval(".server", (all) =>
      all.map((server) => ({
        name: server.querySelector("h3").textContent,
        rows: [...server.querySelectorAll("tbody tr")].map((tr) => ({
          cells: [...tr.querySelectorAll("th, td")].map((cell) => cell.textContent),
          titles: [...tr.querySelectorAll("[title]")].map((cell) => cell.title),
        })),
      })),
    );
  const showAll = async () => {
    for (let more; (more = await page.$("#panel > div > button, .server tbody button:not(.name)")); )
      await more.click();
  };

  test("have the report's numbers", async () => {
    await showAll();
    const wanted = clients();
    const shown = await tables();
    assert.equal(shown.length, wanted.servers.length);
    wanted.servers.forEach((server, i) => {
      assert.equal(shown[i].name, `${server.comm}[${server.pid}]`);
      const itself = shown[i].rows.pop();
      assert.equal(itself.cells[0], "itself");
      assert.equal(itself.cells[4], percent(server.for_itself_ns, wanted));
      assert.equal(shown[i].rows.length, server.for_clients.length);
      const all = sum(server.for_clients.map(costs));
      server.for_clients.forEach((client, j) => {
        const { cells } = shown[i].rows[j];
        assert.equal(cells[0], titleOf(client.client, client.comm));
        const { user_ns, own_ns, async_ns } = client;
        assert.deepEqual(
          cells.slice(1, 6),
          [
            ...[user_ns, own_ns, async_ns, costs(client)].map((ns) => percent(ns, wanted)),
            percent(costs(client), { duration_ns: all }),
          ],
          cells[0],
        );
        assert.equal(cells[6], `${client.requests ?? ""}`);
        assert.equal(cells[7] !== "", client.requests !== undefined);
        assert.equal(cells[8] === "nginx[200]", client.via.includes(200), cells[8]);
      });
    });
  });

  test("say why their time is a client's", async () => {
    const wanted = clients();
    const [first] = (await tables())[0].rows;
    const [client] = wanted.servers[0].for_clients;
    assert.ok(Object.keys(client.rules).length > 0);
    for (const [rule, ns] of Object.entries(client.rules))
      for (const title of [first.titles[0], first.titles.at(-1)])
        assert.ok(title.includes(`${rule} ${percent(ns, wanted)}`), title);
  });

  test("with many clients add up to what they cost", async () => {
    const wanted = clients();
    const nginx = wanted.servers.find((server) => server.pid === 200);
    const table = (await tables()).find(({ name }) => name === "nginx[200]");
    assert.ok(table.rows.length < nginx.for_clients.length);
    const shown = numbers(table.rows.map(({ cells }) => cells[4]));
    const all = (100 * (sum(nginx.for_clients.map(costs)) + nginx.for_itself_ns)) / wanted.duration_ns;
    near(sum(shown), all, shown.length, "nginx");
    const shares = numbers(table.rows.slice(0, -1).map(({ cells }) => cells[5]));
    near(sum(shares), 100, shares.length, "shares");
    assert.match(table.rows.at(-2).cells[0], /^\d+ more$/);
  });

  test("are searched, and chosen", async () => {
    await page.keyboard.press("/");
    await page.keyboard.type("192.0.2.2");
    const asked = (name) => /^192\.0\.2\.2/.test(name);
    for (const { rows } of await tables())
      for (const { cells } of rows) assert.ok(asked(cells[0]) || /more$/.test(cells[0]), cells[0]);
    assert.deepEqual((await tables()).map(({ name }) => name), ["nginx[200]", "postgres[300]"]);
    await page.type(".find", " and no other");
    assert.equal((await tables()).length, 0);
    await page.$eval(".find", (e) => e.select());
    await page.keyboard.press("Backspace");
    const [cache] = await page.$$eval(".only option", (all) =>
      all.filter((e) => e.textContent === "redis-server[500]").map((e) => e.value),
    );
    await page.select(".only", cache);
    const [{ name, rows }, ...others] = await tables();
    assert.equal(name, "redis-server[500]");
    assert.deepEqual(rows.map(({ cells }) => cells[0]), ["redis-server[500]", "itself"]);
    assert.deepEqual(others, []);
  });

  test("as a matrix: bounded, and it adds up", async () => {
    const wanted = clients();
    const lines = await page.$$eval(".matrix tr", (all) =>
      all.map((tr) => [...tr.children].map((cell) => cell.textContent)),
    );
    const [head, ...body] = lines;
    const foot = body.pop();
    assert.ok(body.length < wanted.servers.length && body.length <= 13);
    assert.ok(head.length <= 16);
    assert.match(body.at(-1)[0], /^\d+ others$/);
    assert.match(head.at(-3), /^\d+ others$/);
    assert.deepEqual(head.slice(-2), ["itself", "all"]);
    const total = (server) => sum(server.for_clients.map(costs)) + server.for_itself_ns;
    const expected = wanted.servers.map(total);
    const share = (ns) => (100 * ns) / wanted.duration_ns;
    body.slice(0, -1).forEach((row, i) => near(Number(row.at(-1)), share(expected[i]), 1, row[0]));
    near(Number(body.at(-1).at(-1)), share(sum(expected.slice(body.length - 1))), 1, "others");
    near(Number(foot.at(-1)), share(sum(expected)), 1, "all");
    const itself = sum(wanted.servers.map((server) => server.for_itself_ns));
    near(Number(foot.at(-2)), share(itself), 1, "itself");
    for (const row of [...body, foot]) {
      const [all, ...cells] = numbers(row.slice(1)).reverse();
      near(sum(cells), all, cells.length + 1, row[0]);
    }
    head.slice(1).forEach((name, i) => {
      const [all, ...cells] = numbers(lines.slice(1).map((row) => row[i + 1])).reverse();
      near(sum(cells), all, cells.length + 1, name);
    });
  });

  test("as a matrix: larger is darker", async () => {
    const cells = await page.$$eval(".matrix tbody td:not(:last-child)", (all) =>
      all.map((td) => [Number(td.textContent), Number(td.style.getPropertyValue("--heat"))]),
    );
    cells.sort((a, b) => a[0] - b[0]);
    assert.equal(cells.at(-1)[1], 1);
    for (let i = 1; i < cells.length; ++i)
      if (cells[i][0] > cells[i - 1][0]) assert.ok(cells[i][1] > cells[i - 1][1], `${cells[i]}`);
  });

  test("have tables with headings, and names that the keys reach", async () => {
    assert.equal(await page.$(".matrix th:not([scope]), .clients th:not([scope])"), null);
    await page.focus(".matrix thead button");
    const [name] = await texts(".matrix thead button");
    await page.keyboard.press("Enter");
    await page.waitForSelector("canvas");
    assert.equal(await page.$eval(".only", (e) => e.selectedOptions[0].textContent), name);
    assert.equal(await page.$eval(".by", (e) => e.value), "client");
  });

  test("fit a narrow screen, and the dark", async () => {
    await page.setViewport({ width: 380, height: 700 });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    // It is moved sideways, not squeezed: each name is on one line.
    const [browser] = await page.$$eval(".matrix thead .name", (all) =>
      all.filter((e) => e.textContent === "browser[100]").map((e) => e.offsetHeight),
    );
    assert.ok(browser < 30, `${browser} px`);
    const moved = await page.$eval("[role=region]", (e) => {
      e.scrollLeft = e.scrollWidth;
      const left = e.querySelector("tbody th").getBoundingClientRect().left >= 0;
      const far = e.scrollLeft;
      e.scrollLeft = 0;
      const right = e.querySelector("tbody td:last-child").getBoundingClientRect().right <= innerWidth;
      return { far: far > 0, left, right };
    });
    assert.deepEqual(moved, { far: true, left: true, right: true }, "names and sums stay");
    const colours = () =>
      page.$eval(".matrix tbody th", (e) => [getComputedStyle(e).backgroundColor, getComputedStyle(e).color]);
    const light = await colours();
    await page.click(".theme");
    const dark = await colours();
    assert.notEqual(dark[0], light[0]);
    assert.notEqual(dark[1], light[1]);
    assert.equal(dark[0], await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
  });
});

describe("by client", () => {
  beforeEach(async () => {
    await open(pageOf("clients"));
    await page.select(".by", "client");
  });

  test("the ledger is the report's, with servers' time at their clients", async () => {
    const wanted = report("clients", "--by", "client");
    const shown = await page.$$eval(`${rows} tr`, (all) =>
      all.map((tr) => [...tr.querySelectorAll("th, td.number")].map((e) => e.textContent)),
    );
    assert.equal(shown.length, wanted.processes.length);
    for (const process of wanted.processes) {
      const { user_ns, own_ns, async_ns, stolen_ns } = process;
      const cells = [costs(process), user_ns, own_ns, async_ns, stolen_ns].map((ns) => percent(ns, wanted));
      const name = process.pid ? `[${process.pid}]` : process.comm;
      assert.ok(
        shown.some((row) => row[0].endsWith(name) && row.slice(2).join() === cells.join()),
        `${name}: ${cells} is not in ${JSON.stringify(shown)}`,
      );
    }
    const all = await texts(".ledger .last td.number");
    await page.select(".by", "pid");
    assert.deepEqual(await texts(".ledger .last td.number"), all);
    const browser = wanted.processes.find(({ pid }) => pid === 100);
    const itself = report("clients").processes.find(({ pid }) => pid === 100);
    assert.ok(costs(browser) > 5 * costs(itself));
  });

  test("flows say which server it was", async () => {
    await tab("flows");
    await page.waitForSelector(".matrix");
    const listed = await page.$$eval(".flows tbody tr", (all) =>
      all.map((tr) => [...tr.children].map((e) => e.textContent)),
    );
    const { flows } = report("clients", "--by", "client");
    const ns = sum(
      flows.filter((f) => f.ran_on === 300 && f.served === 100 && f.source === "server:postgres").map((f) => f.ns),
    );
    assert.ok(ns > 0);
    const [, , shown, by] = listed.find(([on, to]) => on === "postgres[300]" && to === "browser[100]");
    assert.equal(shown, percent(ns, clients()));
    assert.equal(by, `server:postgres ${shown}`);
  });

  test("the flame graph has servers below their clients, and is as large", async () => {
    const all = async (by) => {
      await page.select(".by", by);
      await page.focus("canvas");
      await page.keyboard.press("Home");
      return told();
    };
    await tab("flame");
    await page.waitForSelector("canvas");
    const whole = await all("client");
    assert.match(whole, /^all: [1-9]/);
    await page.type(".flame .find", "^served by nginx:200$");
    const nginx = clients().servers.find(({ pid }) => pid === 200);
    const share = () => text(".found");
    assert.equal(
      await share(),
      `${percent(sum(nginx.for_clients.map(costs)), clients())} % of a CPU matches`,
    );
    assert.equal(await all("pid"), whole);
    assert.match(await share(), /^– %/);
  });

  test("a server that is its own client is below itself", async () => {
    await tab("flame");
    await page.waitForSelector("canvas");
    await page.type(".flame .find", "^served by redis-server:500$");
    const redis = clients().servers.find(({ pid }) => pid === 500);
    assert.ok((await text(".found")).startsWith(`${percent(costs(redis.for_clients[0]), clients())} %`));
  });

  test("the timeline says that it does not tell clients apart", async () => {
    await tab("timeline");
    await page.waitForSelector(".chart");
    assert.match(await text(".note"), /a server's time is the server's/);
    await page.select(".by", "pid");
    assert.equal(await page.$(".note"), null);
  });
});

// Clicks on a name, and tells what the flame graph is of then.
const follow = async (selector, name) => {
  for (const button of await page.$$(selector))
    if ((await button.evaluate((e) => e.textContent)) === name) {
      await button.click();
      break;
    }
  await page.waitForSelector("canvas");
  await page.focus("canvas");
  await page.keyboard.press("Home");
  assert.equal(await page.$eval(".only", (e) => e.selectedOptions[0].textContent), name);
  return told();
};

describe("a name among the servers", () => {
  beforeEach(async () => {
    await open(pageOf("clients"), "#flame");
    await page.waitForSelector("canvas");
    await page.select(".part", "1");
    await tab("clients");
    await page.waitForSelector(".server");
  });

  test("of a client leads to its flame graph, with its servers' time", async () => {
    const wanted = report("clients", "--by", "client");
    const browser = wanted.processes.find(({ pid }) => pid === 100);
    const all = await follow(".clients .name", "browser[100]");
    assert.ok(all.startsWith(`all: ${percent(costs(browser), wanted)} %`), all);
    // By way of the browser's own call.
    for (const frame of [/^browser:100/, /^main/, /^«syscall:read»/, /^do_syscall_64/]) {
      await page.keyboard.press("ArrowDown");
      assert.match(await told(), frame);
    }
    await page.keyboard.press("ArrowDown");
    assert.match(await told(), /^«served by postgres:300»/);
  });

  test("of a client elsewhere, too", async () => {
    const wanted = report("clients", "--by", "client");
    const client = wanted.processes.find(({ comm }) => comm === "192.0.2.1");
    const all = await follow(".clients .name", "192.0.2.1");
    assert.ok(all.startsWith(`all: ${percent(costs(client), wanted)} %`), all);
  });

  test("of a server leads to the server's own", async () => {
    const wanted = report("clients");
    const server = wanted.processes.find(({ pid }) => pid === 300);
    const all = await follow(".server h3 .name", "postgres[300]");
    assert.ok(all.startsWith(`all: ${percent(costs(server), wanted)} %`), all);
  });
});

test("two recordings are compared by client: what is the same has not changed", async () => {
  const file = pageOf("clients").replace("clients.html", "clients-diff.html");
  execFileSync(pkprof, ["diff", fixture("clients"), fixture("clients"), "--html", file]);
  await open(file, "#clients");
  await page.waitForSelector(".server");
  const wanted = report("clients", "--by", "client");
  for (const name of ["browser[100]", "192.0.2.1"]) {
    const client = wanted.processes.find(({ pid, comm }) => comm === name || `${comm}[${pid}]` === name);
    const all = await follow(".clients .name", name);
    assert.equal(all.trim(), `all: ${percent(costs(client), wanted)} % of a CPU, +0.00 points`);
    await page.select(".only", "");
    await tab("clients");
    await page.waitForSelector(".server");
  }
});

test("hostile names of clients are text", async () => {
  await open(pageOf("clients"));
  await page.select(".by", "client");
  for (const view of ["clients", "flame", "flows", "timeline", "functions"]) {
    await tab(view);
    await page.waitForSelector(`#tab-${view}[aria-selected=true]`);
    assert.equal(await page.$("#root img, #root script"), null);
  }
  await tab("clients");
  assert.ok((await texts(".clients .name")).some((name) => name.includes("<img src=x")));
});

test("exported, it is the same page", async () => {
  const file = pageOf("clients").replace("clients.html", "exported.html");
  execFileSync(pkprof, ["export", fixture("clients"), "--to", "html", "-o", file]);
  await open(file, "#clients");
  await page.waitForSelector(".server");
});
