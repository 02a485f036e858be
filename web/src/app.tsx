// SPDX-License-Identifier: Apache-2.0
// The page as a whole: what was recorded, what was lost, and the views, of all or of one process or
// group.
import { useEffect, useMemo, useState } from "preact/hooks";

import { type Side, accept } from "./accept";
import { Changes } from "./changes";
import { Clients } from "./clients";
import { Small } from "./controls";
import { type Page, type Profile, chargedToClients } from "./data";
import { Flame } from "./flame";
import { Flows } from "./flows";
import { count, duration, shareText } from "./format";
import { Functions } from "./functions";
import { LedgerTable } from "./ledger";
import { Resources } from "./resources/resources";
import { Tabs, useTab } from "./tabs";
import { Timeline } from "./timeline";
import { Calls, Frames, Numbered, type Wanted } from "./tree";
import { Waits } from "./waits/waits";

const groupings: Record<string, string> = {
  pid: "process",
  thread: "thread",
  comm: "name",
  exe: "program",
  cgroup: "control group",
  container: "container",
  unit: "systemd unit",
  host: "host",
  client: "client",
};

function tabsOf({ profile, diff }: Page): [string, string][] {
  const others: [string, string][] = [];
  if (profile.servers) others.push(["clients", "Clients"]);
  if (profile.waits) others.push(["waits", "Waits"]);
  if (profile.resources) others.push(["resources", "Resources"]);
  // The rest is of CPU time. A page of another resource alone has none.
  if (others.length && (profile.resource ?? "cpu") !== "cpu") return others;
  const tabs: [string, string][] = [
    ["ledger", "Ledger"],
    ["flame", "Flame graph"],
    ["flows", "Who takes from whom"],
    ...others,
    ["timeline", "Timeline"],
    ["functions", "Functions"],
  ];
  return diff ? [["changes", "Changes"], ...tabs] : tabs;
}

