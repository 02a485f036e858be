// SPDX-License-Identifier: Apache-2.0
// `pkprof serve`: the page on loopback.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { fixture, open, openUrl, page, pageOf, pkprof, rows, scratch, texts } from "./browser.mjs";

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
    copyFileSync(fixture("small"), file);
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
    copyFileSync(fixture("called"), file);
    await openUrl(url);
    assert.notDeepEqual(await shownNow(), shown);
    copyFileSync(fixture("small"), file);
  });

  test("shows nothing to those who guess, nor under another name", async () => {
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
    writeFileSync(file, "no profile");
    const answer = await ask(url);
    assert.equal(answer.status, 500);
    assert.match(answer.body, /served\.pb\.gz/);
    copyFileSync(fixture("small"), file);
    assert.equal((await ask(url)).status, 200);
    server.kill("SIGINT");
    assert.deepEqual(await once(server, "exit"), [0, null]);
  });
});
