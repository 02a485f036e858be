// SPDX-License-Identifier: Apache-2.0
// Network namespaces by way of the `ip` program: it already knows netlink, the bind mounts under
// /run/netns and the /sys that belongs to a namespace, and a test that fails can be repeated by
// hand with the same commands.
#include "testnet.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <tuple>
#include <utility>

namespace pkprof::testnet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kPrefix = "pkt-";

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

}  // namespace pkprof::testnet
