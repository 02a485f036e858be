// SPDX-License-Identifier: Apache-2.0
#include "report/degraded.h"

namespace pkprof {

std::vector<std::string> degraded_sentences(const Meta& meta) {
  std::vector<std::string> sentences = meta.degraded;
  for (const auto& [name, count] : meta.counters) {
    if (count != 0) sentences.push_back(name + ": " + std::to_string(count));
  }
  return sentences;
}

}  // namespace pkprof
