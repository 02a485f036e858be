// SPDX-License-Identifier: Apache-2.0
#include "report/waits/wait_words.h"

#include "report/format.h"

namespace pkprof {
namespace {

constexpr const char* kernel = "the kernel";
constexpr const char* unknown = "not known";
}  // namespace

std::string wait_party(const Profile& profile, By by, const Group& group, bool unicode) {
  if (group.kind == GroupKind::special) switch (profile.labels()[group.label].kind) {
      case LabelKind::kernel:
        return kernel;
      case LabelKind::idle:
        return "an idle CPU that wakes up";
      case LabelKind::unclaimed:
        return unknown;
      default:
        break;
    }
  return party_name(profile, by, group, unicode);
}

std::string wait_sentence(std::string_view kind, const std::string& whom, bool is_itself) {
  const bool is_somebody = !is_itself && whom != kernel && whom != unknown;
  const std::string by_whom = is_somebody ? " (" + whom + ")" : "";
  const std::string behind = is_somebody ? ", behind " + whom : "";
  if (whom == unknown) {  // it may not be over yet
    if (kind == "runnable") return "ready to run";
    if (kind == "reply") return "for an answer";
    if (kind == "lock") return "for a lock";
    if (kind == "event") return "for word of somebody";
  }
  if (kind == "runnable") return "ready to run behind " + (is_itself ? "itself" : whom);
  if (kind == "disk") return "for the disk" + behind;
  if (kind == "fault") return "for pages from the disk" + behind;
  if (kind == "memory") return "for memory to be freed" + by_whom;
  if (kind == "reply") return "for " + whom;
  if (kind == "child") return "for its child" + by_whom;
  if (kind == "lock") return is_itself ? "for a lock of its own threads" : "for a lock of " + whom;
  if (kind == "event") return is_itself ? "for its own threads" : "for word of " + whom;
  if (kind == "timer") return "for a timer of its own";
  if (kind == "idle") return "for the next request" + by_whom;
  return std::string(kind) + by_whom;
}

}  // namespace pkprof
