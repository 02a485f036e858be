// SPDX-License-Identifier: Apache-2.0
// A web server in JavaScript.
import http from "node:http";

const server = http.createServer((request, response) => {
  let sum = 0;
  for (let i = 0; i < 100_000; ++i) sum += i % 7;
  response.sendDate = false;
  response.setHeader("Content-Length", 5);
  response.end(sum ? "done\n" : "none\n");
});
server.keepAliveTimeout = 0;
server.listen(Number(process.argv[2]), "127.0.0.1", () => console.log("ready"));
