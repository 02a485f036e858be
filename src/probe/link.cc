// SPDX-License-Identifier: Apache-2.0
#include "probe/link.h"

#include <bpf/libbpf.h>

namespace pkprof {

void LinkFree::operator()(bpf_link* link) const {
  bpf_link__destroy(link);
}

}  // namespace pkprof
