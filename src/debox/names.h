// SPDX-License-Identifier: Apache-2.0
// Names for what DeBox's records say in numbers: calls and places in the kernel.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "model/system_calls.h"
#include "symbol/kernel_lines.h"
#include "symbol/symbolizer.h"

namespace pkprof {

// "read"; of a kind as db_calls has it.
[[nodiscard]] std::string call_name(uint32_t kind);
[[nodiscard]] std::string call_name(const debox_record& record);

class DeboxNames {
 public:
  // Without the kernel's symbols places have no names; with `lines` they have files and lines, too,
  // where these are to be had.
  DeboxNames(std::optional<KernelSymbols> symbols, bool lines);

  [[nodiscard]] const KernelSymbols* symbols() const { return symbols_ ? &*symbols_ : nullptr; }

  // Addresses by number, of places that have no names yet.
  void add_places(const std::map<uint32_t, uint64_t>& places);
  [[nodiscard]] const std::map<uint32_t, std::string>& places() const { return places_; }
  [[nodiscard]] std::string place(uint32_t number) const;  // "" if it was not added
  // Whether a record's places have all been added.
  [[nodiscard]] bool know(const SlowCall& slow) const;

 private:
  [[nodiscard]] std::string name_of(uint64_t address);

  std::optional<KernelSymbols> symbols_;
  std::optional<KernelLines> lines_;
  std::map<uint32_t, std::string> places_;
};

}  // namespace pkprof
