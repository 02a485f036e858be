// SPDX-License-Identifier: Apache-2.0
// The flame graph: user code, system calls and the asynchronous work behind them in one picture.
// Drawn on a canvas, since a page may have 100,000 stacks; told to those who do not see it by the
// line below, which names the box that is chosen.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { Search } from "./controls";
import { type Colouring, type FlameOf, Painter, palette, worksOf } from "./colours";
import { FrameKind } from "./data";
import { change, percent } from "./format";
import { type Box, boxAt, layout, rowHeight } from "./layout";
import { Callers, Calls, type Frames, type Tree, matching } from "./tree";

interface Props {
  calls: Calls;
  frames: Frames;
  compared: boolean;
  theme: string;
  of?: FlameOf;
  measure?: (share: number) => string;
  onFunction?: (frame: number) => void;
}

const ofCpu = (share: number) => `${percent(share)} % of a CPU`;

const titles: Record<FlameOf, string> = {
  cpu: "Flame graph",
  wait: "Off-CPU flame graph",
  lock: "Flame graph of waits for locks",
  disk: "Flame graph of disks",
  net: "Flame graph of networks",
  memory: "Flame graph of memory",
};

const colourings: [Colouring, string][] = [
  ["kind", "kind of work"],
  ["basis", "how sure it is"],
  ["name", "function"],
  ["change", "change"],
];

// Of a search; null: the text is no regular expression.
export function matcher(text: string, frames: Frames): ((frame: number) => boolean) | null {
  if (!text) return () => false;
  let expression: RegExp;
  try {
    expression = new RegExp(text, "i");
  } catch {
    return null;
  }
  const known: (boolean | undefined)[] = [];
  return (frame) => frame >= 0 && (known[frame] ??= expression.test(frames.name[frame]));
}

export function title(frames: Frames, frame: number): string {
  if (frame < 0) return "all";
  const kind = frames.kind[frame];
  const between = kind === FrameKind.pseudo || kind === "server" || kind === "waker";
  return between ? `«${frames.name[frame]}»` : frames.name[frame];
}

function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(200, entry.contentRect.width)));
    if (element.current) observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}

