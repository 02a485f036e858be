// SPDX-License-Identifier: Apache-2.0
#include "debox/room.h"

#include <cerrno>

namespace pkprof {

int DeboxRoom::refuses(const Holder& wanted) {
  const auto same_process = [&](const Holder& h) { return h.pid == wanted.pid; };
  const auto same_user = [&](const Holder& h) { return h.user == wanted.user; };
  const auto any = [](const Holder&) { return true; };
  if (!has_room(same_process, of_process, wanted.bytes)) return EDQUOT;
  if (wanted.user && !has_room(same_user, of_user, wanted.bytes)) return EDQUOT;
  return has_room(any, in_all, wanted.bytes) ? 0 : ENOMEM;
}

// Looks for what is gone only where there is no room: that takes a system call for each.
bool DeboxRoom::has_room(const Belongs& belongs, const Bound& bound, uint64_t bytes) {
  if (has_room_now(belongs, bound, bytes)) return true;
  std::erase_if(holders_, [&](const Holder& h) { return belongs(h) && !is_there_(h.memory); });
  return has_room_now(belongs, bound, bytes);
}

bool DeboxRoom::has_room_now(const Belongs& belongs, const Bound& bound, uint64_t bytes) const {
  size_t threads = 1;
  for (const Holder& holder : holders_) {
    if (!belongs(holder)) continue;
    ++threads;
    bytes += holder.bytes;
  }
  return threads <= bound.threads && bytes <= bound.bytes;
}

}  // namespace pkprof
