// SPDX-License-Identifier: Apache-2.0
// What src/report/page/page_data.cc wrote. Times are nanoseconds of CPU time; long tables are by column.

export interface Label {
  kind: "process" | "kernel" | "idle" | "other" | "unclaimed" | "steal" | "remote";
  name: string;
  pid?: number;
  comm?: string;
  kthread?: boolean;
  exe?: string;
  cgroup?: string;
}

export interface Times {
  ran_on: number[];
  served: number[];
  source: number[];
  part: number[]; // enum Part
  taken: number[]; // 1: from whoever was on the CPU
  ns: number[];
}

// To whom each sample is charged by client.
export interface Charges {
  for_client: number[]; // 1: a server worked for a client
  served: number[];
  part: number[];
  taken: number[];
  call: number[]; // node of the client's own call; 0: not known
}

export interface Samples extends Times {
  basis: number[];
  node: number[];
  by_client?: Charges; // where the recording has clients
  server?: number[]; // see chargedToClients()
  call?: number[];
  waker?: number[]; // see ofOwnStacks()
  waker_node?: number[];
}

export const enum Part {
  user,
  own,
  async,
}

// By number, as in the file format.
export const bases = [
  "own",
  "consumed",
  "owner",
  "submitter",
  "dirtier",
  "queuer",
  "voted",
  "provisional",
];
// The first basis that is no more than a share or a guess.
export const firstUnsure = 6;

export const enum FrameKind {
  user,
  kernel,
  pseudo,
}

export interface Group {
  kind: "special" | "member" | "any_thread" | "kernel_threads" | "none" | "unknown";
  name: string;
  labels: number[];
}

export interface Row {
  group: number;
  user: number;
  own: number;
  async: number;
  stolen: number;
  within: number;
  seems: number;
  sources: Record<string, number>;
  basis: number[];
}

// [ran on, served, source, ns, taken]
export type Flow = [number, number, number, number, number];

export interface Ledger {
  groups: Group[];
  rows: Row[];
  kernel: number;
  idle: number;
  steal: number;
  other: number;
  unclaimed: Record<string, number>;
  kernel_seems: number;
  idle_seems: number;
  steal_seems: number;
  other_seems: number;
  unsampled: number;
  sum: number;
  flows: Flow[];
  sources?: Record<string, string>; // of the flows, where they are not the profile's
}

// What a server did for one client, by one way; without a client, for itself.
export interface ClientRow {
  client?: number; // a label
  via?: number[];
  rules?: Record<string, number>;
  requests?: number; // that the server took; none where they cannot be counted
  user: number;
  own: number;
  async: number;
}

export interface Server {
  label: number;
  clients: ClientRow[]; // largest first; what it did for itself is the last
}

// [kind, whom, ns, waits, sentence, and of those who had woken the waker: ns, who, the last first]
export type WaitReason = [number, number, number, number, number, number?, number[]?];

export interface WaitRow {
  who: number; // a group
  cpu: number;
  wait: number; // but for what it was idle
  idle: number;
  kinds: [number, number][]; // [kind, ns]
  reasons: WaitReason[]; // the longest first
}

export interface WaitTable {
  groups: Group[]; // names are as sentences have them
  rows: WaitRow[]; // the longest first
}

// Where in the code a resource other than CPU time was used.
export interface OwnStacks {
  nodes: { up: number[]; function: number[] }; // functions are the profile's
  small: number | null;
  small_ns: number; // bytes, of a resource that is in bytes
  samples: {
    who: number[];
    node: number[];
    ns: number[]; // or bytes
    basis?: number[];
    waker?: number[]; // a label; -1: not known
    waker_node?: number[];
  };
}

export interface Waits extends OwnStacks {
  by: Record<string, WaitTable>;
  kinds: string[];
  sentences: string[];
  samples: OwnStacks["samples"] & { kind: number[] };
}

// [bytes or ns, how often, of disks the ns at the disk]
export type Used = [number, number, number?];
// [word, used], one for each way: "read", "write".
export type Ways = [number, Used][];

