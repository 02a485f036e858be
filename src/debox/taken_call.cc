// SPDX-License-Identifier: Apache-2.0
#include "debox/taken_call.h"

#include <algorithm>

namespace pkprof {

std::optional<TakenCall> taken_call(std::string_view bytes, bool stacks, bool traces) {
  TakenCall taken{
      .call = {.record = {}, .trace = {}, .frames = {}}, .stack = {}, .stack_bytes = {}};
  const auto take = [&bytes](auto& to) {
    if (bytes.size() < sizeof(to)) return false;
    bytes.copy(reinterpret_cast<char*>(&to), sizeof(to));
    bytes.remove_prefix(sizeof(to));
    return true;
  };
  if (!take(taken.call.record)) return std::nullopt;
  if (stacks && bytes.size() >= sizeof(db_user_stack)) {
    const auto& from = *reinterpret_cast<const db_user_stack*>(bytes.data());
    taken.stack = {.ip = from.ip, .sp = from.sp, .fp = from.fp, .exact = true, .bytes = {}};
    taken.stack_bytes.assign(reinterpret_cast<const char*>(from.top),
                             std::min<size_t>(from.bytes, sizeof(from.top)));
    bytes.remove_prefix(sizeof(db_user_stack));
  }
  const size_t most = traces ? std::min<size_t>(taken.call.record.traces, DB_OWN_TRACES) : 0;
  for (size_t i = 0; i < most; i += DEBOX_TRACES) {
    debox_trace_piece piece;
    if (!take(piece)) break;
    taken.call.trace.insert(taken.call.trace.end(), piece.trace,
                            piece.trace + std::min<size_t>(most - i, DEBOX_TRACES));
  }
  return taken;
}

}  // namespace pkprof
