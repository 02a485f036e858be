// SPDX-License-Identifier: Apache-2.0
#include "report/clients/served_by.h"

#include <map>
#include <ranges>
#include <string>

namespace pkprof {
namespace {

constexpr std::string_view served_by_mark = "served by ";

}  // namespace

ServedBy::ServedBy(const Profile& profile)
    : profile_(profile), server_of_frame_(profile.frames().size()) {
  std::map<std::string, LabelId, std::less<>> labels;
  for (FrameId id = 0; id < profile.frames().size(); ++id) {
    const Frame& frame = profile.frames()[id];
    const std::string_view name = profile.text(frame.function);
    if (frame.kind != FrameKind::pseudo || !name.starts_with(served_by_mark)) continue;
    if (labels.empty())
      for (LabelId label = 0; label < profile.labels().size(); ++label)
        labels.emplace(profile.labels()[label].name(), label);
    if (const auto it = labels.find(name.substr(served_by_mark.size())); it != labels.end())
      server_of_frame_[id] = it->second;
  }
}

std::span<const FrameId> ServedBy::code_of(StackId stack) const {
  const auto frames = profile_.frames_of(stack);
  for (size_t count = frames.size(); count > 0; --count)
    if (is_mark(frames[count - 1])) return frames.first(count);
  return frames;
}

size_t ServedBy::marks_of(StackId stack) const {
  size_t marks = 0;
  for (const FrameId frame : code_of(stack) | std::views::reverse) {
    if (!is_mark(frame)) break;
    ++marks;
  }
  return marks;
}

std::optional<LabelId> ServedBy::server_of(StackId stack) const {
  const size_t marks = marks_of(stack);
  if (marks == 0) return {};
  const auto frames = code_of(stack);
  return server_of_frame_[frames[frames.size() - marks]];
}

}  // namespace pkprof
