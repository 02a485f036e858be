// SPDX-License-Identifier: Apache-2.0
// For the Firefox Profiler (profiler.firefox.com): its "processed profile", version 48, which every
// later version reads. It is described by
// https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md
//
// That viewer knows threads, of which each has a track: here a thread is a party, the largest
// first. It knows when each sample was; a profile does not, so stacks stand one after the other,
// each as long as it took, and a track is as long as its party's time. Of what is in bytes a
// nanosecond is a byte.
// Categories, by which it colours, are where code is from: user code, kernel, system calls,
// asynchronous work, who ended a wait.
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "export/exported_stacks.h"
#include "export/format.h"
#include "model/merge.h"

namespace pkprof {
namespace {

using Json = nlohmann::ordered_json;

constexpr int version = 48;
constexpr int resource_library = 1;  // of its resource types

// Of a frame's. The viewer wants one by the name of "Other"; colours are by the viewer's names.
enum Category : int { other, user, kernel, context, waker };
Json categories() {
  Json all = Json::array();
  for (const auto& [name, colour] : {std::pair{"Other", "grey"},
                                     {"User", "yellow"},
                                     {"Kernel", "orange"},
                                     {"What the kernel was asked for", "blue"},
                                     {"Who ended the wait", "purple"}})
    all.push_back({{"name", name}, {"color", colour}, {"subcategories", {"Other"}}});
  return all;
}

Category category_of(const ExportedFrame& frame) {
  if (frame.of_waker) return waker;
  switch (frame.kind) {
    case FrameKind::user:
      return user;
    case FrameKind::kernel:
      return kernel;
    case FrameKind::pseudo:
      return context;
  }
  return other;
}

double milliseconds(uint64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

// A table of the format: an object of columns of one length.
class Table {
 public:
  explicit Table(std::vector<std::string> columns) : names_(std::move(columns)) {
    values_.resize(names_.size(), Json::array());
  }
  size_t add(std::vector<Json> row) {
    for (size_t i = 0; i < row.size(); ++i) values_[i].push_back(std::move(row[i]));
    return length_++;
  }
  [[nodiscard]] Json json() && {
    Json table = {{"length", length_}};
    for (size_t i = 0; i < names_.size(); ++i) table[names_[i]] = std::move(values_[i]);
    return table;
  }

 private:
  std::vector<std::string> names_;
  std::vector<Json> values_;
  size_t length_ = 0;
};

// A party: tables of the functions that are in its stacks, and these as a tree.
class Thread {
 public:
  Thread(const ExportedStacks& all, bool is_in_bytes) : all_(all), is_in_bytes_(is_in_bytes) {}

  Json run(const ExportedParty& party, size_t number) {
    uint64_t so_far = 0;
    for (const ExportedStack& stack : party.stacks) {
      const Json weight = is_in_bytes_ ? Json(stack.ns) : Json(milliseconds(stack.ns));
      samples_.add({node_of(stack.frames), milliseconds(so_far), weight});
      so_far += stack.ns;
    }
    // Its name in the track's title; ids only tell parties apart.
    const std::string id = std::to_string(number + 1);
    Json samples = std::move(samples_).json();
    samples["weightType"] = is_in_bytes_ ? "bytes" : "tracing-ms";
    return {
        {"processType", "default"},
        {"processName", party.name},
        {"name", party.name},
        {"isMainThread", true},
        {"pid", id},
        {"tid", id},
        {"processStartupTime", 0},
        {"processShutdownTime", nullptr},
        {"registerTime", 0},
        {"unregisterTime", milliseconds(party.ns)},
        {"pausedRanges", Json::array()},
        {"samples", std::move(samples)},
        {"markers", Table({"data", "name", "startTime", "endTime", "phase", "category"}).json()},
        {"stackTable", std::move(stacks_).json()},
        {"frameTable", std::move(frames_).json()},
        {"funcTable", std::move(functions_).json()},
        {"resourceTable", std::move(resources_).json()},
        {"nativeSymbols", Table({"libIndex", "address", "name", "functionSize"}).json()},
        {"stringArray", std::move(strings_)}};
  }

 private:
  Json node_of(const std::vector<uint32_t>& path) {
    Json node = nullptr;
    size_t above = 0;  // 1 + its number
    for (const uint32_t frame : path) {
      const auto [it, fresh] = nodes_.try_emplace({above, frame}, 0);
      if (fresh) {
        const size_t id = frame_of(frame);
        it->second = stacks_.add({id, node, category_of(all_.frames[frame]), 0});
      }
      node = it->second;
      above = it->second + 1;
    }
    return node;
  }

  // The frame, and the function of the same number.
  size_t frame_of(uint32_t number) {
    const auto [it, fresh] = frame_ids_.try_emplace(number, 0);
    if (!fresh) return it->second;
    const ExportedFrame& frame = all_.frames[number];
    functions_.add(
        {string_of(frame.name), false, false, resource_of(frame.where), nullptr, nullptr, nullptr});
    const size_t function = frame_ids_.size() - 1;
    return it->second = frames_.add(
               {-1, 0, category_of(frame), 0, function, nullptr, 0, nullptr, nullptr, nullptr});
  }

  // -1 for none.
  int resource_of(const std::string& where) {
    if (where.empty()) return -1;
    const auto next = static_cast<int>(resource_ids_.size());
    const auto [it, fresh] = resource_ids_.try_emplace(where, next);
    if (fresh) resources_.add({nullptr, string_of(where), nullptr, resource_library});
    return it->second;
  }

  size_t string_of(const std::string& text) {
    const auto [it, fresh] = string_ids_.try_emplace(text, strings_.size());
    if (fresh) strings_.push_back(text);
    return it->second;
  }

  const ExportedStacks& all_;
  const bool is_in_bytes_;
  Table samples_{{"stack", "time", "weight"}};
  Table stacks_{{"frame", "prefix", "category", "subcategory"}};
  Table frames_{{"address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol",
                 "innerWindowID", "implementation", "line", "column"}};
  Table functions_{
      {"name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber", "columnNumber"}};
  Table resources_{{"lib", "name", "host", "type"}};
  Json strings_ = Json::array();
  std::map<std::pair<size_t, uint32_t>, size_t> nodes_;
  std::map<uint32_t, size_t> frame_ids_;
  std::map<std::string, int> resource_ids_;
  std::map<std::string, size_t> string_ids_;
};

}  // namespace

static Result<std::string> export_firefox(const Profile& profile, const ExportOptions& options) {
  const ExportedStacks stacks = export_stacks(profile, options);
  const bool in_bytes = is_in_bytes(resource_of(profile));
  Json threads = Json::array();
  for (const ExportedParty& party : stacks.parties)
    threads.push_back(Thread(stacks, in_bytes).run(party, threads.size()));
  const Json selected = threads.empty() ? Json::array() : Json::array({0});
  const uint64_t hz = profile.meta.frequency_hz ? profile.meta.frequency_hz : 1;
  const Json all = {
      {"meta",
       {{"version", 29},  // of what it would have been made from: does not matter
        {"preprocessedProfileVersion", version},
        {"initialSelectedThreads", selected},
        {"interval", 1000.0 / static_cast<double>(hz)},
        {"startTime", static_cast<double>(profile.meta.start_unix_ns) / 1e6},
        {"processType", 0},
        {"product", options.ran_on ? "pkprof: who was on the CPU" : "pkprof: for whom"},
        {"importedFrom", "pkprof"},
        {"oscpu", "Linux " + profile.meta.kernel},
        {"stackwalk", 1},
        {"debug", false},
        {"symbolicated", true},
        {"categories", categories()},
        {"markerSchema", Json::array()}}},
      {"libs", Json::array()},
      {"threads", std::move(threads)}};
  return deliver(all.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n", options);
}

extern const ExportFormat firefox_format{"firefox", "stacks, for profiler.firefox.com",
                                         export_firefox};

}  // namespace pkprof
