// SPDX-License-Identifier: Apache-2.0
#include "lifetimes.h"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <span>
#include <string>

namespace pkprof::accuracy {
namespace {

constexpr size_t header_bytes = NLMSG_HDRLEN + GENL_HDRLEN;

size_t aligned(size_t length) {
  return NLA_ALIGN(length);
}

// Each attribute's type and value.
void for_each_attribute(std::span<const char> bytes,
                        const std::function<void(uint16_t, std::span<const char>)>& tell) {
  while (bytes.size() >= NLA_HDRLEN) {
    nlattr attribute;
    std::memcpy(&attribute, bytes.data(), sizeof attribute);
    if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > bytes.size()) return;
    tell(attribute.nla_type & NLA_TYPE_MASK,
         bytes.subspan(NLA_HDRLEN, attribute.nla_len - size_t{NLA_HDRLEN}));
    bytes = bytes.subspan(std::min(bytes.size(), aligned(attribute.nla_len)));
  }
}

bool send_command(int socket, uint16_t family, uint8_t command, uint16_t type,
                  const std::string& value) {
  const size_t attribute_bytes = NLA_HDRLEN + value.size() + 1;
  std::string message(header_bytes + aligned(attribute_bytes), 0);
  const nlmsghdr header{.nlmsg_len = static_cast<uint32_t>(message.size()),
                        .nlmsg_type = family,
                        .nlmsg_flags = NLM_F_REQUEST,
                        .nlmsg_seq = 0,
                        .nlmsg_pid = 0};
  const genlmsghdr generic{.cmd = command, .version = 1, .reserved = 0};
  const nlattr attribute{.nla_len = static_cast<uint16_t>(attribute_bytes), .nla_type = type};
  std::memcpy(message.data(), &header, sizeof header);
  std::memcpy(message.data() + NLMSG_HDRLEN, &generic, sizeof generic);
  std::memcpy(message.data() + header_bytes, &attribute, sizeof attribute);
  std::memcpy(message.data() + header_bytes + NLA_HDRLEN, value.data(), value.size());
  return send(socket, message.data(), message.size(), 0) == static_cast<ssize_t>(message.size());
}

// The number of the family "TASKSTATS"; 0: the kernel has none.
uint16_t family_of_taskstats(int socket) {
  if (!send_command(socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME,
                    TASKSTATS_GENL_NAME))
    return 0;
  std::array<char, 8192> bytes;
  const ssize_t size = recv(socket, bytes.data(), bytes.size(), 0);
  uint16_t family = 0;
  if (size > static_cast<ssize_t>(header_bytes))
    for_each_attribute(std::span(bytes).first(static_cast<size_t>(size)).subspan(header_bytes),
                       [&](uint16_t type, std::span<const char> value) {
                         if (type == CTRL_ATTR_FAMILY_ID && value.size() == sizeof family)
                           std::memcpy(&family, value.data(), sizeof family);
                       });
  return family;
}

}  // namespace

Result<std::unique_ptr<Lifetimes>> Lifetimes::listen() {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC));
  if (!socket.valid()) return fail_errno("a netlink socket");
  const int room = 64 << 20;
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  const uint16_t family = family_of_taskstats(socket.get());
  if (family == 0) return fail("no taskstats in this kernel");
  const std::string cpus = "0-" + std::to_string(sysconf(_SC_NPROCESSORS_CONF) - 1);
  if (!send_command(socket.get(), family, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_REGISTER_CPUMASK,
                    cpus))
    return fail_errno("taskstats");
  return std::unique_ptr<Lifetimes>(new Lifetimes(std::move(socket)));
}

Lifetimes::Lifetimes(Fd socket)
    : socket_(std::move(socket)),
      reader_([this](const std::stop_token& stop) { read_until_stopped(stop); }) {}

Lifetimes::~Lifetimes() = default;

void Lifetimes::read_until_stopped(const std::stop_token& stop) {
  std::array<char, 8192> bytes;
  while (!stop.stop_requested()) {
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, 50) <= 0) continue;
    const ssize_t size = recv(socket_.get(), bytes.data(), bytes.size(), 0);
    const std::lock_guard lock(mutex_);
    if (size < 0 && errno == ENOBUFS) has_lost_ = true;
    if (size <= static_cast<ssize_t>(header_bytes)) continue;
    const auto tell = [this](uint16_t type, std::span<const char> value) {
      taskstats stats{};
      if (type != TASKSTATS_TYPE_STATS) return;
      std::memcpy(&stats, value.data(), std::min(value.size(), sizeof stats));
      threads_[static_cast<pid_t>(stats.ac_tgid)].push_back(
          {.tid = static_cast<pid_t>(stats.ac_pid),
           .ns = stats.ac_etime * 1000,
           .cpu_ns = stats.cpu_run_virtual_total});
    };
    for_each_attribute(std::span(bytes).first(static_cast<size_t>(size)).subspan(header_bytes),
                       [&](uint16_t type, std::span<const char> value) {
                         if (type == TASKSTATS_TYPE_AGGR_PID) for_each_attribute(value, tell);
                       });
  }
}

std::vector<Lifetimes::Thread> Lifetimes::of(pid_t process) {
  for (int tries = 0; tries < 100; ++tries) {
    {
      const std::lock_guard lock(mutex_);
      const std::vector<Thread>& threads = threads_[process];
      if (std::ranges::find(threads, process, &Thread::tid) != threads.end()) return threads;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return {};
}

bool Lifetimes::has_lost() {
  const std::lock_guard lock(mutex_);
  return has_lost_;
}

}  // namespace pkprof::accuracy
