// SPDX-License-Identifier: Apache-2.0
// Servers' time by client, as both of its tables have it.
import type { ClientRow, Profile, Server } from "./data";

export type NameOf = (label: number) => string;

export const total = (row: ClientRow) => row.user + row.own + row.async;

export function sum(rows: ClientRow[]): ClientRow {
  const all: ClientRow = { user: 0, own: 0, async: 0 };
  for (const row of rows) {
    all.user += row.user;
    all.own += row.own;
    all.async += row.async;
    if (row.requests) all.requests = (all.requests ?? 0) + row.requests;
  }
  return all;
}

// As the ledgers name them.
export function namesOf({ labels, ledgers }: Profile): NameOf {
  const names = new Map<number, string>();
  for (const { groups } of [ledgers!.pid, ledgers!.client])
    for (const { name, labels } of groups) for (const label of labels) names.set(label, name);
  return (label) => names.get(label) ?? labels[label].name;
}

// Servers that are wanted, with all of their rows; of the others, the rows of clients that are.
// Those that did most for clients, of what is left, are first.
export function wanted(servers: Server[], is: (label: number) => boolean): Server[] {
  const forClients = ({ clients }: Server) =>
    total(sum(clients.filter(({ client }) => client !== undefined)));
  return servers
    .map(({ label, clients }) => ({
      label,
      clients: is(label)
        ? clients
        : clients.filter(({ client }) => client !== undefined && is(client)),
    }))
    .filter(({ clients }) => clients.length > 0)
    .sort((a, b) => forClients(b) - forClients(a));
}
