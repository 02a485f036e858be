// SPDX-License-Identifier: Apache-2.0
// What pk_debox says of its calls: a line of JSON each.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace pkprof::live {

// What pk_debox says, by its name.
class Records {
 public:
  explicit Records(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("{\"what\"")) all_.push_back(nlohmann::json::parse(line));
  }
  [[nodiscard]] std::vector<nlohmann::json> all(const std::string& what) const {
    std::vector<nlohmann::json> found;
    for (const nlohmann::json& line : all_)
      if (line.at("what") == what) found.push_back(line);
    return found;
  }
  [[nodiscard]] nlohmann::json one(const std::string& what) const {
    const std::vector<nlohmann::json> found = all(what);
    EXPECT_FALSE(found.empty()) << what;
    return found.empty() ? nlohmann::json::object() : found.front();
  }

 private:
  std::vector<nlohmann::json> all_;
};

inline uint64_t number(const nlohmann::json& of, const char* name) {
  return of.at(name).get<uint64_t>();
}

// Where it waited for what it was to wait for: it may have met a lock besides, which is soon had.
inline nlohmann::json expect_sleep(const nlohmann::json& record, const std::string& place) {
  nlohmann::json found;
  uint64_t total = 0;
  for (const nlohmann::json& sleep : record.at("sleeps")) {
    total += number(sleep, "total_ns");
    if (sleep.at("place").get<std::string>().find(place) != std::string::npos) found = sleep;
  }
  EXPECT_EQ(total, number(record, "asleep_ns"));
  EXPECT_GE(number(record, "wall_ns"), number(record, "asleep_ns") + number(record, "runnable_ns"));
  EXPECT_TRUE(found.is_object()) << place << " " << record;
  if (!found.is_object()) return found;
  EXPECT_EQ(number(found, "count"), 1) << record;
  EXPECT_EQ(number(found, "total_ns"), number(found, "longest_ns"));
  return found;
}

}  // namespace pkprof::live
