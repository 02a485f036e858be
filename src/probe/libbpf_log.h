// SPDX-License-Identifier: Apache-2.0
// libbpf speaks to stderr unless told otherwise. Here it speaks to us: what it says is kept while
// a LibbpfLog lives and turned into one line for the user; the rest of the time it is silent.
#pragma once

#include <string>

namespace pkprof {

// Whether an error is about what there is too little of, or a signal: it says nothing of what the
// kernel has and has not, and what is tried next fares no better.
[[nodiscard]] bool is_shortage(int err);

class LibbpfLog {
 public:
  LibbpfLog();
  ~LibbpfLog();
  LibbpfLog(const LibbpfLog&) = delete;
  LibbpfLog& operator=(const LibbpfLog&) = delete;

  // The program that the kernel refused to load, "" when the messages name none.
  [[nodiscard]] std::string refused_program() const;
  // One line: the step, the reason in words, what to do. `err` is a positive errno.
  [[nodiscard]] std::string explain(const std::string& step, int err) const;

 private:
  std::string text_;
};

}  // namespace pkprof
