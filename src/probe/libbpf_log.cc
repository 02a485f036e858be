// SPDX-License-Identifier: Apache-2.0
#include "probe/libbpf_log.h"

#include <bpf/libbpf.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "probe/seccomp.h"

namespace pkprof {
namespace {

thread_local std::string* sink = nullptr;
constexpr size_t max_kept = 16 << 20;

int keep_message(libbpf_print_level level, const char* format, va_list args) {
  if (level == LIBBPF_DEBUG || !sink) return 0;
  va_list again;
  va_copy(again, args);
  const int n = vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (n <= 0 || sink->size() > max_kept) return n;
  const size_t old = sink->size();
  sink->resize(old + static_cast<size_t>(n) + 1);
  vsnprintf(sink->data() + old, static_cast<size_t>(n) + 1, format, args);
  sink->pop_back();
  return n;
}

}  // namespace

bool is_shortage(int err) {
  return err == EMFILE || err == ENFILE || err == ENOMEM || err == EINTR || err == EAGAIN;
}

LibbpfLog::LibbpfLog() {
  libbpf_set_print(keep_message);
  sink = &text_;
}

LibbpfLog::~LibbpfLog() {
  sink = nullptr;
  if (getenv("PKPROF_DEBUG")) fputs(text_.c_str(), stderr);
}

std::string LibbpfLog::refused_program() const {
  // "libbpf: prog 'pk_sample': BPF program load failed: Invalid argument"
  const size_t failed = text_.find("': BPF program load failed");
  if (failed == std::string::npos) {
    const size_t create = text_.find("': failed to load");
    if (create == std::string::npos) return "";
    const size_t quote = text_.rfind('\'', create - 1);
    return text_.substr(quote + 1, create - quote - 1);
  }
  const size_t quote = text_.rfind('\'', failed - 1);
  return quote == std::string::npos ? "" : text_.substr(quote + 1, failed - quote - 1);
}

std::string LibbpfLog::explain(const std::string& step, int err) const {
  const bool refused = err == EPERM || err == EACCES;
  if ((refused || err == ENOSYS) && has_seccomp_filter()) return step + ": " + seccomp_advice;
  if (refused)
    return step +
           ": the kernel refuses: run as root, or with CAP_BPF and CAP_PERFMON; `pkprof doctor` "
           "says what is missing";
  if (err == EMFILE) return step + ": too many open files: allow more with ulimit -n";
  if (err == ENOMEM || err == E2BIG) return step + ": " + std::strerror(err);
  return step + ": " + std::strerror(err) + "; `pkprof doctor` says what this kernel lacks";
}

}  // namespace pkprof
