// SPDX-License-Identifier: Apache-2.0
#include "debox/async_feed.h"

#include <algorithm>

#include "base/clock.h"
#include "probe/functions.h"

namespace pkprof {
namespace {

constexpr uint64_t frequency_hz = 997;
constexpr uint64_t take_interval_ns = 1'000'000'000;

}  // namespace

AsyncFeed::AsyncFeed(KernelSide kernel, HookOverhead overhead, double budget)
    : kernel_(std::move(kernel)), budget_(kernel_, {.budget = budget}, overhead) {}

Result<std::unique_ptr<AsyncFeed>> AsyncFeed::start(const KernelFacts& facts,
                                                    const KernelSymbols* symbols,
                                                    const DeboxMemory& debox, double budget) {
  KernelSideOptions options;
  options.frequency_hz = frequency_hz;
  options.threads = true;
  options.debox = debox;
  auto loaded = LoadedKernel::load(facts, options);
  if (!loaded) return std::unexpected(loaded.error());
  const HookOverhead overhead = loaded->overhead();
  const KnownFunctions functions = symbols ? find_functions(*symbols) : KnownFunctions{};
  auto kernel = std::move(*loaded).attach(symbols ? &functions : nullptr);
  if (!kernel) return std::unexpected(kernel.error());
  std::unique_ptr<AsyncFeed> self(new AsyncFeed(std::move(*kernel), overhead, budget));
  if (auto r = self->kernel_.enable(); !r) return std::unexpected(r.error());
  self->started_ = self->kernel_.clocks().started();
  self->budget_.begin();
  return self;
}

AsyncFeed::~AsyncFeed() {
  budget_.turn_off(WhileOff::clock_goes_on);
}

uint64_t AsyncFeed::turn() {
  const uint64_t now = monotonic_ns();
  // Where the hooks cannot go on it is tried again.
  if (const bool watching = kernel_.clocks().enabled(); budget_.keep() != watching) {
    if (watching) {
      budget_.turn_off(WhileOff::clock_goes_on);
      // What is on account is for nobody of later.
      static_cast<void>(kernel_.tables().take_leftovers());
    } else {
      [[maybe_unused]] const auto on = budget_.turn_on();
    }
  }
  if (now >= next_take_) {
    // That there is room. Where it cannot be taken it is tried again.
    if (kernel_.tables().take()) next_take_ = now + take_interval_ns;
    static_cast<void>(kernel_.clocks().open_returned());
  }
  // Whose new sockets are: asking has a hundredth of the time.
  if (now >= next_ask_) {
    const uint64_t before = monotonic_ns();
    kernel_.owners().ask();
    next_ask_ = std::max(now + take_interval_ns / 4, before + 100 * (monotonic_ns() - before));
  }
  return std::min({budget_.next(), next_take_, next_ask_});
}

uint64_t AsyncFeed::cost_ns() const {
  double ns = 0;
  for (const double clock_ns : kernel_.clock_ns()) ns += clock_ns;
  for (size_t g = 0; g < hook_groups; ++g) {
    const auto group = static_cast<HookGroup>(g);
    for (const uint64_t runs : kernel_.hooks().runs(group))
      ns += static_cast<double>(runs) * budget_.hook_ns(group);
  }
  return static_cast<uint64_t>(ns);
}

double AsyncFeed::watched() const {
  const uint64_t now = monotonic_ns();
  return static_cast<double>(kernel_.clocks().watched_ns(now)) /
         static_cast<double>(std::max<uint64_t>(now - started_, 1));
}

}  // namespace pkprof
