// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/columns.h"
#include "cli/commands.h"

namespace pkprof {

ReportOptions terminal_options() {
  ReportOptions o;
  const bool terminal = isatty(STDOUT_FILENO);
  winsize size{};
  if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    o.width = size.ws_col;
  else if (const uint16_t columns = columns_of_environment())
    o.width = columns;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  o.style.colour = terminal && !(no_color && *no_color) && !(term && !std::strcmp(term, "dumb"));
  setlocale(LC_CTYPE, "");
  o.unicode = !std::strcmp(nl_langinfo(CODESET), "UTF-8");
  return o;
}

bool print(const std::string& text) {
  signal(SIGPIPE, SIG_IGN);
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno == EPIPE) {
      return true;
    } else if (errno != EINTR) {
      complain(std::string("writing to standard output: ") + std::strerror(errno), 0);
      return false;
    }
  }
  return true;
}

int open_in_browser(const std::string& path) {
  std::string program = "xdg-open";
  std::string file = path;
  char* argv[] = {program.data(), file.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, program.c_str(), nullptr, nullptr, argv, environ);
  if (error)
    return complain("showing " + path + " with xdg-open: " + std::strerror(error) +
                        "; open it in a browser yourself",
                    exit_failure);
  int status = 0;
  if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
    return complain("xdg-open could not show " + path + "; open it in a browser yourself",
                    exit_failure);
  return 0;
}

}  // namespace pkprof