export function Flame(props: Props) {
  const { calls, frames, compared, theme, of = "cpu", measure = ofCpu, onFunction } = props;
  const [turned, setTurned] = useState(false);
  const [up, setUp] = useState(false);
  const [colouring, setColouring] = useState<Colouring>(compared ? "change" : "kind");
  const [widths, setWidths] = useState<Tree["widths"]>("total");
  const [search, setSearch] = useState("");
  const [zoomed, setZoomed] = useState(0);
  const [chosen, setChosen] = useState<number | null>(null);
  const [box, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);

  const tree = useMemo<Tree>(() => (turned ? new Callers(calls) : calls), [calls, turned]);
  useEffect(() => {
    setZoomed(0);
    setChosen(null);
  }, [tree]);
  const valid = zoomed < tree.frame.length ? zoomed : 0;
  const rows = useMemo(() => {
    tree.widths = widths;
    return layout(tree, valid, width);
  }, [tree, valid, width, widths]);
  const matches = useMemo(() => matcher(search, frames), [search, frames]);
  const found = useMemo(
    () => (search && matches ? matching(calls, matches) : null),
    [calls, search, matches],
  );
  const height = rows.length * rowHeight;
  const rowY = (row: number) => (up ? height - (row + 1) * rowHeight : row * rowHeight);

  useLayoutEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context) return;
    const dots = Math.min(window.devicePixelRatio || 1, 2);
    element.width = width * dots;
    element.height = height * dots;
    element.style.width = `${width}px`;
    element.style.height = `${height}px`;
    context.scale(dots, dots);
    const colour = palette(element);
    const painter = new Painter(frames, tree, of, colouring, turned, colour);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    rows.forEach((boxes, row) => {
      const y = rowY(row);
      for (const { node, x, width: wide } of boxes) {
        const frame = tree.frame[node];
        const hit = search !== "" && matches !== null && matches(frame);
        context.globalAlpha = search && matches && !hit ? 0.35 : 1;
        context.fillStyle = node === 0 ? colour("small") : hit ? colour("hit") : painter.fill(node);
        context.fillRect(x, y, Math.max(wide - 0.7, 0.5), rowHeight - 1);
        if (wide < 26) continue;
        context.fillStyle = hit ? colour("hit-text") : colour("box-text");
        context.save();
        context.beginPath();
        context.rect(x, y, wide - 3, rowHeight);
        context.clip();
        context.fillText(title(frames, frame), x + 3, y + rowHeight / 2);
        context.restore();
      }
    });
    context.globalAlpha = 1;
    if (chosen !== null) outline(context, colour("outline"));
  }, [rows, colouring, search, matches, chosen, up, theme, frames, tree, of]);

  function outline(context: CanvasRenderingContext2D, colour: string) {
    rows.forEach((boxes, row) => {
      const at = boxes.find((b) => b.node === chosen);
      if (!at) return;
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.strokeRect(at.x + 1, rowY(row) + 1, Math.max(at.width - 3, 1), rowHeight - 3);
    });
  }

  function under(event: MouseEvent): Box | undefined {
    const place = canvas.current!.getBoundingClientRect();
    const y = event.clientY - place.top;
    const row = Math.floor((up ? height - y : y) / rowHeight);
    return boxAt(rows, row, event.clientX - place.left);
  }

  function zoom(node: number) {
    setZoomed(node);
    setChosen(node);
  }

  function onKey(event: KeyboardEvent) {
    const at = chosen ?? valid;
    const siblings = at ? tree.children(tree.parent[at]) : [0];
    const place = siblings.indexOf(at);
    const outward = up ? "ArrowDown" : "ArrowUp";
    const inward = up ? "ArrowUp" : "ArrowDown";
    const moves: Record<string, () => void> = {
      [outward]: () => setChosen(tree.parent[at]),
      [inward]: () => setChosen(tree.children(at)[0] ?? at),
      ArrowRight: () => setChosen(siblings[place + 1] ?? at),
      ArrowLeft: () => setChosen(siblings[place - 1] ?? at),
      Home: () => setChosen(0),
      Enter: () => zoom(at),
      f: () => tree.frame[at] >= 0 && onFunction?.(tree.frame[at]),
      Escape: () => zoom(0),
      Backspace: () => zoom(tree.parent[valid]),
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move();
  }

  const told = chosen !== null && chosen < tree.frame.length ? chosen : valid;
  return (
    <div class="flame">
      <div class="controls">
        <Search
          what="function, as a regular expression"
          value={search}
          invalid={matches === null}
          onInput={setSearch}
        />
        <output class="found">
          {matches === null
            ? "no regular expression"
            : found !== null
              ? `${measure(found)} matches`
              : ""}
        </output>
        <label>
          colours{" "}
          <select
            value={colouring}
            onChange={(e) => setColouring(e.currentTarget.value as Colouring)}
          >
            {colourings
              .filter(([value]) => (compared || value !== "change") && !(of === "wait" && value === "basis"))
              .map(([value, text]) => (
                <option key={value} value={value}>
                  {text}
                </option>
              ))}
          </select>
        </label>
        {compared && (
          <label>
            widths{" "}
            <select
              value={widths}
              onChange={(e) => setWidths(e.currentTarget.value as Tree["widths"])}
            >
              <option value="total">after</option>
              <option value="before">before</option>
            </select>
          </label>
        )}
        <label>
          <input
            type="checkbox"
            class="turn"
            checked={turned}
            onChange={(e) => setTurned(e.currentTarget.checked)}
          />{" "}
          callers
        </label>
        <label>
          <input type="checkbox" checked={up} onChange={(e) => setUp(e.currentTarget.checked)} />{" "}
          flames
        </label>
        <button type="button" class="reset" disabled={!valid} onClick={() => zoom(0)}>
          zoom out
        </button>
      </div>
      <p class="legend">
        {colouring === "kind" &&
          worksOf(of).map(([work, text]) => (
            <span key={work}>
              <i class={`swatch ${work}`} /> {text}
            </span>
          ))}
        {colouring === "basis" && (
          <>
            <span>
              <i class="swatch sure" /> known for whom
            </span>
            <span>
              <i class="swatch unsure" /> by shares (voted) or a guess (provisional)
            </span>
          </>
        )}
        {colouring === "change" && (
          <>
            <span>
              <i class="swatch more" /> dearer
            </span>
            <span>
              <i class="swatch same" /> as before
            </span>
            <span>
              <i class="swatch less" /> cheaper
            </span>
          </>
        )}
      </p>
      <div ref={box}>
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-label={`${titles[of]}. Arrow keys choose a box, Enter zooms, Escape zooms out${onFunction ? ", f shows the function" : ""}.`}
          aria-describedby="flame-told"
          onClick={(e) => {
            const hit = under(e);
            if (hit) zoom(hit.node);
          }}
          onMouseMove={(e) => setChosen(under(e)?.node ?? null)}
          onMouseLeave={() => setChosen(null)}
          onKeyDown={onKey}
        />
      </div>
      <p id="flame-told" class="told" aria-live="polite">
        <Told tree={tree} frames={frames} node={told} compared={compared} measure={measure} />{" "}
        {onFunction && tree.frame[told] >= 0 && (
          <button type="button" onClick={() => onFunction(tree.frame[told])}>
            who calls it
          </button>
        )}
      </p>
    </div>
  );
}

function Told({
  tree,
  frames,
  node,
  compared,
  measure,
}: {
  tree: Tree;
  frames: Frames;
  node: number;
  compared: boolean;
  measure: (share: number) => string;
}) {
  const frame = tree.frame[node];
  const total = tree.total(node);
  const place = frame >= 0 ? frames.place[frame] : "";
  const parent = tree.total(tree.parent[node]);
  return (
    <>
      <b>{title(frames, frame)}</b>
      {place && ` in ${place}`}: {measure(total)}
      {node > 0 && parent > 0 && `, ${((total / parent) * 100).toFixed(1)} % of what it stands under`}
      {compared && `, ${change(total - tree.before(node))} points`}
      {!compared &&
        tree.unsure(node) > 0.005 * total &&
        `; for ${((tree.unsure(node) / total) * 100).toFixed(0)} % of it whom it was for is a share or a guess`}
    </>
  );
}
