// SPDX-License-Identifier: Apache-2.0
// The file: a gzip'd pprof profile (github.com/google/pprof, proto/profile.proto) that
// `go tool pprof` opens as it is, and that holds everything a Profile holds.
//
// Why pprof: thousands of tools read it, it interns what we intern (strings, functions, locations,
// mappings), and it has a place for our labels. Why not only pprof: it does not know processes.
// So what pprof has a place for is where pprof readers look for it, and is read back from there;
// the rest is one JSON object in a comment. Nothing is written twice, so nothing can disagree.
//
//   sample_type     samples/count, cpu/nanoseconds, and exact/nanoseconds and calls/count when
//                   any sample has them; default_sample_type is cpu; read back by name
//   sample          stack leaf first; string labels ran-on, served (names of labels, see below),
//                   source, basis, cgroup, container and host (of the served label; for readers
//                   only); numbers thread and served-thread, where threads are labelled; of a
//                   server at work for a client, the client's label and client-rule (for readers),
//                   and client-number, its place in the table of clients
//   location        one frame, at most one line; a pseudo frame has no mapping and no address; an
//                   empty stack is one pseudo frame "[no stack]", since pprof drops samples
//                   without a location and its totals would be short
//   mapping         as in memory; "[kernel.kallsyms]", "[module]", "[bpf]" for kernel code
//   time, duration, period    1e9/hz nanoseconds
//   comment         `#` and the JSON object, schema "pkprof.meta/1": kernel, cpus, frequency, what
//                   was taken, lost and degraded, the cost, the counters, the label table, the
//                   names of threads, the clients, the timeline, the kinds of the frames that do
//                   not show it, and the addresses that linkers gave to mappings. The `#` keeps `go
//                   tool pprof` from printing the comment above each of its reports.
//
// Labels are known by their names ("nginx:812"), made unique ("nginx:812#2" when a pid was used
// again) and recorded in the label table, so tools that renumber or drop samples (`pprof -proto`
// with a filter) leave a file that is still a pkprof profile. A frame is a kernel frame when its
// address is in the upper half, a pseudo frame when it has neither mapping nor address; only
// frames for which that is wrong are listed.
//
// All text is escaped reversibly (escape.h): the file is valid UTF-8 and harmless to print.
//
// The decoder trusts nothing. Inflated size, table sizes, stack depth, nesting and the sums of
// values are bounded; every id is checked; each failure is one sentence. Its memory is bounded by
// a small multiple of the inflated size, which is bounded by the size of the file.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"
#include "model/profile.h"

namespace pkprof {

// The gzip'd file contents. Fails when the profile is too large for one file (4 GiB inflated).
[[nodiscard]] Result<std::string> encode_pprof(const Profile& profile);

// Reads what encode_pprof wrote (gzip'd or not). A pprof file of another origin is an error: it
// has no served processes to speak of.
[[nodiscard]] Result<Profile> decode_pprof(std::span<const std::byte> bytes);

// Writes the profile so that `path` holds either what it held before or all of the profile, also
// after a crash or on a full disk; see model/file.h. "-" and /dev/stdout are standard output.
[[nodiscard]] Result<> write_profile(const Profile& profile, const std::string& path);

// "-" is standard input.
[[nodiscard]] Result<Profile> read_profile(const std::string& path);

}  // namespace pkprof
