// SPDX-License-Identifier: Apache-2.0
#include "probe/polling.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace pkprof {
namespace {

namespace fs = std::filesystem;

constexpr const char* name_of_pollers = "(iou-sqp-";  // as /proc/PID/task/TID/stat has it

bool is_polling(const fs::path& thread) {
  std::string stat;
  std::getline(std::ifstream(thread / "stat"), stat);
  const size_t state = stat.rfind(") ");  // a name may have anything in it
  return state != std::string::npos && stat.find(name_of_pollers) < state &&
         stat.compare(state, 3, ") R") == 0;
}

}  // namespace

// Threads come and go meanwhile: what cannot be read is gone.
std::string what_hooking_waits_for() {
  std::error_code gone;
  for (fs::directory_iterator process("/proc", gone), end; !gone && process != end;
       process.increment(gone)) {
    const std::string pid = process->path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code ended;
    for (fs::directory_iterator thread(process->path() / "task", ended), last;
         !ended && thread != last; thread.increment(ended))
      if (is_polling(thread->path()))
        return "this kernel would wait for the io_uring thread of process " + pid +
               ", which polls without a pause";
  }
  return "";
}

}  // namespace pkprof
