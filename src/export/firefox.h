// SPDX-License-Identifier: Apache-2.0
// For the Firefox Profiler (profiler.firefox.com): its "processed profile", version 48, which every
// later version reads. It is described by
// https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md
//
// That viewer knows threads, of which each has a track: here a thread is a party, the largest
// first. It knows when each sample was; a profile does not, so stacks stand one after the other,
// each as long as it took, and a track is as long as its party's time.
// Categories, by which it colours, are where code is from: user code, kernel, system calls,
// asynchronous work.
#pragma once

#include <string>

#include "export/format.h"

namespace pkprof {

[[nodiscard]] Result<std::string> export_firefox(const Profile& profile,
                                                 const ExportOptions& options);

}  // namespace pkprof
