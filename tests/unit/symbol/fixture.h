// SPDX-License-Identifier: Apache-2.0
// What the symbol tests share: directories that vanish, programs that are compiled, run and kept
// waiting, and the truth about them from nm.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace pkprof::test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const;
  std::string write(std::string_view name, std::string_view text) const;  // makes directories

 private:
  std::string path_;
};

// How long and from where a test that tries random inputs goes: SYMBOL_FUZZ_SECONDS and
// SYMBOL_FUZZ_SEED in the environment, or `seconds` and 1.
struct FuzzPlan {
  explicit FuzzPlan(int seconds);
  [[nodiscard]] bool more() const { return std::chrono::steady_clock::now() < end; }

  std::mt19937 random;
  std::chrono::steady_clock::time_point end;
};

std::string read_file(const std::string& path);
// Runs a shell command; its output. A failing command fails the test.
std::string sh(const std::string& command);

// A program with functions of many kinds; prints "ADDRESS\n" of main and waits for its input to
// end.
std::string program_source();
// Compiles program_source() to `dir/name`.
std::string compile(const TempDir& dir, const std::string& name, const std::string& flags);

// A running program. Killed, if need be, and reaped at the end.
class Child {
 public:
  explicit Child(const std::vector<std::string>& argv);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  [[nodiscard]] std::string line();  // the next line of its output
  void finish();                     // ends its input and waits

 private:
  pid_t pid_ = -1;
  Fd in_;
  Fd out_;
};

struct NmSymbol {
  uint64_t size = 0;
  std::set<std::string> names;  // mangled
};
// Functions by address, as `nm` with these options tells them.
std::map<uint64_t, NmSymbol> nm_functions(const std::string& file, const std::string& options = "");
uint64_t nm_address(const std::string& file, const std::string& name);

}  // namespace pkprof::test
