// SPDX-License-Identifier: Apache-2.0
#include "report/page/page_stacks.h"

#include <algorithm>
#include <functional>

#include "model/hash.h"
#include "model/source.h"

namespace pkprof {
namespace {

// Nodes by their parent and function.
class StackTree {
 public:
  uint32_t child(uint32_t parent, FunctionId function) {
    const uint64_t hash = hash_words(hash_seed(), {static_cast<uint64_t>(parent) << 32 | function});
    const uint32_t found = index_.find(hash, [&](uint32_t i) {
      return nodes_[i].parent == parent && nodes_[i].function == function;
    });
    if (found != IndexTable::none) return found;
    const auto next = static_cast<uint32_t>(nodes_.size());
    index_.insert(hash, next);
    nodes_.push_back({parent, function});
    return next;
  }

  [[nodiscard]] const std::vector<PageNode>& nodes() const { return nodes_; }
  std::vector<PageNode> take() { return std::move(nodes_); }

 private:
  std::vector<PageNode> nodes_ = {PageNode{}};
  IndexTable index_;
};

// Samples that are alike are one.
class Samples {
 public:
  void add(const PageSample& sample) {
    const uint64_t hash = hash_words(
        hash_seed(),
        {static_cast<uint64_t>(sample.ran_on) << 32 | sample.served,
         static_cast<uint64_t>(sample.source) << 32 | sample.node,
         static_cast<uint64_t>(sample.basis) << 16 | static_cast<uint64_t>(sample.part) << 8 |
             uint64_t{sample.taken},
         static_cast<uint64_t>(sample.by_client.served) << 1 | uint64_t{sample.for_client},
         static_cast<uint64_t>(sample.call) << 32 | sample.waker_node, uint64_t{sample.waker}});
    const uint32_t found =
        index_.find(hash, [&](uint32_t i) { return samples_[i].is_like(sample); });
    if (found != IndexTable::none) {
      samples_[found].ns += sample.ns;
    } else {
      index_.insert(hash, static_cast<uint32_t>(samples_.size()));
      samples_.push_back(sample);
    }
  }
  [[nodiscard]] const std::vector<PageSample>& all() const { return samples_; }
  std::vector<PageSample> take() { return std::move(samples_); }

 private:
  std::vector<PageSample> samples_;
  IndexTable index_;
};

// Time of each node and all below it.
std::vector<uint64_t> totals(const std::vector<PageNode>& nodes,
                             const std::vector<PageSample>& samples) {
  std::vector<uint64_t> sums(nodes.size());
  for (const PageSample& sample : samples) {
    sums[sample.node] += sample.ns;
    if (sample.call) sums[sample.call] += sample.ns;
    if (sample.waker_node) sums[sample.waker_node] += sample.ns;
  }
  for (size_t i = nodes.size(); i-- > 1;) sums[nodes[i].parent] += sums[i];
  return sums;
}

// What is left where no more than so many nodes may be: those with the most time, and so with each
// its parent, which has no less.
void sum_up_small(PageStacks& stacks, size_t most) {
  const std::vector<uint64_t> sums = totals(stacks.nodes, stacks.samples);
  std::vector<uint64_t> order = sums;
  const auto last = order.begin() + static_cast<ptrdiff_t>(most);
  std::ranges::nth_element(order, last, std::greater());
  stacks.small_ns = *last + 1;
  stacks.small = static_cast<FunctionId>(stacks.functions.functions.size());
  StackTree kept;
  std::vector<uint32_t> place_of(stacks.nodes.size());
  for (size_t i = 1; i < stacks.nodes.size(); ++i) {
    const PageNode& node = stacks.nodes[i];
    const uint32_t parent = place_of[node.parent];
    const bool below_small = parent && kept.nodes()[parent].function == stacks.small;
    place_of[i] =
        below_small ? parent
                    : kept.child(parent, sums[i] < stacks.small_ns ? stacks.small : node.function);
  }
  Samples samples;
  for (PageSample sample : stacks.samples) {
    sample.node = place_of[sample.node];
    sample.call = place_of[sample.call];
    sample.waker_node = place_of[sample.waker_node];
    samples.add(sample);
  }
  stacks.nodes = kept.take();
  stacks.samples = samples.take();
}

// A client that was on the CPU itself was in its own context, whatever the server did.
PageCharge charge_to_client(const SampleKey& key, LabelId client) {
  const bool itself = key.ran_on == client;
  return {.served = client, .part = itself ? Part::own : Part::async, .taken = !itself};
}

}  // namespace

bool PageSample::is_like(const PageSample& other) const {
  return ran_on == other.ran_on && served == other.served && source == other.source &&
         basis == other.basis && part == other.part && taken == other.taken &&
         for_client == other.for_client && by_client == other.by_client && call == other.call &&
         node == other.node && waker == other.waker && waker_node == other.waker_node;
}

PageStacks page_stacks(const Profile& profile, size_t most_nodes) {
  PageStacks stacks;
  stacks.functions = functions_of(profile);
  StackTree tree;
  constexpr uint32_t not_known = UINT32_MAX;
  std::vector<uint32_t> node_of(profile.stack_count(), not_known);
  const auto node_at = [&](StackId stack) {
    uint32_t& node = node_of[stack];
    if (node == not_known) {
      node = 0;
      const auto frames = profile.frames_of(stack);
      for (size_t i = frames.size(); i-- > 0;)
        node = tree.child(node, stacks.functions.of_frame[frames[i]]);
    }
    return node;
  };
  Samples samples;
  for (const auto& [key, value] : profile.samples()) {
    if (!is_working(profile.labels()[key.served].kind) || !value.ns) continue;
    const PageCharge charge{key.served, part_of(profile, key), is_taken(profile, key)};
    const LabelId client = profile.clients()[key.client].label;
    const Wakeup& wakeup = profile.wakeups()[key.wakeup];
    samples.add({.ran_on = key.ran_on,
                 .served = charge.served,
                 .source = key.source,
                 .basis = key.basis,
                 .part = charge.part,
                 .taken = charge.taken,
                 .for_client = key.client != 0,
                 .by_client = key.client ? charge_to_client(key, client) : charge,
                 .call = node_at(profile.clients()[key.client].call),
                 .node = node_at(key.stack),
                 .waker = key.wakeup ? wakeup.label : not_woken,
                 .waker_node = node_at(wakeup.stack),
                 .ns = value.ns});
  }
  stacks.nodes = tree.take();
  stacks.samples = samples.take();
  if (stacks.nodes.size() > most_nodes + 1) sum_up_small(stacks, most_nodes);
  return stacks;
}

}  // namespace pkprof
