// SPDX-License-Identifier: Apache-2.0
#include "report/histogram/histogram_json.h"

#include "report/degraded.h"
#include "report/json_header.h"

namespace pkprof {

namespace {

void put(const HistogramValue& value, Json& to) {
  to["samples"] = value.samples;
  to["ns"] = value.ns;
}

Json row_to_json(const HistogramRow& row) {
  Json to = {{"first", row.first}, {"last", row.last}};
  put(row.value, to);
  Json& symbols = to["symbols"] = Json::array();
  for (const HistogramSymbol& symbol : row.symbols) {
    Json one = {{"name", symbol.name}, {"offset", symbol.offset}};
    put(symbol.value, one);
    symbols.push_back(std::move(one));
  }
  return to;
}

}  // namespace

std::string histogram_json(const Profile& profile, const Histogram& h) {
  const Meta& meta = profile.meta;
  Json to = {{"schema", "pkprof.histogram/1"}, {"kernel", meta.kernel},
             {"command", meta.command},        {"frequency_hz", meta.frequency_hz},
             {"watched", watched_share(meta)}, {"file", h.file},
             {"build_id", h.build_id}};
  put(h.all, to);
  to["lost"] = meta.samples_lost;
  to["degraded"] = degraded_sentences(profile);
  Json& rows = to["rows"] = Json::array();
  for (const HistogramRow& row : h.rows) rows.push_back(row_to_json(row));
  Json& elsewhere = to["elsewhere"] = Json::array();
  for (const HistogramElsewhere& e : h.elsewhere) {
    Json one = {{"kind", to_string(e.kind)}};
    if (!e.name.empty()) one["name"] = e.name;
    put(e.value, one);
    elsewhere.push_back(std::move(one));
  }
  return json_line(to);
}

}  // namespace pkprof
