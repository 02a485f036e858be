// SPDX-License-Identifier: Apache-2.0
#include "awake.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>

namespace pkprof::overhead {

Result<Awake> Awake::hold() {
  constexpr const char* kDevice = "/dev/cpu_dma_latency";
  Fd request(open(kDevice, O_WRONLY | O_CLOEXEC));
  const int32_t microseconds = 0;
  if (!request.valid() || write(request.get(), &microseconds, sizeof microseconds) < 0) {
    return fail_errno(std::string("asking ") + kDevice + " for CPUs that do not halt");
  }
  return Awake(std::move(request));
}

}  // namespace pkprof::overhead
