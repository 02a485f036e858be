// SPDX-License-Identifier: Apache-2.0
// The strongly connected components of a graph: of calls, functions that call each other around,
// and each of the others by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pkprof {

struct Components {
  std::vector<uint32_t> nodes;       // one component behind the other
  std::vector<size_t> bounds = {0};  // component i is nodes[bounds[i] .. bounds[i+1])

  [[nodiscard]] size_t size() const { return bounds.size() - 1; }
  [[nodiscard]] std::span<const uint32_t> of(size_t i) const {
    return std::span(nodes).subspan(bounds[i], bounds[i + 1] - bounds[i]);
  }
};

// Node i leads to targets[bounds[i] .. bounds[i + 1]). Each component comes behind all that it
// leads to.
[[nodiscard]] Components components_of(std::span<const uint32_t> bounds,
                                       std::span<const uint32_t> targets);

}  // namespace pkprof
