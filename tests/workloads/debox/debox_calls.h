// SPDX-License-Identifier: Apache-2.0
// What pk_debox does: calls of which it is known what they do, and their records.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "debox.hpp"
#include "workload.h"

namespace pkprof::workload {

using Json = nlohmann::ordered_json;

// With all calls recorded, the last one is the record: nothing else may come between.
extern bool all_calls;

// What the last recorded call took by our own clock.
extern uint64_t outer_ns;

void nap_ms(uint64_t ms);
[[nodiscard]] uint32_t own_tid();

// A line of JSON: the record, and what is true.
void say(const std::string& what, const debox_record* record, Json truth);

template <typename Call>
const debox_record* recorded(uint32_t number, const Call& call) {
  const uint64_t start = now_ns();
  if (!all_calls) {
    const debox_record* record = debox::marked(number, call).second;
    outer_ns = now_ns() - start;
    return record;
  }
  call();
  const debox_record* record = debox_last();  // at once: the clock may be a call, too
  outer_ns = now_ns() - start;
  return record;
}

// One of each kind, with `others` that wait for the same and a file at `path` to be read.
void all_kinds(int others, const std::string& path);
// So many calls, of which the last ones are kept.
void many(uint32_t calls, uint32_t records);
// Many threads at once, each with calls that it knows by an argument, reading all of its records.
void storm(int threads, double seconds, const debox_options& options);
// Naps of a millisecond, at least. Of how many is less said, although the kernel did put us to
// sleep?
void nap_often(uint32_t naps);
// Calls of kinds that nothing else here makes, with the kernel's functions that they entered.
void traced();
// What is done elsewhere for a receiver of datagrams, or of a stream, or for one that burns its CPU
// and asks for nothing (port 0), until it is stopped.
void receive(uint16_t port, bool stream);

}  // namespace pkprof::workload
