// SPDX-License-Identifier: Apache-2.0
#include "symbol/warnings.h"

#include <utility>

namespace pkprof {
namespace {

constexpr size_t max_warnings = 200;

}  // namespace

void Warnings::add(std::string text) {
  if (seen_.contains(text)) return;
  if (order_.size() >= max_warnings) {
    ++left_out_;
    return;
  }
  seen_.insert(text);
  order_.push_back(std::move(text));
}

std::vector<std::string> Warnings::list() const {
  std::vector<std::string> all = order_;
  if (left_out_ > 0) {
    all.push_back("symbols: " + std::to_string(left_out_) + " more warnings are left out");
  }
  return all;
}

}  // namespace pkprof
