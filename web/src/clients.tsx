// SPDX-License-Identifier: Apache-2.0
// For which client a server was working: a matrix of both, and a table for each server. Percentages
// are of one CPU. Times are those of `pkprof report --view clients`.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";

import { Matrix } from "./client_matrix";
import { type NameOf, namesOf, sum, total, wanted } from "./client_rows";
import { More, Search } from "./controls";
import type { ClientRow, Group, Profile, Server } from "./data";
import { duration, percent } from "./format";

interface Props {
  profile: Profile;
  only: Group | null;
  onClient: (label: number) => void;
  onServer: (label: number) => void;
}

const serversAtFirst = 10;
const clientsAtFirst = 15; // of a server

export function Clients({ profile, only, onClient, onServer }: Props) {
  const [search, setSearch] = useState("");
  const [limit, setLimit] = useState(serversAtFirst);
  const nameOf = useMemo(() => namesOf(profile), [profile]);
  const servers = useMemo(() => {
    const chosen = only && new Set(only.labels);
    const text = search.toLowerCase();
    return wanted(
      wanted(profile.servers!, (label) => !chosen || chosen.has(label)),
      (label) => nameOf(label).toLowerCase().includes(text),
    );
  }, [profile, only, search, nameOf]);
  return (
    <div>
      <div class="controls">
        <Search what="server or client" value={search} onInput={setSearch} />
        <output>
          {servers.length} {servers.length === 1 ? "server" : "servers"}
        </output>
      </div>
      {servers.length > 0 ? (
        <Matrix
          profile={profile}
          servers={servers}
          nameOf={nameOf}
          onClient={onClient}
          onServer={onServer}
        />
      ) : (
        <p>No server worked for a client{(only || search) && " here"}.</p>
      )}
      {servers.slice(0, limit).map((server) => (
        <OneServer
          key={server.label}
          profile={profile}
          server={server}
          nameOf={nameOf}
          onClient={onClient}
          onServer={onServer}
        />
      ))}
      <More all={servers.length} limit={limit} onMore={setLimit} />
    </div>
  );
}

interface ServerProps {
  profile: Profile;
  server: Server;
  nameOf: NameOf;
  onClient: Props["onClient"];
  onServer: Props["onServer"];
}

function OneServer({ profile, server, nameOf, onClient, onServer }: ServerProps) {
  const [limit, setLimit] = useState(clientsAtFirst);
  const clients = server.clients.filter((row) => row.client !== undefined);
  const itself = server.clients.find((row) => row.client === undefined);
  const shown = clients.slice(0, limit);
  const hidden = clients.slice(limit);
  const share = (ns: number) => percent(ns / profile.duration_ns);
  const forClients = total(sum(clients));
  const rules = (row: ClientRow) =>
    Object.entries(row.rules ?? {})
      .map(([rule, ns]) => `${rule} ${share(ns)}`)
      .join(", ");
  const line = (key: string, name: ComponentChildren, row: ClientRow) => (
    <tr key={key}>
      <th scope="row">{name}</th>
      {[row.user, row.own, row.async].map((ns, i) => (
        <td key={i} class="number" title={duration(ns)}>
          {share(ns)}
        </td>
      ))}
      <td class="number" title={[duration(total(row)), rules(row)].filter(Boolean).join(": ")}>
        {share(total(row))}
      </td>
      <td class="number">{row === itself ? "" : percent(total(row) / forClients)}</td>
      <td class="number">{row.requests}</td>
      <td class="number">{row.requests && duration(total(row) / row.requests)}</td>
      <td>{row.via?.map(nameOf).join(", ")}</td>
    </tr>
  );
  return (
    <section class="server">
      <h3>
        <button type="button" class="name" onClick={() => onServer(server.label)}>
          {nameOf(server.label)}
        </button>
      </h3>
      <div class="wide">
        <table class="clients">
          <caption>
            {share(forClients)} for clients
            {itself && `, ${share(total(itself))} for itself`}. Percent of one CPU.
          </caption>
          <thead>
            <tr>
              <th scope="col">client</th>
              <th scope="col">user</th>
              <th scope="col">own kernel</th>
              <th scope="col">async kernel</th>
              <th scope="col" title="why it is the client's: taken, replied, woken, asked, shared">
                total
              </th>
              <th scope="col" title="percent of what the server did for its clients">
                share
              </th>
              <th scope="col" title="that the server took of the client">
                requests
              </th>
              <th scope="col" title="CPU time of a request">
                each
              </th>
              <th scope="col" title="servers that passed it on">
                via
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row) =>
              line(
                `${row.client} ${row.via}`,
                <button
                  type="button"
                  class="name"
                  title={rules(row)}
                  onClick={() => onClient(row.client!)}
                >
                  {nameOf(row.client!)}
                </button>,
                row,
              ),
            )}
            {hidden.length > 0 &&
              line(
                "hidden",
                <button type="button" onClick={() => setLimit(limit * 4)}>
                  {hidden.length} more
                </button>,
                sum(hidden),
              )}
            {itself && line("itself", "itself", itself)}
          </tbody>
        </table>
      </div>
    </section>
  );
}
