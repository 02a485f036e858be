// SPDX-License-Identifier: Apache-2.0
// A profile of rows. A database says which charges there are, summed up over cuts; what they refer
// to is then asked of it, table by table, each row once.
#pragma once

#include <string>
#include <vector>

#include "model/profile.h"
#include "store/rows.h"

namespace pkprof::store {

// Adds the rows with these numbers to `rows`, in any order. `ids` are sorted and each is there
// once.
class ContentReader {
 public:
  ContentReader() = default;
  ContentReader(const ContentReader&) = delete;
  ContentReader& operator=(const ContentReader&) = delete;
  virtual ~ContentReader() = default;
  virtual void read(const std::vector<Id>& ids, std::vector<StringRow>& rows) = 0;
  virtual void read(const std::vector<Id>& ids, std::vector<MappingRow>& rows) = 0;
  virtual void read(const std::vector<Id>& ids, std::vector<FrameRow>& rows) = 0;
  virtual void read(const std::vector<Id>& ids, std::vector<StackRow>& rows) = 0;
  virtual void read(const std::vector<Id>& ids, std::vector<LabelRow>& rows) = 0;
  virtual void read(const std::vector<Id>& ids, std::vector<ClientRow>& rows) = 0;
  virtual void read(const std::vector<Id>& ids, std::vector<WakeupRow>& rows) = 0;
};

// What a query found. Rows of cuts have been summed up: their `cut` and `number` mean nothing.
struct QueryRows {
  // By all columns that are no sums, in order of their first cut; start_unix_ns is that cut's.
  std::vector<CutRow> cuts;
  std::vector<ChargeRow> charges;  // in order of appearance
  std::vector<RequestRow> requests;
  std::vector<ThreadRow> threads;  // the first name of each, in order of appearance
  std::vector<FigureRow> figures;
  // What was incomplete, and where; in order of appearance.
  struct DegradedHost {
    std::string host;
    Id sentence = 0;
  };
  std::vector<DegradedHost> degraded;
};

// Throws a Failure where rows refer to what is not there, or say what no pkprof writes.
[[nodiscard]] Profile profile_of(const QueryRows& found, ContentReader& reader);

}  // namespace pkprof::store