export interface Usage {
  all: Used; // but for the time in queues
  ways: Ways;
  devices?: [number, Ways][]; // [word, its ways]
}

export interface UsageRow extends Usage {
  who: number; // a group
  others?: [number, number][]; // [group, ns or bytes], the largest: who held locks, peers
}

export interface UsageTable {
  groups: Group[];
  rows: UsageRow[]; // the largest first; what is no process's at the end
  total: Usage;
}

export type UsedResource = "lock" | "disk" | "net" | "memory";

export interface ResourceUsage extends OwnStacks {
  question: string;
  count: string; // what is counted: "requests"
  bytes: boolean; // else ns
  by: Record<string, UsageTable>;
  words: string[]; // names of ways and devices
}

export interface Profile {
  schema: string;
  kernel: string;
  cpus: number;
  duration_ns: number;
  frequency_hz: number;
  cpu_ns: number;
  watched: number; // share of the time
  cost: { kernel_ns: number; user_ns: number; fraction: number };
  degraded: string[];
  file: string;
  command: string;
  start_unix_ns: number;
  counted: { taken: number; lost: number };
  labels: Label[];
  sources: Record<string, string>;
  stacks: {
    functions: { name: string[]; kind: FrameKind[]; place: number[]; places: string[] };
    nodes: { up: number[]; function: number[] };
    small: number | null;
    small_ns: number;
  };
  samples: Samples;
  timeline: Times & { slot: number[]; slot_ns: number };
  ledgers?: Record<string, Ledger>;
  servers?: Server[]; // where the recording has clients
  resource?: string; // what all but waits and resources are of; none in a comparison
  waits?: Waits; // where it has waits
  resources?: Partial<Record<UsedResource, ResourceUsage>>; // where it has any of these
}

export interface DiffValue {
  a: number;
  b: number;
  change: number;
  margin: number;
  sure: boolean;
}

export interface Diff {
  by: string;
  rows: { name: string; kind: string; costs: DiffValue }[];
  sources: { for: string; source: string; time: DiffValue }[];
  functions: { name: string; where: string; self: DiffValue }[];
}

export interface Page {
  profile: Profile;
  before?: Profile;
  diff?: Diff;
}

// The same profile, but what a server did for a client is served to the client. `server` is then the
// server's label, and -1 for all other samples.
export function chargedToClients(profile: Profile): Profile {
  const { by_client: charges, ...samples } = profile.samples;
  if (!charges) return profile;
  const { for_client, ...charged } = charges;
  const server = samples.served.map((label, i) => (for_client[i] ? label : -1));
  return { ...profile, samples: { ...samples, ...charged, server } };
}

// The same profile, but its samples are of another resource, served to who used it or waited.
export function ofOwnStacks(profile: Profile, own: OwnStacks): Profile {
  const { nodes, small, small_ns, samples } = own;
  const none = samples.ns.map(() => 0);
  return {
    ...profile,
    stacks: { ...profile.stacks, nodes, small, small_ns },
    samples: {
      ran_on: samples.who,
      served: samples.who,
      source: none,
      part: none,
      taken: none,
      basis: samples.basis ?? none,
      node: samples.node,
      ns: samples.ns,
      waker: samples.waker,
      waker_node: samples.waker_node,
    },
  };
}

// A ledger's group among those of another table, which have other numbers.
export function rowOf<Row extends { who: number }>(
  table: { groups: Group[]; rows: Row[] },
  group: Group,
): Row | undefined {
  const labels = new Set(group.labels);
  return table.rows.find(({ who }) => {
    const one = table.groups[who];
    return (
      one.kind === group.kind && one.name === group.name && one.labels.some((l) => labels.has(l))
    );
  });
}

// Unpacks what stands in the page.
export async function load(element: Element): Promise<Page> {
  const packed = atob((element.textContent ?? "").trim());
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; ++i) bytes[i] = packed.charCodeAt(i);
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(plain).json()) as Page;
}
