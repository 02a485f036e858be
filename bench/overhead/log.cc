// SPDX-License-Identifier: Apache-2.0
#include "log.h"

#include <sstream>

namespace pkprof::overhead {
namespace {

using Json = nlohmann::ordered_json;

Json place_of(const Slice& slice, const char* first) {
  return {{first, slice.workload},
          {"hz", slice.hz},
          {"variant", slice.variant},
          {"round", slice.round},
          {"turn", slice.turn}};
}

// What came out of a program may hold anything: never a reason not to write the line.
std::string line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

RunInfo read_info(const Json& json) {
  RunInfo info;
  info.date = json.value("date", "");
  info.kernel = json.value("kernel", "");
  info.cpu = json.value("cpu", "");
  info.cpus = json.value("cpus", 0);
  info.memory_mb = json.value("memory_mb", 0);
  info.seconds = json.value("seconds", 0.0);
  info.lead = json.value("lead", 0.0);
  info.settle = json.value("settle", 0.0);
  info.rounds = json.value("rounds", 0);
  info.turns = json.value("turns", 0);
  info.awake = json.value("awake", false);
  info.tools = json.value("tools", std::vector<std::string>());
  for (const Json& w : json.value("workloads", Json::array())) {
    info.workloads.push_back(
        {w.at("name"), w.value("title", ""), w.value("unit", ""), w.value("what", "")});
  }
  for (const Json& v : json.value("variants", Json::array())) {
    info.variants.push_back({v.at("name"), v.value("command", "")});
  }
  return info;
}

Slice read_slice(const Json& json, const char* first) {
  return {json.at(first),   json.at("hz"),         json.at("variant"),
          json.at("round"), json.value("turn", 0), json.value("value", 0.0)};
}

void read_line(const Json& json, std::vector<Run>& runs) {
  if (json.contains("run")) {
    runs.push_back({read_info(json.at("run")), {}, {}, {}});
    return;
  }
  if (runs.empty()) runs.emplace_back();
  Run& run = runs.back();
  if (json.contains("skipped")) {
    run.skipped.push_back({json.at("skipped"), json.value("why", "")});
  } else if (json.contains("failed")) {
    run.failures.push_back({read_slice(json, "failed"), json.value("why", "")});
  } else if (json.contains("workload")) {
    run.slices.push_back(read_slice(json, "workload"));
  }
}

}  // namespace

std::string to_line(const RunInfo& info) {
  Json workloads = Json::array();
  for (const WorkloadInfo& w : info.workloads) {
    workloads.push_back({{"name", w.name}, {"title", w.title}, {"unit", w.unit}, {"what", w.what}});
  }
  Json variants = Json::array();
  for (const VariantInfo& v : info.variants) {
    variants.push_back({{"name", v.name}, {"command", v.command}});
  }
  return line({{"run",
                {{"date", info.date},
                 {"kernel", info.kernel},
                 {"cpu", info.cpu},
                 {"cpus", info.cpus},
                 {"memory_mb", info.memory_mb},
                 {"seconds", info.seconds},
                 {"lead", info.lead},
                 {"settle", info.settle},
                 {"rounds", info.rounds},
                 {"turns", info.turns},
                 {"awake", info.awake},
                 {"tools", info.tools},
                 {"workloads", workloads},
                 {"variants", variants}}}});
}

std::string to_line(const Skip& skip) {
  return line({{"skipped", skip.name}, {"why", skip.why}});
}

std::string to_line(const Slice& slice) {
  Json json = place_of(slice, "workload");
  json["value"] = slice.value;
  return line(json);
}

std::string to_line(const Failure& failure) {
  Json json = place_of(failure.slice, "failed");
  json["why"] = failure.why;
  return line(json);
}

Result<std::vector<Run>> parse_log(const std::string& text) {
  std::vector<Run> runs;
  std::istringstream in(text);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    try {
      read_line(Json::parse(line), runs);
    } catch (const Json::exception& e) {
      return fail("line " + std::to_string(number) + ": " + e.what());
    }
  }
  return runs;
}

}  // namespace pkprof::overhead
