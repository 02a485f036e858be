// SPDX-License-Identifier: Apache-2.0
// What the page's parts of waits and of usage have in common. Private to src/report/page.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>

#include "model/profile.h"
#include "report/groups.h"
#include "report/json_header.h"
#include "report/page/page_stacks.h"

namespace pkprof {

// Strings by number, each once.
class Words {
 public:
  size_t number(const std::string& word) {
    const auto [it, fresh] = numbers_.try_emplace(word, all_.size());
    if (fresh) all_.push_back(word);
    return it->second;
  }
  Json take() { return std::move(all_); }

 private:
  std::unordered_map<std::string, size_t> numbers_;
  Json all_ = Json::array();
};

// A table for each of what its rows can be. Servers wait, and use disks, themselves, whoever their
// client is.
[[nodiscard]] Json tables_to_json(const Profile& profile, const std::function<Json(By)>& table);

// Adds "nodes" and what is summed up.
void add_nodes(Json& to, const PageStacks& stacks);

// By column: who, where, and how much.
[[nodiscard]] Json own_samples_to_json(const PageStacks& stacks);

}  // namespace pkprof
