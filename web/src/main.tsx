// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { App } from "./app";
import { load } from "./data";

const root = document.getElementById("root")!;
load(document.getElementById("profile")!).then(
  (page) => {
    document.title = `${page.profile.file} – pkprof`;
    root.textContent = ""; // render() would keep it
    render(<App page={page} />, root);
  },
  (error: unknown) => {
    root.textContent = `This page cannot be shown: ${error}. It needs a browser of 2023 or later, and has to be whole: write it again with pkprof report --html.`;
  },
);
