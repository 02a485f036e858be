// SPDX-License-Identifier: Apache-2.0
// A profile as files for GNU gprof: those of the pkprof paper's Figure 4.7, and for each the symbol
// file that gprof needs to read it.
//
//   gmon.out.137k.cat    what the kernel did for process 137
//   gmon.out.137u.cat    its own code
//   gmon.out.137.cat     both in one, with the calls between them: the seamless profile
//   gmon.sym.137.cat     the names for these three
//   gmon.out.-k.kernel   what the kernel did for itself; gmon.sym.-k.kernel
//   gmon.out.-k.other    and for processes that were not selected; gmon.sym.-k.other
//   gmon.out.-k.unclaimed   and for nobody who showed; gmon.sym.-k.unclaimed
//   gmon.out.remote.192.0.2.7   what servers did for a client elsewhere, where they are charged so
//   gmon.out.all         all of it; gmon.sym.all, which will do for all of the others, too
//
// gprof knows code by address, and reads names from one file: so all functions of an export get
// addresses of their own, whatever file they were from. They are those of no program (layout in
// gmon/space.h).
#pragma once

#include <string>

#include "export/format.h"

namespace pkprof {

// options.output is a directory, made if it is not there; "" is the current one.
[[nodiscard]] Result<std::string> export_gmon(const Profile& profile, const ExportOptions& options);

}  // namespace pkprof