export function App({ page }: { page: Page }) {
  const { profile, before, diff } = page;
  const tabs = useMemo(() => tabsOf(page), [page]);
  const [tab, setTab] = useTab(tabs);
  const [by, setBy] = useState("pid");
  const [group, setGroup] = useState<number | null>(null);
  const [side, setSide] = useState<Side>("served");
  const [root, setRoot] = useState<Wanted["root"]>("served");
  const [part, setPart] = useState("all");
  const [chosen, setChosen] = useState<number | null>(null);
  const [theme, setTheme] = useTheme();
  const ledger = profile.ledgers![by];

  const byClient = by === "client";
  const charged = useMemo(
    () => (byClient ? chargedToClients(profile) : profile),
    [profile, byClient],
  );
  const frames = useMemo(() => new Frames(), [page]);
  const numbered = useMemo(() => new Numbered(charged, frames), [charged, frames]);
  const numberedBefore = useMemo(
    () => before && new Numbered(byClient ? chargedToClients(before) : before, frames),
    [before, byClient, frames],
  );
  const needsCalls = tab === "flame" || tab === "functions";
  const calls = useMemo(() => {
    if (!needsCalls) return null;
    const labels = group === null ? null : new Set(ledger.groups[group].labels);
    return new Calls(numbered, numberedBefore, {
      root: tab === "functions" ? "none" : root,
      accept: accept(charged, labels, side, part),
    });
  }, [needsCalls, tab === "functions", numbered, numberedBefore, ledger, group, side, root, part]);

  // All that was done for a party: of a client by its servers, too.
  const showParty = (by: string, label: number) => {
    setBy(by);
    const found = profile.ledgers![by].groups.findIndex((g) => g.labels.includes(label));
    setGroup(found < 0 ? null : found);
    setSide("served");
    setPart("all");
    setTab("flame");
  };
  const showFunction = (frame: number | null) => {
    setChosen(frame);
    if (frame !== null) setTab("functions");
  };
  return (
    <>
      <header>
        <h1>For whom was the kernel working?</h1>
        <button
          type="button"
          class="theme"
          onClick={() => setTheme(theme === "dark" ? "light" : "dark")}
        >
          {theme === "dark" ? "light" : "dark"}
        </button>
        <Facts profile={profile} before={before} />
        <Lost profile={profile} />
        {before && <Lost profile={before} />}
      </header>
      <Tabs tabs={tabs} tab={tab} onTab={setTab} />
      <main>
      <div role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`}>
        {tab !== "changes" && (
          <div class="controls selection">
            <label>
              rows by{" "}
              <select
                class="by"
                value={by}
                onChange={(e) => {
                  setBy(e.currentTarget.value);
                  setGroup(null);
                }}
              >
                {Object.keys(profile.ledgers!).map((name) => (
                  <option key={name} value={name}>
                    {groupings[name] ?? name}
                  </option>
                ))}
              </select>
            </label>
            <label>
              only{" "}
              <select
                class="only"
                value={group === null ? "" : String(group)}
                onChange={(e) =>
                  setGroup(e.currentTarget.value === "" ? null : Number(e.currentTarget.value))
                }
              >
                <option value="">all</option>
                {choices(ledger.rows.map((row) => row.group), group).map((id) => (
                  <option key={id} value={String(id)}>
                    {ledger.groups[id].name}
                  </option>
                ))}
              </select>
            </label>
            {needsCalls && (
              <>
                {group !== null && (
                  <label>
                    as{" "}
                    <select
                      class="side"
                      value={side}
                      onChange={(e) => setSide(e.currentTarget.value as Side)}
                    >
                      <option value="served">for whom it was</option>
                      <option value="ran_on">who was on the CPU</option>
                    </select>
                  </label>
                )}
                <label>
                  of{" "}
                  <select class="part" value={part} onChange={(e) => setPart(e.currentTarget.value)}>
                    <option value="all">all work</option>
                    <option value="0">user code</option>
                    <option value="1">own kernel work</option>
                    <option value="2">async kernel work</option>
                    <option value="taken">what was taken from others</option>
                  </select>
                </label>
              </>
            )}
            {tab === "flame" && (
              <label>
                grouped{" "}
                <select
                  class="root"
                  value={root}
                  onChange={(e) => setRoot(e.currentTarget.value as Wanted["root"])}
                >
                  <option value="served">for whom it was</option>
                  <option value="ran_on">by who was on the CPU</option>
                  <option value="none">not at all</option>
                </select>
              </label>
            )}
          </div>
        )}
        {tab === "changes" && diff && <Changes diff={diff} />}
        {tab === "ledger" && (
          <LedgerTable
            key={by}
            ledger={ledger}
            cpus={profile.cpus}
            duration={profile.duration_ns}
            by={groupings[by] ?? by}
            selected={group}
            waits={profile.waits !== undefined}
            resources={profile.resources !== undefined}
            onSelect={setGroup}
            onShow={setTab}
          />
        )}
        {tab === "flame" && calls && (
          <Flame
            calls={calls}
            frames={frames}
            compared={before !== undefined}
            theme={theme}
            onFunction={showFunction}
          />
        )}
        {tab === "flows" && <Flows profile={profile} ledger={ledger} selected={group} />}
        {tab === "timeline" && (
          <Timeline
            profile={profile}
            ledger={ledger}
            selected={group}
            byClient={byClient}
            theme={theme}
          />
        )}
        {tab === "clients" && (
          <Clients
            profile={profile}
            only={group === null ? null : ledger.groups[group]}
            onClient={(label) => showParty("client", label)}
            onServer={(label) => showParty("pid", label)}
          />
        )}
        {tab === "waits" && (
          <Waits
            key={by}
            profile={profile}
            by={by}
            rows={groupings[byClient ? "pid" : by] ?? by}
            only={group === null ? null : ledger.groups[group]}
            theme={theme}
          />
        )}
        {tab === "resources" && (
          <Resources
            profile={profile}
            by={by}
            rows={groupings[byClient ? "pid" : by] ?? by}
            only={group === null ? null : ledger.groups[group]}
            theme={theme}
          />
        )}
        {tab === "functions" && calls && (
          <Functions calls={calls} frames={frames} chosen={chosen} onChoose={showFunction} />
        )}
        {needsCalls && (
          <Small least={profile.stacks.small_ns && duration(profile.stacks.small_ns)} />
        )}
      </div>
      </main>
    </>
  );
}

// A list to choose from is of no use with thousands in it: the largest, and what is chosen.
function choices(groups: number[], group: number | null): number[] {
  const some = groups.slice(0, 200);
  if (group !== null && !some.includes(group)) some.push(group);
  return some;
}

function Facts({ profile, before }: { profile: Profile; before?: Profile }) {
  const { cost, counted } = profile;
  return (
    <p class="facts">
      {profile.file}
      {before && ` beside ${before.file}`}: Linux {profile.kernel}, {profile.cpus} CPUs,{" "}
      {duration(profile.duration_ns)}
      {profile.command && (
        <>
          {" "}
          of <code>{profile.command}</code>
        </>
      )}
      ; {count(counted.taken)} samples at {count(profile.frequency_hz)} Hz. pkprof itself took{" "}
      {(100 * cost.fraction).toFixed(2)} % of all CPU time.
      {watchedText(profile, "")}
      {before && watchedText(before, `${before.file}: `)}
    </p>
  );
}

function watchedText({ watched }: Profile, which: string): string {
  return watched < 1 ? ` ${which}watched ${shareText(watched)} of the time (--budget).` : "";
}

function Lost({ profile }: { profile: Profile }) {
  const said = [...profile.degraded];
  if (profile.counted.lost) said.unshift(`${count(profile.counted.lost)} samples were lost`);
  if (!said.length) return null;
  return (
    <section class="lost" aria-label="What this profile lacks">
      <ul>
        {said.slice(0, 6).map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
        {said.length > 6 && (
          <li>
            <details>
              <summary>{said.length - 6} more</summary>
              <ul>
                {said.slice(6).map((sentence) => (
                  <li key={sentence}>{sentence}</li>
                ))}
              </ul>
            </details>
          </li>
        )}
      </ul>
    </section>
  );
}

function useTheme(): [string, (theme: string) => void] {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const [theme, setTheme] = useState(system.matches ? "dark" : "light");
  useEffect(() => {
    const follow = () => setTheme(system.matches ? "dark" : "light");
    system.addEventListener("change", follow);
    return () => system.removeEventListener("change", follow);
  }, []);
  document.documentElement.dataset.theme = theme;
  return [theme, setTheme];
}
