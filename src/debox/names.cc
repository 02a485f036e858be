// SPDX-License-Identifier: Apache-2.0
#include "debox/names.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "attribution/sources.h"
#include "pkprof/debox_user_abi.h"

namespace pkprof {

std::string call_name(uint32_t kind) {
  return syscall_name(static_cast<uint16_t>(kind % DB_CALLS), kind >= DB_CALLS);
}

std::string call_name(const debox_record& record) {
  return syscall_name(static_cast<uint16_t>(record.number), record.flags & DEBOX_COMPAT);
}

DeboxNames::DeboxNames(std::optional<KernelSymbols> symbols, bool lines)
    : symbols_(std::move(symbols)) {
  if (!lines || !symbols_) return;
  if (auto found = KernelLines::open(*symbols_, {})) lines_.emplace(std::move(*found));
}

std::string DeboxNames::name_of(uint64_t address) {
  if (!symbols_) return "";
  const KernelSymbol* symbol = symbols_->find(address);
  if (!symbol) return "";
  std::string place(symbol->name);
  if (address == symbol->start) return place;
  char offset[24];
  std::snprintf(offset, sizeof offset, "+0x%llx",
                static_cast<unsigned long long>(address - symbol->start));
  place += offset;
  if (!lines_) return place;
  const SourceLine line = lines_->find(address - 1);  // behind a call
  return line.line ? place + " at " + line.file + ":" + std::to_string(line.line) : place;
}

void DeboxNames::add_places(const std::map<uint32_t, uint64_t>& places) {
  for (const auto& [number, address] : places)
    if (!places_.contains(number)) places_[number] = name_of(address);
}

std::string DeboxNames::place(uint32_t number) const {
  const auto it = places_.find(number);
  return it == places_.end() ? "" : it->second;
}

bool DeboxNames::know(const SlowCall& slow) const {
  const auto known = [this](uint32_t place) { return !place || places_.contains(place); };
  const debox_sleep* const sleep = slow.record.sleep;
  return std::all_of(sleep, sleep + std::min<size_t>(slow.record.sleeps, DEBOX_SLEEPS),
                     [&](const debox_sleep& s) { return known(s.place) && known(s.inside); }) &&
         std::ranges::all_of(slow.trace, [&](const debox_trace& c) { return known(c.function); });
}

}  // namespace pkprof
