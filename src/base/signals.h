// SPDX-License-Identifier: Apache-2.0
// The signals that end a recording.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"

namespace pkprof {

// Signals become something to wait for; the mask is given back at the end.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, s);
    sigprocmask(SIG_BLOCK, &set, &old_);
    fd_ = Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~Signals() { sigprocmask(SIG_SETMASK, &old_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  // True if one came that ends the recording.
  bool take() {
    bool stop = false;
    signalfd_siginfo info{};
    while (read(fd_.get(), &info, sizeof(info)) == sizeof(info))
      if (info.ssi_signo != SIGCHLD) {
        stop = true;
        last_ = static_cast<int>(info.ssi_signo);
      }
    return stop;
  }
  // The last one that did; 0: none.
  [[nodiscard]] int last() const { return last_; }

 private:
  sigset_t old_{};
  Fd fd_;
  int last_ = 0;
};

}  // namespace pkprof
