// SPDX-License-Identifier: Apache-2.0
// Bundles the page into one file, with a place for a profile: node build.mjs OUT
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "page.html");

const bundle = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.tsx"],
  bundle: true,
  minify: true,
  write: false,
  outdir: "out",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "ascii",
  legalComments: "inline",
});
const text = (end) => bundle.outputFiles.find((file) => file.path.endsWith(end)).text;
const script = text(".js").replaceAll("</script", "<\\/script");
const style = text(".css").replaceAll("</style", "<\\/style");
// Nothing is fetched, nothing is run but this script.
const hash = createHash("sha256").update(script).digest("base64");
const policy = [
  "default-src 'none'",
  `script-src 'sha256-${hash}'`,
  "style-src 'unsafe-inline'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");
const page = await readFile(join(here, "src/page.html"), "utf8");
const parts = { POLICY: policy, STYLE: style, SCRIPT: script };
await writeFile(
  out,
  page.replace(/@(POLICY|STYLE|SCRIPT)@/g, (_, name) => parts[name]),
);
