// SPDX-License-Identifier: Apache-2.0
#include "record/control.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
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

// Its flags are its other holders', too, and are left as they are.
Result<Fd> take_descriptor(const std::string& number, int access) {
  int given = -1;
  const char* end = number.data() + number.size();
  if (const auto [at, error] = std::from_chars(number.data(), end, given);
      error != std::errc() || at != end || given < 0)
    return fail("--control: \"" + number + "\" is no descriptor");
  Fd fd(fcntl(given, F_DUPFD_CLOEXEC, 3));
  const int flags = fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ((flags & O_ACCMODE) != access && (flags & O_ACCMODE) != O_RDWR))
    return fail("--control: descriptor " + number + " is not open for " +
                (access == O_RDONLY ? "reading" : "writing"));
  return fd;
}

bool is_ready(int fd, short events) {
  pollfd ready{fd, events, 0};
  return poll(&ready, 1, 0) == 1;
}

// Whose reader has gone is told by EPIPE, and not by the signal that comes with it.
bool write_without_signal(int fd, std::string_view text) {
  sigset_t pipe;
  sigset_t before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const ssize_t wrote = write(fd, text.data(), text.size());
  const int error = errno;
  const timespec now{};
  if (wrote < 0 && error == EPIPE) sigtimedwait(&pipe, nullptr, &now);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return wrote == static_cast<ssize_t>(text.size());
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

void Control::add_line(std::string_view line, std::vector<Command>& to) {
  if (line.empty()) return;
  for (const auto& [name, command] : commands) {
    if (line != name) continue;
    to.push_back(command);
    return;
  }
  complain("there is no command \"" + std::string(line) +
           "\"; there are enable, disable, stop and ping");
}

void Control::complain(const std::string& sentence) {
  constexpr int enough = 10;
  if (++complaints_ > enough) return;
  complain_("--control: " + sentence +
            (complaints_ == enough ? " (of more of that kind nothing is said)" : ""));
}

// Lines end as in text or as in C: a program that sends the string's end with it is understood. It
// reads once: whoever writes without end keeps nobody here.
std::vector<Control::Command> Control::take() {
  std::vector<Command> taken;
  if (!commands_.valid() || !is_ready(commands_.get(), POLLIN)) return taken;
  std::array<char, 64> buffer{};
  const ssize_t got = read(commands_.get(), buffer.data(), buffer.size());
  for (const char c :
       std::string_view(buffer.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)))) {
    if (c == '\n' || c == '\0') {
      if (!overlong_) add_line(begun_, taken);
      begun_.clear();
      overlong_ = false;
    } else if (begun_.size() < longest_line) {
      begun_ += c;
    } else if (!overlong_) {
      complain("a line is longer than any command, and is passed over");
      overlong_ = true;
    }
  }
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
    complain("no more commands can come" +
             (got < 0 ? std::string(": ") + std::strerror(errno) : ""));
    commands_.reset();
  }
  return taken;
}

void Control::answer() {
  if (!answers_.valid()) return;
  if (is_ready(answers_.get(), POLLOUT)) {
    if (write_without_signal(answers_.get(), "ack\n")) return;
    complain(std::string("writing an answer: ") + std::strerror(errno) + "; there will be no more");
  } else {
    complain("nobody reads the answers; there will be none");
  }
  answers_.reset();
}

}  // namespace pkprof
