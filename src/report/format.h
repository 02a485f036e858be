// SPDX-License-Identifier: Apache-2.0
// Numbers and names as the text reports write them.
#pragma once

#include <cstdint>
#include <string>

#include "model/profile.h"
#include "report/groups.h"
#include "report/options.h"

namespace pkprof {

// "12.3"; of nothing, "0.0".
[[nodiscard]] std::string percent(uint64_t part, uint64_t whole);
// As percent, but "-" when there is nothing at all.
[[nodiscard]] std::string percent_or_dash(uint64_t part, uint64_t whole);
// Whether percent() would read 0.0.
[[nodiscard]] bool reads_zero(uint64_t part, uint64_t whole);

[[nodiscard]] std::string decimal(double value, int digits);
// "1.375" with three digits; so many digits give the reader four that count of `whole`.
[[nodiscard]] std::string seconds(uint64_t ns, int digits);
[[nodiscard]] int digits_of_seconds(uint64_t whole);
[[nodiscard]] std::string duration_text(uint64_t ns);  // "10.0 s", "18.2 ms", "950 us", "12 ns"
// "4.2 MiB", "812 B", or a duration where the resource is no bytes.
[[nodiscard]] std::string amount_text(Resource of, uint64_t amount);

// "31 %" of a share of 0.31; what is below 1 never reads "100 %".
[[nodiscard]] std::string share_text(double share);
// "watched 31 % of the time (--budget)" of a share below 1; else "".
[[nodiscard]] std::string watched_text(double share);
// The same of a recording, dimmed, with a newline.
[[nodiscard]] std::string watched_line(const Profile& profile, const ReportOptions& options);
// " at 997 Hz", "" if that is not known
[[nodiscard]] std::string frequency_text(const Meta& meta);

// group_title(), cleaned.
[[nodiscard]] std::string party_name(const Profile& profile, By by, const Group& group,
                                     bool unicode);

// "100% = 4.02 s": what the percentages of the flat profile and the tree are of, and where the rest
// of CPUs x time is, so that these reports add up as well.
struct Busy {
  uint64_t busy_ns = 0;  // what the report is about: selected, neither idle nor taken by the host
  uint64_t idle_ns = 0;
  uint64_t steal_ns = 0;      // taken by the host
  uint64_t left_out_ns = 0;   // sampled, busy, but not selected
  uint64_t unsampled_ns = 0;  // as in the ledger
  uint64_t cpu_ns = 0;
  uint32_t cpus = 0;  // cpu_ns is so many times duration_ns
  uint64_t duration_ns = 0;
  double watched = 1;           // share of that time
  Resource of = Resource::cpu;  // of others it sums to no CPU time
};
[[nodiscard]] Busy busy_time(const Profile& profile, const ReportOptions& options);
// "4.0 s shown + 15.9 s idle + ... = 2 CPUs x 10.0 s" with a newline; where not all of the time was
// watched, that in a second line.
[[nodiscard]] std::string busy_line(const Busy& busy, const ReportOptions& options);
// Whether a sample is part of busy_ns.
[[nodiscard]] bool is_busy(const Profile& profile, const SampleKey& key,
                           const ReportOptions& options);

}  // namespace pkprof
