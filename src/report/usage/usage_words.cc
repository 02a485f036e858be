// SPDX-License-Identifier: Apache-2.0
#include "report/usage/usage_words.h"

#include "report/clean.h"
#include "report/format.h"

namespace pkprof {

UsageWords words_of(Resource resource) {
  switch (resource) {
    case Resource::lock:
      return {"Who waited for locks?", "waits"};
    case Resource::disk:
      return {"For whom did the disks work?", "requests"};
    case Resource::net:
      return {"For whom were packets?", "packets"};
    default:
      return {"For whom was memory taken?", "times"};
  }
}

std::string usage_party(const Profile& profile, By by, const Group& group, bool unicode) {
  if (group.kind != GroupKind::special) return party_name(profile, by, group, unicode);
  if (group.label == left_out) return "others";
  const Label& label = profile.labels()[group.label];
  switch (label.kind) {
    case LabelKind::kernel:
      return "the kernel";
    case LabelKind::other:
      return "others";
    case LabelKind::unclaimed:
      return clean("unclaimed: " + label.reason, unicode);
    default:
      return clean(label.name(), unicode);
  }
}

}  // namespace pkprof
