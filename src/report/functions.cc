// SPDX-License-Identifier: Apache-2.0
#include "report/functions.h"

#include <map>
#include <tuple>

#include "model/hash.h"
#include "report/clean.h"

namespace pkprof {

namespace {

std::string where_of(const Mapping& mapping) {
  if (mapping.file == "[kernel.kallsyms]") return "kernel";
  return mapping.file.substr(mapping.file.rfind('/') + 1);
}

}  // namespace

FunctionTable functions_of(const Profile& profile) {
  FunctionTable table;
  std::map<std::string, uint32_t> where_ids;
  std::vector<uint32_t> where_of_mapping;
  for (const Mapping& mapping : profile.mappings()) {
    const auto next = static_cast<uint32_t>(where_ids.size());
    where_of_mapping.push_back(where_ids.try_emplace(where_of(mapping), next).first->second);
  }

  using Key = std::tuple<StringId, uint32_t, FrameKind>;
  std::vector<Key> keys;
  IndexTable index;
  table.of_frame.reserve(profile.frames().size());
  for (const Frame& frame : profile.frames()) {
    const bool mapped = frame.mapping != no_mapping;
    const Key key(frame.function, mapped ? where_of_mapping[frame.mapping] : UINT32_MAX,
                  frame.kind);
    const uint64_t hash =
        hash_words(hash_seed(), {static_cast<uint64_t>(std::get<0>(key)) << 32 | std::get<1>(key),
                                 static_cast<uint64_t>(frame.kind)});
    uint32_t id = index.find(hash, [&](uint32_t i) { return keys[i] == key; });
    if (id == IndexTable::none) {
      id = static_cast<uint32_t>(keys.size());
      index.insert(hash, id);
      keys.push_back(key);
      table.functions.push_back(
          {.name = frame.function == 0 ? "[unknown]" : profile.text(frame.function),
           .where = mapped ? where_of(profile.mappings()[frame.mapping]) : "",
           .kind = frame.kind,
           .named = frame.function != 0});
    }
    table.of_frame.push_back(id);
  }
  return table;
}

std::string function_title(const Function& function, bool unicode) {
  std::string name = clean(function.name, unicode);
  if (function.kind != FrameKind::pseudo) return name;
  return unicode ? "«" + name + "»" : "<" + name + ">";
}

}  // namespace pkprof
