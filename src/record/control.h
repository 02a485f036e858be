// SPDX-License-Identifier: Apache-2.0
// Commands to a recording while it goes on, as `perf record --control` has them: lines that a
// script, or the program that is recorded, writes to a FIFO; each is answered with a line "ack" on
// another, once it is done.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace pkprof {

class Control {
 public:
  enum class Command : uint8_t {
    enable,   // "enable": record, if it is paused
    disable,  // "disable": pause
    stop,     // "stop": end
    ping,     // "ping": nothing but the answer
  };
  // What goes wrong later is told there, a sentence each time.
  using Complain = std::function<void(const std::string&)>;

  // `spec`: "fifo:COMMANDS[,ANSWERS]", paths of FIFOs that there are; or "fd:N[,M]", descriptors
  // that we were given. An error says which it is that there is not.
  [[nodiscard]] static Result<Control> open(const std::string& spec, Complain complain);

  // To be waited at; -1 when nobody can write to it any more.
  [[nodiscard]] int fd() const { return commands_.get(); }
  // What has come, in order, or the first of it. What is no command is told, and passed over.
  [[nodiscard]] std::vector<Command> take();
  void answer();

 private:
  Control(Fd commands, Fd answers, Complain complain)
      : commands_(std::move(commands)),
        answers_(std::move(answers)),
        complain_(std::move(complain)) {}
  void add_line(std::string_view line, std::vector<Command>& to);
  void complain(const std::string& sentence);

  Fd commands_;
  Fd answers_;
  Complain complain_;
  std::string begun_;  // of a line that has no end yet
  int complaints_ = 0;
  bool overlong_ = false;  // it is longer than any command: the rest of it is passed over
};

}  // namespace pkprof
