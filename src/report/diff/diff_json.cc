// SPDX-License-Identifier: Apache-2.0
#include "report/diff/diff_text.h"
#include "report/json_header.h"

namespace pkprof {
namespace {

Json to_json(const DiffValue& value) {
  return {{"a", value.a},
          {"b", value.b},
          {"change", value.change()},
          {"margin", value.margin()},
          {"sure", value.is_sure()}};
}

Json about(const Profile& profile, const std::string& name) {
  const Meta& meta = profile.meta;
  return {{"file", name},
          {"kernel", meta.kernel},
          {"cpus", meta.cpus},
          {"duration_ns", meta.duration_ns},
          {"frequency_hz", meta.frequency_hz},
          {"samples", meta.samples_taken},
          {"watched", watched_share(meta)}};
}

}  // namespace

std::string diff_json(const Profile& a, const std::string& name_a, const Profile& b,
                      const std::string& name_b, const ReportOptions& options) {
  const Diff diff = diff_profiles(a, b, options.by, options.pids);
  Json out = {{"schema", "pkprof.diff/1"},
              {"by", to_string(options.by)},
              {"unit", "share of one CPU"},
              {"a", about(a, name_a)},
              {"b", about(b, name_b)}};
  Json& rows = out["rows"] = Json::array();
  for (const DiffRow& row : diff.rows) {
    Json to = {{"name", row.name}, {"kind", to_string(row.kind)}, {"costs", to_json(row.costs)}};
    if (row.kind != GroupKind::special) {
      to["user"] = to_json(row.user);
      to["own"] = to_json(row.own);
      to["async"] = to_json(row.async);
      to["stolen"] = to_json(row.stolen);
    }
    rows.push_back(std::move(to));
  }
  Json& sources = out["sources"] = Json::array();
  for (const DiffSource& source : diff.sources)
    sources.push_back(
        {{"for", source.name}, {"source", source.source}, {"time", to_json(source.time)}});
  Json& functions = out["functions"] = Json::array();
  for (const DiffFunction& f : diff.functions)
    functions.push_back({{"name", f.function.name},
                         {"where", f.function.where},
                         {"kind", to_string(f.function.kind)},
                         {"self", to_json(f.self)}});
  return json_line(out);
}

}  // namespace pkprof
