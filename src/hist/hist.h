// SPDX-License-Identifier: Apache-2.0
// One program, run so many times, and where its instruction pointer was: what `pkprof hist` does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/profile.h"
#include "symbol/elf/file_code.h"

namespace pkprof {

struct HistOptions {
  std::vector<std::string> command;
  std::string user;  // whom it runs as; empty: as we do
  uint64_t frequency_hz = 997;
  uint32_t repeat = 1;
};

// The profile has one process, that of the command and all its threads; with several runs that of
// the first stands for all. Its `exe` is the program it became last, named as mappings name it. A
// sample is `user`, `syscall` or `kernel` (a fault or an interrupt), its stack the one frame of
// user code that was left. What is not the program's is in the counters.
class HistRecording {
 public:
  HistRecording();
  ~HistRecording();
  HistRecording(HistRecording&&) noexcept;

  Profile profile;
  uint32_t runs = 0;
  int command_status = 0;     // of the last run, as a shell gives it
  std::string command_error;  // why the command could not be executed; there is no profile then

  // The code of a file that the last run had mapped.
  [[nodiscard]] std::optional<FileCode> code_of(const std::string& file);

 private:
  friend class HistSession;
  struct Symbols;
  std::unique_ptr<Symbols> symbols_;
};

// Runs the command to its end, or until SIGINT, SIGTERM or SIGHUP comes; what was gathered is kept.
[[nodiscard]] Result<HistRecording> record_hist(const HistOptions& options);

}  // namespace pkprof
