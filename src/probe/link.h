// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

struct bpf_link;

namespace pkprof {

struct LinkFree {
  void operator()(bpf_link* link) const;
};
using Link = std::unique_ptr<bpf_link, LinkFree>;  // a program is attached for as long as it lives

}  // namespace pkprof
