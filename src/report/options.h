// SPDX-License-Identifier: Apache-2.0
// What the reader of a report may choose. The command line decides, from its flags and from where
// standard output goes; a report does as it is told and knows no terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/groups.h"

namespace pkprof {

// Text with or without colour.
struct Style {
  bool colour = false;

  [[nodiscard]] std::string bold(std::string_view text) const { return wrap("1", text); }
  [[nodiscard]] std::string dim(std::string_view text) const { return wrap("2", text); }
  [[nodiscard]] std::string warning(std::string_view text) const { return wrap("33", text); }
  [[nodiscard]] std::string source(std::string_view text) const { return wrap("36", text); }

 private:
  [[nodiscard]] std::string wrap(std::string_view code, std::string_view text) const {
    if (!colour || text.empty()) return std::string(text);
    return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
  }
};

struct ReportOptions {
  size_t width = 80;    // columns
  bool unicode = true;  // else nothing but ASCII is written
  Style style;
  std::vector<uint32_t> pids;  // empty: all; otherwise the rest is summed up as OTHER
  By by = By::pid;             // what rows are; of the ledger, the tree and JSON
  // Functions of each process (or whatever `by` says) by themselves, of the flat profile and the
  // call graph. They are with `pids`, anyway.
  bool apart = false;
  // Under the ledger, what each row's time was for, by source; with `pids`, anyway.
  bool sources = false;
  size_t limit = 0;        // rows of the main table; 0: all that would not read 0.0 %
  double threshold = 0.5;  // of the tree and the call graph, in percent: less is summed up
};

}  // namespace pkprof
