// SPDX-License-Identifier: Apache-2.0
// Servers' code in a profile that is charged to clients.
//
// charged_to_clients() puts a frame "served by NAME:PID" above what a server did for a client, and
// above that the client's own call. Listings name functions by the process whose they are, and ask
// here which that is. In a profile that is not charged no stack has such a frame.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "model/profile.h"

namespace pkprof {

class ServedBy {
 public:
  // `profile` must outlive this, and get no more frames.
  explicit ServedBy(const Profile& profile);

  // The server whose code a stack is. Nothing where it is that of whoever was served.
  [[nodiscard]] std::optional<LabelId> server_of(StackId stack) const;
  // A stack without the client's call: it begins with such a frame, if there is one. Leaf first.
  [[nodiscard]] std::span<const FrameId> code_of(StackId stack) const;
  // How many such frames that begins with.
  [[nodiscard]] size_t marks_of(StackId stack) const;
  [[nodiscard]] bool is_mark(FrameId frame) const { return server_of_frame_[frame].has_value(); }

 private:
  const Profile& profile_;
  std::vector<std::optional<LabelId>> server_of_frame_;
};

}  // namespace pkprof
