// SPDX-License-Identifier: Apache-2.0
// Which view is shown.
import { useEffect, useState } from "preact/hooks";

export function Tabs({
  tabs,
  tab,
  onTab,
}: {
  tabs: [string, string][];
  tab: string;
  onTab: (tab: string) => void;
}) {
  const step = (by: number) => {
    const at = tabs.findIndex(([name]) => name === tab);
    const [next] = tabs[(at + by + tabs.length) % tabs.length];
    onTab(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <nav role="tablist" aria-label="Views">
      {tabs.map(([name, text]) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`tab-${name}`}
          aria-selected={name === tab}
          aria-controls="panel"
          tabIndex={name === tab ? 0 : -1}
          onClick={() => onTab(name)}
          onKeyDown={(e) => {
            if (e.key === "ArrowRight") step(1);
            if (e.key === "ArrowLeft") step(-1);
          }}
        >
          {text}
        </button>
      ))}
    </nav>
  );
}

// The tab is in the address, so that Back and a bookmark do what they say.
export function useTab(tabs: [string, string][]): [string, (tab: string) => void] {
  const fromAddress = () => {
    const name = location.hash.slice(1);
    return tabs.some(([known]) => known === name) ? name : tabs[0][0];
  };
  const [tab, setTab] = useState(fromAddress);
  useEffect(() => {
    const follow = () => setTab(fromAddress());
    addEventListener("hashchange", follow);
    const find = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
      event.preventDefault();
      document.querySelector<HTMLInputElement>("main .find")?.focus();
    };
    addEventListener("keydown", find);
    return () => {
      removeEventListener("hashchange", follow);
      removeEventListener("keydown", find);
    };
  }, [tabs]);
  return [
    tab,
    (next) => {
      location.hash = next;
      setTab(next);
    },
  ];
}
