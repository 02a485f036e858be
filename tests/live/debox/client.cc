// SPDX-License-Identifier: Apache-2.0
#include "debox/client.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "debox/debox.h"

namespace pkprof::live {

pid_t fork_as(uid_t user, const std::function<int()>& act) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (setgroups(0, nullptr) || setresgid(user, user, user) || setresuid(user, user, user) ||
      prctl(PR_SET_DUMPABLE, 1) || prctl(PR_SET_PDEATHSIG, SIGKILL))
    _exit(99);
  _exit(act());
}

int wait_for(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_as(uid_t user, const std::function<int()>& act) {
  return wait_for(fork_as(user, act));
}

Fd new_socket() {
  return Fd(socket(AF_UNIX, SOCK_SEQPACKET, 0));  // kept over an execve()
}

namespace {

// What one of the C library's functions does with an abstract name.
int with_name(int (*act)(int, const sockaddr*, socklen_t), const Fd& socket,
              const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return act(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) ? errno : 0;
}

}  // namespace

int connect_to(const Fd& socket, const std::string& name) {
  return with_name(connect, socket, name);
}

int take_name(const Fd& socket, const std::string& name) {
  return with_name(bind, socket, name);
}

debox_wire_request ask_for_all(pid_t tid, uint32_t records) {
  debox_wire_request request{};
  request.version = DEBOX_WIRE_VERSION;
  request.what = DEBOX_WIRE_ON;
  request.tid = static_cast<uint32_t>(tid);
  request.mode = DEBOX_ALL_CALLS;
  request.parts = DEBOX_PARTS;
  request.records = records;
  return request;
}

std::optional<Answer> ask(const Fd& socket, const debox_wire_request& request) {
  if (send(socket.get(), &request, sizeof request, MSG_NOSIGNAL) != sizeof request) return {};
  Answer got;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec part{&got.answer, sizeof got.answer};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC) != sizeof got.answer) return {};
  if (const cmsghdr* c = CMSG_FIRSTHDR(&message)) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
    got.memory = Fd(fd);
  }
  return got;
}

OwnPages::OwnPages() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2) ranges_.emplace(begin, end);
  }
}

bool OwnPages::has(uint64_t address) const {
  return std::ranges::any_of(
      ranges_, [&](const auto& r) { return address >= r.first && address < r.second; });
}

bool says_something(const Fd& memory, const debox_wire_request& asked, uint32_t stride,
                    const OwnPages& own) {
  const size_t elements = 1 + size_t{stride} * asked.records;
  const size_t size = elements * sizeof(debox_record);
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) return false;
  const auto* all = static_cast<const debox_record*>(mapped);
  bool said = false;
  for (size_t i = 1; i < elements; i += stride) {
    const debox_record& r = all[i];
    said |= r.sequence && !(r.sequence & 1) && r.number != SYS_clock_gettime;
    for (uint32_t f = 0; f < std::min<uint32_t>(r.faults, DEBOX_FAULTS); ++f)
      said |= !own.has(r.fault[f].address);
  }
  munmap(mapped, size);
  return said;
}

bool make_privileged(const std::string& file, Gain gain) {
  if (gain == Gain::user) return chmod(file.c_str(), 04755) == 0;
  if (gain == Gain::group) return chmod(file.c_str(), 02755) == 0;
  vfs_cap_data net_raw{};
  net_raw.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
  net_raw.data[0].permitted = 1U << CAP_NET_RAW;
  return setxattr(file.c_str(), "security.capability", &net_raw, XATTR_CAPS_SZ_2, 0) == 0;
}

}  // namespace pkprof::live
