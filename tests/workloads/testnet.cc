// SPDX-License-Identifier: Apache-2.0
// Network namespaces by way of the `ip` program: it already knows netlink, the bind mounts under
// /run/netns and the /sys that belongs to a namespace, and a test that fails can be repeated by
// hand with the same commands.
#include "testnet.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <tuple>

namespace pkprof::testnet {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view kPrefix = "pkt-";

std::vector<char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const auto& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string joined(const Argv& argv) {
  std::string text;
  for (const auto& word : argv) text += (text.empty() ? "" : " ") + word;
  return text;
}

int exit_status(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

// In a fresh child: die with the parent. The parent may be gone before prctl() takes hold.
void die_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
}

// Waits, outside our process group, for our end of the pipe to close, however that comes about;
// then removes every namespace with our prefix.
class Guardian {
 public:
  Guardian() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    Fd reader(ends[0]);
    writer_ = Fd(ends[1]);
    const std::string pattern = std::string(kPrefix) + std::to_string(getpid()) + "-*";
    const std::string script = "read -r _; cd /run/netns 2>/dev/null || exit 0; for n in " +
                               pattern + "; do [ ! -e \"$n\" ] || ip netns del \"$n\"; done";
    pid_ = fork();
    if (pid_ != 0) return;
    setsid();
    const int null = open("/dev/null", O_RDWR);
    if (null < 0) _exit(127);
    dup2(reader.get(), STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    _exit(127);
  }
  ~Guardian() {
    writer_.reset();
    if (pid_ > 0 && owner_ == getpid()) waitpid(pid_, nullptr, 0);
  }
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

 private:
  Fd writer_;
  pid_t pid_ = -1;
  pid_t owner_ = getpid();
};

void start_guardian() {
  static Guardian guardian;
}

}  // namespace

Result<std::string> run_command(const Argv& argv) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0) return fail_errno("pipe");
  Fd out_reader(out[0]);
  Fd out_writer(out[1]);
  if (pipe2(err, O_CLOEXEC) != 0) return fail_errno("pipe");
  Fd err_reader(err[0]);
  Fd err_writer(err[1]);

  const auto words = c_strings(argv);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) {
    die_with(parent);
    dup2(out_writer.get(), STDOUT_FILENO);
    dup2(err_writer.get(), STDERR_FILENO);
    execvp(words[0], words.data());
    dprintf(STDERR_FILENO, "cannot be run: %s", std::strerror(errno));
    _exit(127);
  }
  out_writer.reset();
  err_writer.reset();

  std::string text[2];
  pollfd fds[2] = {{out_reader.get(), POLLIN, 0}, {err_reader.get(), POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (poll(fds, 2, -1) < 0 && errno != EINTR) break;
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t n = ::read(fds[i].fd, buffer, sizeof buffer);
      if (n > 0) {
        text[i].append(buffer, static_cast<size_t>(n));
      } else if (n == 0 || errno != EINTR) {
        fds[i].fd = -1;
      }
    }
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return std::move(text[0]);
  while (!text[1].empty() && text[1].back() == '\n') text[1].pop_back();
  return fail(joined(argv) + ": " +
              (text[1].empty() ? "status " + std::to_string(exit_status(status)) : text[1]));
}

Result<int> remove_leftovers() {
  int removed = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/run/netns", ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    char* end = nullptr;
    const long pid = std::strtol(name.c_str() + kPrefix.size(), &end, 10);
    if (pid <= 0 || *end != '-') continue;
    if (kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH) continue;
    // Two sweepers may meet: a name that is already gone is no error.
    if (auto done = run_command({"ip", "netns", "del", name}); done) {
      ++removed;
    } else if (std::filesystem::exists(entry.path(), ignored)) {
      return std::unexpected(done.error());
    }
  }
  return removed;
}

std::string sibling(std::string_view program) {
  std::filesystem::path dir;
  if (const char* chosen = std::getenv("PKPROF_BIN_DIR"); chosen != nullptr && *chosen != '\0') {
    dir = chosen;
  } else {
    std::error_code ignored;
    dir = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  }
  return dir / program;
}

