// SPDX-License-Identifier: Apache-2.0
// Sentences for the report, each once, and not more than a reader can bear.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace pkprof {

class Warnings {
 public:
  void add(std::string text);
  [[nodiscard]] std::vector<std::string> list() const;

 private:
  std::set<std::string> seen_;
  std::vector<std::string> order_;
  size_t left_out_ = 0;
};

}  // namespace pkprof
