// SPDX-License-Identifier: Apache-2.0
// A recording of the machine as it is, as a user makes it; what it says of itself; and a table of
// recordings of several kinds.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/profile.h"
#include "process.h"

namespace pkprof::scale {

// A column of a table: recordings of one kind.
struct Column {
  std::string head;
  std::map<std::string, std::vector<double>> figures;  // by name, one for each recording
  Json losses = Json::object();                        // counters that were not 0

  void add(const Json& told);  // a recording's figures: those of its members that are numbers
};

struct RecordOptions {
  std::string bin;  // where pkprof is
  int seconds = 5;
  std::vector<std::string> more;                          // arguments
  std::function<Json(const Profile&)> figures = nullptr;  // further ones
};

[[nodiscard]] Result<> record_once(const RecordOptions& options, Column& column);

// Medians. Every column has the figures of the first.
void print_table(const std::string& what, const std::vector<Column>& columns);

}  // namespace pkprof::scale