Result<Namespace> Namespace::create(std::string_view label) {
  static std::atomic<int> serial = 0;
  start_guardian();
  Namespace ns(std::string(kPrefix) + std::to_string(getpid()) + "-" + std::to_string(serial++) +
               "-" + std::string(label));
  if (auto made = run_command({"ip", "netns", "add", ns.name_}); !made) {
    ns.name_.clear();
    return std::unexpected(made.error().in("making a network namespace"));
  }
  if (auto up = ns.link_up("lo"); !up) return std::unexpected(up.error());
  // Without IPv6 there is nothing to switch off.
  std::ignore = ns.write("/proc/sys/net/ipv6/conf/all/accept_dad", "0");
  std::ignore = ns.write("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
  return ns;
}

Namespace::Namespace(Namespace&& other) noexcept : name_(std::exchange(other.name_, {})) {}

Namespace& Namespace::operator=(Namespace&& other) noexcept {
  if (this != &other) {
    remove();
    name_ = std::exchange(other.name_, {});
  }
  return *this;
}

Namespace::~Namespace() {
  remove();
}

void Namespace::remove() noexcept {
  if (name_.empty()) return;
  if (auto done = run_command({"ip", "netns", "del", name_}); !done) {
    std::fprintf(stderr, "testnet: %s\n", done.error().message.c_str());
  }
  name_.clear();
}

Result<std::string> Namespace::exec(Argv argv) const {
  const Argv enter = {"ip", "netns", "exec", name_};
  argv.insert(argv.begin(), enter.begin(), enter.end());
  return run_command(argv);
}

Result<> Namespace::ip(Argv arguments) const {
  const Argv enter = {"ip", "-n", name_};
  arguments.insert(arguments.begin(), enter.begin(), enter.end());
  if (auto done = run_command(arguments); !done) return std::unexpected(done.error());
  return {};
}

Result<> Namespace::write(std::string_view path, std::string_view value) const {
  auto done =
      exec({"sh", "-c", "echo \"$1\" >\"$2\"", "sh", std::string(value), std::string(path)});
  if (!done) return std::unexpected(done.error());
  return {};
}

Result<> Namespace::add_address(std::string_view device, std::string_view cidr) const {
  Argv words = {"addr", "add", std::string(cidr), "dev", std::string(device)};
  if (cidr.find(':') != std::string_view::npos) words.push_back("nodad");
  return ip(words);
}

Result<> Namespace::link_up(std::string_view device) const {
  return ip({"link", "set", std::string(device), "up"});
}

Result<> Namespace::add_bridge(std::string_view bridge,
                               const std::vector<std::string>& ports) const {
  const std::string name(bridge);
  if (auto r = ip({"link", "add", name, "type", "bridge"}); !r) return r;
  for (const auto& port : ports) {
    if (auto r = ip({"link", "set", port, "master", name}); !r) return r;
    if (auto r = link_up(port); !r) return r;
  }
  return link_up(name);
}

Result<> Namespace::enable_forwarding() const {
  if (auto r = write("/proc/sys/net/ipv4/ip_forward", "1"); !r) return r;
  return write("/proc/sys/net/ipv6/conf/all/forwarding", "1");
}

Result<> Namespace::set_rps(std::string_view device, unsigned long cpu_mask) const {
  std::ostringstream mask;
  mask << std::hex << cpu_mask;
  auto done = exec({"sh", "-c",
                    "for q in /sys/class/net/\"$1\"/queues/rx-*; do echo \"$2\" >$q/rps_cpus; done",
                    "sh", std::string(device), mask.str()});
  if (!done) return std::unexpected(done.error().in("steering packets"));
  return {};
}

Result<> Namespace::set_gro(std::string_view device, bool on) const {
  auto done = exec({"ethtool", "-K", std::string(device), "gro", on ? "on" : "off"});
  if (!done) return std::unexpected(done.error());
  return {};
}

Result<> Namespace::set_threaded(std::string_view device, bool on) const {
  if (on) {
    if (auto r = set_gro(device, true); !r) return r;
  }
  return write("/sys/class/net/" + std::string(device) + "/threaded", on ? "1" : "0");
}

namespace {

// IPv6 comes up some milliseconds after the carrier; a neighbour solicitation that arrives before
// the multicast route is there is lost, and the next one is a second away.
Result<> wait_for_ipv6(const VethEnd& end) {
  const auto deadline = Clock::now() + std::chrono::seconds(5);
  for (;;) {
    auto routes = run_command(
        {"ip", "-n", end.ns.name(), "-6", "route", "show", "table", "local", "dev", end.device});
    if (!routes) return std::unexpected(routes.error());
    if (routes->find("ff00::/8") != std::string::npos) return {};
    if (Clock::now() > deadline) return fail("IPv6 does not come up on " + end.device);
    poll(nullptr, 0, 5);
  }
}

}  // namespace

Result<> add_veth(const VethEnd& one, const VethEnd& other) {
  if (auto r = one.ns.ip({"link", "add", one.device, "type", "veth", "peer", "name", other.device,
                          "netns", other.ns.name()});
      !r) {
    return r;
  }
  for (const VethEnd* end : {&one, &other}) {
    for (const auto& address : end->addresses) {
      if (auto r = end->ns.add_address(end->device, address); !r) return r;
    }
    if (auto r = end->ns.link_up(end->device); !r) return r;
  }
  for (const VethEnd* end : {&one, &other}) {
    const bool ipv6 = std::ranges::any_of(
        end->addresses, [](const auto& a) { return a.find(':') != std::string::npos; });
    if (!ipv6) continue;
    if (auto r = wait_for_ipv6(*end); !r) return r;
  }
  return {};
}

Result<Pair> Pair::create(int rps_cpu) {
  auto client = Namespace::create("client");
  if (!client) return std::unexpected(client.error());
  auto server = Namespace::create("server");
  if (!server) return std::unexpected(server.error());
  auto veth =
      add_veth({*client, kDevice, {std::string(kClient4) + "/24", std::string(kClient6) + "/64"}},
               {*server, kDevice, {std::string(kServer4) + "/24", std::string(kServer6) + "/64"}});
  if (!veth) return std::unexpected(veth.error());
  if (rps_cpu >= 0) {
    if (auto r = server->set_rps(kDevice, 1UL << rps_cpu); !r) return std::unexpected(r.error());
  }
  return Pair{std::move(*client), std::move(*server)};
}

Result<Child> Child::spawn(const Argv& argv, const SpawnOptions& options) {
  if (argv.empty()) return fail("nothing to run");
  Fd ns;
  if (options.ns != nullptr) {
    ns = Fd(open(options.ns->path().c_str(), O_RDONLY | O_CLOEXEC));
    if (!ns.valid()) return fail_errno("opening " + options.ns->path());
  }
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return fail_errno("pipe");
  Fd reader(out[0]);
  Fd writer(out[1]);
  // Closed by a successful exec; carries errno otherwise, so that spawn() knows.
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return fail_errno("pipe");
  Fd report_reader(report[0]);
  Fd report_writer(report[1]);

  const auto words = c_strings(argv);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) {
    die_with(parent);
    bool ok = !ns.valid() || setns(ns.get(), CLONE_NEWNET) == 0;
    if (ok && options.cpu >= 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<size_t>(options.cpu), &set);
      ok = sched_setaffinity(0, sizeof set, &set) == 0;
    }
    if (ok) {
      for (const auto& setting : options.env) putenv(const_cast<char*>(setting.c_str()));
      dup2(writer.get(), STDOUT_FILENO);
      execvp(words[0], words.data());
    }
    const int err = errno;
    (void)!::write(report_writer.get(), &err, sizeof err);
    _exit(127);
  }
  writer.reset();
  report_writer.reset();
  Child child(pid, std::move(reader));
  int err = 0;
  if (::read(report_reader.get(), &err, sizeof err) == sizeof err) {
    return fail_errno("starting " + joined(argv), err);
  }
  return child;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      reaped_(other.reaped_),
      status_(other.status_),
      out_(std::move(other.out_)),
      output_(std::move(other.output_)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    kill_and_reap();
    pid_ = std::exchange(other.pid_, -1);
    reaped_ = other.reaped_;
    status_ = other.status_;
    out_ = std::move(other.out_);
    output_ = std::move(other.output_);
  }
  return *this;
}

