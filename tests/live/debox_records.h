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

}  // namespace pkprof::live
