// SPDX-License-Identifier: Apache-2.0
#include "report/json_header.h"

#include "report/degraded.h"

namespace pkprof {

Json json_header(const Profile& profile, std::string_view schema, By by) {
  const Meta& meta = profile.meta;
  const uint64_t cost_ns = meta.cost_kernel_ns + meta.cost_user_ns;
  const double fraction =
      profile.cpu_ns() == 0 ? 0
                            : static_cast<double>(cost_ns) / static_cast<double>(profile.cpu_ns());
  return {{"schema", schema},
          {"kernel", meta.kernel},
          {"cpus", meta.cpus},
          {"duration_ns", meta.duration_ns},
          {"paused_ns", meta.paused_ns},
          {"frequency_hz", meta.frequency_hz},
          {"cpu_ns", profile.cpu_ns()},
          {"samples", {{"taken", meta.samples_taken}, {"lost", meta.samples_lost}}},
          {"watched", watched_share(meta)},
          {"cost",
           {{"kernel_ns", meta.cost_kernel_ns},
            {"user_ns", meta.cost_user_ns},
            {"fraction", fraction}}},
          {"user_stacks", meta.user_stacks},
          {"degraded", degraded_sentences(profile, by)}};
}

std::string json_line(const Json& object) {
  constexpr bool ensure_ascii = true;
  return object.dump(-1, ' ', ensure_ascii, Json::error_handler_t::replace) + "\n";
}

}  // namespace pkprof
