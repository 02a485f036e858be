// SPDX-License-Identifier: Apache-2.0
#include "collect/control.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <charconv>
#include <optional>

namespace pkprof {
namespace {

constexpr size_t longest_line = 64;

constexpr std::array<std::pair<std::string_view, Control::Command>, 4> commands = {{
    {"enable", Control::Command::enable},
    {"disable", Control::Command::disable},
    {"stop", Control::Command::stop},
    {"ping", Control::Command::ping},
}};

// For reading and writing, whichever it is for: so opening waits for nobody, and it has no end when
// a writer goes and the next one comes.
Result<Fd> open_fifo(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid() && errno == ENOENT)
    return fail("--control: there is no " + path + "; make it with mkfifo");
  if (!fd.valid()) return fail_errno("--control: opening " + path);
  struct stat info{};
  if (fstat(fd.get(), &info) || !S_ISFIFO(info.st_mode))
    return fail("--control: " + path + " is no FIFO; make one with mkfifo");
  return fd;
}

// A copy, that no child gets. The flag is the other holders', too: we are never kept waiting.
Result<Fd> take_descriptor(const std::string& number, int access) {
  int given = -1;
  const char* end = number.data() + number.size();
  if (const auto [at, error] = std::from_chars(number.data(), end, given);
      error != std::errc() || at != end || given < 0)
    return fail("--control: \"" + number + "\" is no descriptor");
  Fd fd(fcntl(given, F_DUPFD_CLOEXEC, 3));
  const int flags = fcntl(fd.get(), F_GETFL);
  const int mode = flags & O_ACCMODE;
  if (flags < 0 || (mode != access && mode != O_RDWR))
    return fail("--control: descriptor " + number + " is not open for " +
                (access == O_RDONLY ? "reading" : "writing"));
  fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK);
  return fd;
}

}  // namespace

Result<Control> Control::open(const std::string& spec, Complain complain) {
  const size_t colon = spec.find(':');
  const std::string kind = spec.substr(0, colon);
  if (colon == std::string::npos || (kind != "fifo" && kind != "fd"))
    return fail("--control: \"" + spec + "\" is neither fifo:COMMANDS[,ANSWERS] nor fd:N[,M]");
  const size_t comma = spec.find(',', colon);
  const bool answers = comma != std::string::npos;
  const auto open_one = [&](const std::string& name, int access) {
    return kind == "fifo" ? open_fifo(name) : take_descriptor(name, access);
  };
  auto from = open_one(spec.substr(colon + 1, comma - colon - 1), O_RDONLY);
  if (!from) return std::unexpected(from.error());
  Result<Fd> to;
  if (answers) to = open_one(spec.substr(comma + 1), O_WRONLY);
  if (!to) return std::unexpected(to.error());
  return Control(std::move(*from), std::move(*to), std::move(complain));
}

void Control::add_line(std::string_view line, std::vector<Command>& to) const {
  if (line.empty()) return;
  for (const auto& [name, command] : commands) {
    if (line != name) continue;
    to.push_back(command);
    return;
  }
  complain_("--control: there is no command \"" + std::string(line) +
            "\"; there are enable, disable, stop and ping");
}

// Lines end as in text or as in C: a program that sends the string's end with it is understood.
std::vector<Control::Command> Control::take() {
  std::vector<Command> taken;
  if (!commands_.valid()) return taken;
  std::array<char, 512> buffer{};
  ssize_t got = 0;
  while ((got = read(commands_.get(), buffer.data(), buffer.size())) > 0) {
    for (const char c : std::string_view(buffer.data(), static_cast<size_t>(got))) {
      if (c == '\n' || c == '\0') {
        if (!overlong_) add_line(begun_, taken);
        begun_.clear();
        overlong_ = false;
      } else if (begun_.size() < longest_line) {
        begun_ += c;
      } else if (!overlong_) {
        complain_("--control: a line is longer than any command, and is passed over");
        overlong_ = true;
      }
    }
  }
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
    complain_("--control: no more commands can come" +
              (got < 0 ? std::string(": ") + std::strerror(errno) : ""));
    commands_.reset();
  }
  return taken;
}

void Control::answer() {
  constexpr std::string_view text = "ack\n";
  if (!answers_.valid()) return;
  if (write(answers_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return;
  complain_(errno == EAGAIN ? "--control: nobody reads the answers; there will be none"
                            : std::string("--control: writing an answer: ") + std::strerror(errno) +
                                  "; there will be no more");
  answers_.reset();
}

}  // namespace pkprof
