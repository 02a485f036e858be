// SPDX-License-Identifier: Apache-2.0
// For speedscope.app: a profile for each party, the largest first. The schema is
// https://www.speedscope.app/file-format-schema.json.
#include <nlohmann/json.hpp>

#include "export/exported_stacks.h"
#include "export/format.h"
#include "model/merge.h"

namespace pkprof {

static Result<std::string> export_speedscope(const Profile& profile, const ExportOptions& options) {
  using Json = nlohmann::ordered_json;
  const ExportedStacks stacks = export_stacks(profile, options);
  Json frames = Json::array();
  for (const ExportedFrame& frame : stacks.frames) {
    Json& to = frames.emplace_back(Json{{"name", frame.name}});
    if (!frame.where.empty()) to["file"] = frame.where;
  }
  const char* const unit = is_in_bytes(resource_of(profile)) ? "bytes" : "nanoseconds";
  Json profiles = Json::array();
  for (const ExportedParty& party : stacks.parties) {
    Json samples = Json::array();
    Json weights = Json::array();
    for (const auto& [path, ns] : party.stacks) {
      samples.push_back(path);
      weights.push_back(ns);
    }
    profiles.push_back({{"type", "sampled"},
                        {"name", party.name},
                        {"unit", unit},
                        {"startValue", 0},
                        {"endValue", party.ns},
                        {"samples", std::move(samples)},
                        {"weights", std::move(weights)}});
  }
  const Json all = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                    {"exporter", "pkprof"},
                    {"name", options.ran_on ? "who was on the CPU" : "for whom"},
                    {"activeProfileIndex", 0},
                    {"shared", {{"frames", std::move(frames)}}},
                    {"profiles", std::move(profiles)}};
  return deliver(all.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n", options);
}

extern const ExportFormat speedscope_format{"speedscope", "stacks, for speedscope.app",
                                            export_speedscope};

}  // namespace pkprof
