// SPDX-License-Identifier: Apache-2.0
// Charges the samples of pauses: when a budget had turned the hooks off, the sampler saw the work,
// its stack and whom it interrupted, but not whom it was for. Such a sample is charged as one that
// is alike was charged while the hooks were on.
//
// Alike is, in this order: the same stack under the same process; the same outer frames (calls on
// the way to the same protocol) under it, the more the better; the same vector under it; then the
// same three under anyone. A kernel thread's samples are alike only within the same piece of work
// (its function), or the same thread. The first of these that has been seen often enough decides,
// and each one before it for a part of the samples, the larger the more often it was seen (under
// the same process also by what was seen before, the less the longer ago): a few samples of the
// same stack say more than many of all that packets do. Among what was seen there a sample goes to
// each party in proportion, where what was seen counts for as much of a pause as stands behind it
// (collect/segments.h): a burst is why hooks are turned off. So estimates of sums are unbiased as
// long as the end of a turn and its pause see the same kind of work, which random lengths take care
// of.
//
// What nothing was like stays unclaimed: "unwatched".
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "collect/parties.h"
#include "collect/row.h"
#include "model/profile.h"

namespace pkprof {

class Spread {
 public:
  // Frames of a stack by number, leaf first; empty when it is not known.
  using StackOf = std::function<std::span<const FrameId>(uint64_t)>;
  using Charge = std::function<void(const Row&, const pk_count&)>;
  // How much of a pause a nanosecond stands for that was seen in this segment (key.watched).
  using Weight = std::function<double(uint8_t)>;

  // `enough_ns`: sampled time that lets what is alike decide for all that is left.
  explicit Spread(uint64_t enough_ns) : enough_ns_(enough_ns) {}

  // A row that a hook named (key.watched), or that waits for being charged
  // (PK_SERVED_UNWATCHED).
  void seen(const Row& row, const pk_count& count);
  void unwatched(const Row& row, const pk_count& count);
  enum class When : uint8_t {
    // By what was seen since the last time. What nothing is alike waits on.
    meanwhile,
    // A profile is handed over, and the next begins. A pause may have been all of it: what was seen
    // before counts as well, the less the longer ago. What nothing is alike is unclaimed.
    interval,
    // As `interval`, with all that was seen since the time before the last; and with what was seen
    // earlier, the less the longer ago, where nothing since is alike: a pause may have been longer.
    last,
  };
  // Charges what waits, so many seconds after the last time. Without `weight` all that was seen
  // counts alike.
  void settle(const StackOf& stack_of, const Charge& charge, When when, double seconds = 1,
              const Weight& weight = {});
  // What was seen up to here is to count only where nothing after it is alike; and whom its objects
  // were for is told now: their numbers may come to be others'. After a settle().
  void put_behind(const Parties::Of& parties_of);
  // Nothing that was seen says anything of what comes. After a settle() at which nothing waited on.
  void forget_seen();
  [[nodiscard]] size_t waiting() const { return waiting_.size(); }
  void each_row(const std::function<void(const Row&)>& visit) const;

 private:
  struct Seen {
    double ns = 0;
    double of_pauses = 0;  // that it stands for
  };
  struct Choice {
    std::vector<std::pair<const Row*, double>> parties;  // with the sum up to and with each
    double ns = 0;                                       // that this was seen for
    std::optional<double> turn;                          // where in [0, 1) the last sample fell
    const Row& next();
  };
  using Choices = std::unordered_map<uint64_t, Choice>;
  using Counts = std::unordered_map<Row, pk_count, RowHash>;
  using Weighed = std::unordered_map<Row, Seen, RowHash>;
  static Choices choices_of(const Weighed& seen, const StackOf& stack_of);
  [[nodiscard]] Weighed weigh(const Weight& weight) const;
  // What samples of a row are alike, most alike first, with the part of them for which it and those
  // before it decide: what was seen for long enough for all that are left, else for as much less.
  using Alike = std::vector<std::pair<Choice*, double>>;
  void add_alike(Alike& alike, Choices& choices, std::span<const uint64_t> keys) const;
  [[nodiscard]] static bool is_decided(const Alike& alike) {
    return !alike.empty() && alike.back().second >= 1;
  }
  const Row& next(const Alike& alike);
  void fade(Weighed& seen, double left) const;

  double enough_ns_;
  double turn_ = 0;   // where the next choice begins: of each there may be one sample at a time
  double level_ = 0;  // where in [0, 1) the last sample fell, among what it is alike
  Counts seen_;       // since the last time, by segment
  Weighed seen_before_;
  Weighed seen_earlier_;
  Counts waiting_;
};

}  // namespace pkprof
