// SPDX-License-Identifier: Apache-2.0
// pkprof doctor.
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "probe/facts.h"
#include "record/doctor.h"

namespace pkprof {
namespace {

std::string as_json(const Diagnosis& d) {
  nlohmann::ordered_json out;
  out["schema"] = "pkprof.doctor/1";
  out["kernel"] = kernel_release();
  out["can_record"] = d.can_record;
  out["capabilities"] = nlohmann::ordered_json::array();
  for (const Capability& c : d.capabilities) {
    nlohmann::ordered_json row{{"name", c.name}, {"works", c.works}, {"how", c.how}};
    if (!c.works) row["costs"] = c.costs;
    out["capabilities"].push_back(std::move(row));
  }
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string as_text(const Diagnosis& d, const ReportOptions& r) {
  size_t name_width = 0;
  for (const Capability& c : d.capabilities) name_width = std::max(name_width, c.name.size());
  std::string out = "kernel " + kernel_release() + "\n";
  for (const Capability& c : d.capabilities) {
    out += c.works ? "  ok  " : r.style.warning("  no  ");
    out += c.name + std::string(name_width - c.name.size() + 2, ' ') + c.how + "\n";
    if (!c.works) out += std::string(name_width + 8, ' ') + "without it: " + c.costs + "\n";
  }
  out += d.can_record ? "pkprof can record on this machine.\n"
                      : "pkprof cannot record on this machine as it is run now.\n";
  return out;
}

}  // namespace

void add_doctor(ArgParser& parser, CommandLine& line) {
  auto json = std::make_shared<bool>(false);
  ArgParser sub = parser.subcommand("doctor", "Say what works on this machine, and what does not");
  sub.add("--json", *json, "As one JSON object");
  sub.when_used([json, &line] {
    line.action = [json] {
      const Diagnosis d = diagnose();
      if (!print(*json ? as_json(d) : as_text(d, terminal_options()))) return exit_failure;
      return d.can_record ? 0 : exit_failure;
    };
  });
}

}  // namespace pkprof