Child::~Child() {
  kill_and_reap();
}

void Child::kill_and_reap() noexcept {
  if (pid_ <= 0 || reaped_) return;
  kill(pid_, SIGTERM);
  if (auto done = wait(milliseconds(2000)); done) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  reaped_ = true;
}

bool Child::read_some(milliseconds timeout) {
  if (!out_.valid()) return false;
  pollfd fd = {out_.get(), POLLIN, 0};
  if (poll(&fd, 1, static_cast<int>(std::max<long>(timeout.count(), 0))) <= 0) return false;
  char buffer[4096];
  const ssize_t n = ::read(out_.get(), buffer, sizeof buffer);
  if (n <= 0) {
    out_.reset();
    return false;
  }
  output_.append(buffer, static_cast<size_t>(n));
  return true;
}

Result<> Child::wait_for_line(std::string_view line, milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  const std::string wanted = "\n" + std::string(line) + "\n";
  while (("\n" + output_).find(wanted) == std::string::npos) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (!out_.valid())
      return fail("the child ended without the line \"" + std::string(line) + "\"");
    if (left.count() <= 0) return fail("no line \"" + std::string(line) + "\" in time");
    read_some(left);
  }
  return {};
}

Result<int> Child::wait(milliseconds timeout) {
  if (pid_ <= 0) return fail("no child");
  const auto deadline = Clock::now() + timeout;
  while (!reaped_) {
    read_some(milliseconds(0));
    int status = 0;
    const pid_t got = waitpid(pid_, &status, WNOHANG);
    if (got < 0 && errno != EINTR) return fail_errno("waiting for the child");
    if (got == pid_) {
      reaped_ = true;
      status_ = exit_status(status);
      break;
    }
    if (Clock::now() >= deadline) return fail("the child did not end in time");
    if (!read_some(milliseconds(10)) && !out_.valid()) poll(nullptr, 0, 5);
  }
  // What is in the pipe still; not to its end, which a grandchild may hold open.
  while (read_some(milliseconds(0))) {
  }
  return status_;
}

Result<std::string> Child::stop() {
  if (pid_ <= 0) return fail("no child");
  if (!reaped_) kill(pid_, SIGTERM);
  auto status = wait(milliseconds(5000));
  if (!status) {
    kill_and_reap();
    return std::unexpected(status.error());
  }
  if (*status != 0) return fail("the child ended with status " + std::to_string(*status));
  return output_;
}

std::string Child::last_line() const {
  std::string_view text = output_;
  while (text.ends_with('\n')) text.remove_suffix(1);
  const size_t start = text.rfind('\n');
  return std::string(start == std::string_view::npos ? text : text.substr(start + 1));
}

}  // namespace pkprof::testnet
