// SPDX-License-Identifier: Apache-2.0
#include "naming/later_names.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "model/merge.h"
#include "naming/debuginfod.h"
#include "symbol/elf/elf_file.h"

namespace pkprof {
namespace {

std::string name_of_file(const Mapping& mapping) {
  return mapping.file.substr(mapping.file.rfind('/') + 1);
}

// A function without a name is called by its place: "redis-server+0x4f210".
bool lacks_name(const Profile& profile, const Frame& frame) {
  if (frame.kind != FrameKind::user || frame.mapping == no_mapping) return false;
  const Mapping& mapping = profile.mappings()[frame.mapping];
  if (mapping.build_id.empty() || mapping.vaddr == no_vaddr || frame.address < mapping.start)
    return false;
  const std::string& name = profile.text(frame.function);
  return name.empty() || name.starts_with(name_of_file(mapping) + "+0x");
}

// Build-ids of the files in question, and a file's name for each. By it, so that two recordings ask
// in the same order.
std::map<std::string, std::string> files_without_names(const Profile& profile) {
  std::map<std::string, std::string> files;
  for (const Frame& frame : profile.frames()) {
    if (!lacks_name(profile, frame)) continue;
    const Mapping& mapping = profile.mappings()[frame.mapping];
    files.emplace(mapping.build_id, name_of_file(mapping));
  }
  return files;
}

using Files = std::map<std::string, std::shared_ptr<ElfFile>>;  // by build-id

}  // namespace

void fetch_names(Profile& profile, uint64_t most_ns, const FetchProgress& progress) {
  if (!Debuginfod::is_wanted()) return;
  const auto wanted = files_without_names(profile);
  if (wanted.empty()) return;
  const uint64_t end = monotonic_ns() + most_ns;
  std::string at_hand;
  bool given_up = false;
  auto client = Debuginfod::open([&](uint64_t got, uint64_t all) {
    given_up = given_up || monotonic_ns() > end || !progress(at_hand, got, all);
    return !given_up;
  });
  if (!client) {
    profile.meta.degraded.push_back("names from debuginfod: " + client.error().message);
    return;
  }
  Files files;
  std::string missing;
  std::string why;  // of the last
  for (const auto& [build_id, name] : wanted) {
    at_hand = name;
    auto fd = given_up ? Result<Fd>(fail("given up")) : client->debug_file(build_id);
    auto file = fd ? ElfFile::open(std::move(*fd), "", {})
                   : Result<std::shared_ptr<ElfFile>>(std::unexpected(fd.error()));
    if (file && (*file)->build_id() == build_id) {
      files[build_id] = *file;
      continue;
    }
    missing += (missing.empty() ? "" : ", ") + name;
    why = file ? "what came is of another build" : file.error().message;
  }
  if (!missing.empty())
    profile.meta.degraded.push_back(given_up
                                        ? "given up: names from debuginfod of " + missing
                                        : "no names from debuginfod of " + missing + ": " + why);
  if (files.empty()) return;
  profile = renamed(profile, [&](const Frame& frame) -> std::optional<std::string> {
    if (!lacks_name(profile, frame)) return std::nullopt;
    const Mapping& mapping = profile.mappings()[frame.mapping];
    const auto file = files.find(mapping.build_id);
    if (file == files.end()) return std::nullopt;
    std::string name(file->second->function_at(mapping.vaddr + (frame.address - mapping.start)));
    if (name.empty()) return std::nullopt;
    return name;
  });
}

}  // namespace pkprof
