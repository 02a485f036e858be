// SPDX-License-Identifier: Apache-2.0
#include "collect/debox_server.h"

#include <fcntl.h>
#include <linux/types.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <list>
#include <map>
#include <optional>
#include <thread>

#include "debox/debox.h"
#include "debox/debox_wire.h"

namespace pkprof {
namespace {

constexpr size_t most_clients = 4096;
constexpr uint32_t most_records = 4096;
constexpr uint32_t most_pieces = 62;                // of a trace: strides are up to 64
constexpr uint64_t most_bytes = uint64_t{1} << 26;  // of a thread's records

// The number by which a thread or a process knows itself: a container has numbers of its own. Empty
// if it is gone.
std::string own_number(const std::filesystem::path& task) {
  std::ifstream status(task / "status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("NSpid:")) return line.substr(line.find_last_of("\t ") + 1);
  return "";
}

// The thread as we know it.
std::optional<uint32_t> thread_of(uint32_t pid, uint32_t own_tid) {
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
  const std::string own = std::to_string(own_tid);
  if (own_number(tasks / own) == own) return own_tid;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(tasks, error))
    if (own_number(task.path()) == own)
      return static_cast<uint32_t>(std::stoul(task.path().filename().string()));
  return {};
}

Fd new_socket() {
  return Fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Abstract names are a network namespace's: a socket for the process is made in its own. errno says
// why, where it is not valid.
Fd socket_beside(const std::filesystem::path& process) {
  const Fd network(open((process / "ns/net").c_str(), O_RDONLY | O_CLOEXEC));
  if (!network.valid()) return Fd();
  Fd made;
  int why = 0;
  // Which namespace it is in is a thread's own.
  std::thread([&] {
    if (!setns(network.get(), CLONE_NEWNET)) made = new_socket();
    why = errno;
  }).join();
  errno = why;
  return made;
}

}  // namespace

struct DeboxServer::Impl {
  struct Thread {
    uint32_t area = 0;
    bool marked = false;
    DeboxSide::Events events;
  };
  struct Client {
    Fd fd;
    Fd process;  // so that it is seen when it has ended, and the number is another's
    uint32_t pid = 0;
    uid_t uid = 0;
    std::map<uint32_t, Thread> threads;  // by the number that the client knows
    std::map<uint32_t, uint32_t> tids;   // and the one that we know
  };

  DeboxSide& side;
  Options options;
  Fd listener;
  std::list<Client> clients;
  uint64_t marked = 0;
  uint64_t refused = 0;

  Impl(DeboxSide& s, Options o) : side(s), options(std::move(o)) {}

  void accept_all() {
    for (;;) {
      Fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd.valid()) return;
      ucred peer{};
      socklen_t size = sizeof peer;
      if (clients.size() >= most_clients) {
        ++refused;
        continue;
      }
      if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.pid <= 0) continue;
      Fd process(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
      if (!process.valid() || !options.serves(static_cast<uint32_t>(peer.pid))) continue;
      clients.push_back(
          {std::move(fd), std::move(process), static_cast<uint32_t>(peer.pid), peer.uid, {}, {}});
    }
  }

  // It has not ended, nor become a program that its user may not look into.
  static bool is_still_itself(const Client& client) {
    pollfd ended{client.process.get(), POLLIN, 0};
    struct stat owner{};
    const std::string directory = "/proc/" + std::to_string(client.pid);
    return poll(&ended, 1, 0) == 0 && !stat(directory.c_str(), &owner) &&
           (owner.st_uid == client.uid || client.uid == 0);
  }

  void off(Client& client, uint32_t own_tid) {
    const auto it = client.threads.find(own_tid);
    if (it == client.threads.end()) return;
    const uint32_t tid = client.tids[own_tid];
    if (options.wants) {
      db_watched who{};
      who.tid = tid;
      who.pid = client.pid;
      who.wants = options.wants;
      who.begets = options.begets;
      who.traces = options.wants & DB_TRACE ? DB_OWN_TRACES : 0;
      who.known = 1;
      if (!side.watch(who)) side.unwatch(tid);
    } else {
      side.unwatch(tid);
    }
    side.free_records(it->second.area);
    client.threads.erase(it);
    client.tids.erase(own_tid);
  }

  // Returns an errno; 0: done, with the memory to be handed over.
  int on(Client& client, const debox_wire_request& request, debox_wire_answer& answer, Fd& memory) {
    if (request.records == 0 || request.records > most_records ||
        !std::has_single_bit(request.records) || request.mode > DEBOX_ALL_CALLS)
      return EINVAL;
    const auto tid = thread_of(client.pid, request.tid);
    if (!tid || !is_still_itself(client)) return ESRCH;
    off(client, request.tid);
    Thread thread;
    thread.marked = request.mode == DEBOX_MARKED_CALLS;
    if (!thread.marked && !side.attach_calls()) return EPERM;
    const bool trace = request.parts & DEBOX_PART_TRACE && request.traces && side.traces();
    uint32_t pieces = trace ? (request.traces + DEBOX_TRACES - 1) / DEBOX_TRACES : 0;
    if (!thread.marked && options.wants & DB_TRACE) pieces = std::max<uint32_t>(pieces, DB_PIECES);
    if (pieces > most_pieces) return EINVAL;
    const uint32_t stride = 1 + pieces;
    if (uint64_t{stride} * request.records * sizeof(debox_record) > most_bytes) return ENOMEM;
    auto records = side.make_records(1 + stride * request.records);
    if (!records) return ENOMEM;
    thread.area = records->area;
    db_watched who{};
    who.tid = *tid;
    who.pid = client.pid;
    who.area = records->area;
    who.base = 1;
    who.mask = request.records - 1;
    who.stride = stride;
    who.mark = request.mark;
    who.traces = pieces * DEBOX_TRACES;
    who.wants = DB_RECORDS | (request.parts & DEBOX_PART_SLEEPS ? DB_SLEEPS : 0) |
                (request.parts & DEBOX_PART_FAULTS ? DB_FAULTS : 0) | (trace ? DB_TRACE : 0);
    who.wants |= thread.marked ? uint32_t{DB_MARKED} : DB_CALLS_ALL | options.wants;
    who.begets = options.begets;
    if (!options.events_are_watched)
      thread.events = side.watch_events(*tid, false, request.parts & DEBOX_PART_FAULTS, trace);
    if (!side.watch(who)) {
      side.free_records(records->area);
      return EMFILE;
    }
    marked += thread.marked;
    memory = std::move(records->memory);
    answer.stride = stride;
    answer.parts = request.parts & (DEBOX_PARTS | (trace ? uint32_t{DEBOX_PART_TRACE} : 0));
    client.tids[request.tid] = *tid;
    client.threads[request.tid] = std::move(thread);
    return 0;
  }

  // False: the client is gone, or makes no sense.
  bool serve(Client& client) {
    for (;;) {
      debox_wire_request request{};
      const ssize_t n = recv(client.fd.get(), &request, sizeof request, MSG_DONTWAIT | MSG_TRUNC);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      if (n != sizeof request || request.version != DEBOX_WIRE_VERSION) return false;
      debox_wire_answer answer{};
      answer.version = DEBOX_WIRE_VERSION;
      Fd memory;
      switch (request.what) {
        case DEBOX_WIRE_ON:
          answer.error = on(client, request, answer, memory);
          break;
        case DEBOX_WIRE_OFF:
          off(client, request.tid);
          break;
        case DEBOX_WIRE_PLACE: {
          const std::string name = options.place_name(request.place);
          std::memcpy(answer.name, name.data(), std::min(name.size(), sizeof answer.name - 1));
          break;
        }
        default:
          answer.error = ENOSYS;
      }
      if (!send_answer(client, answer, memory)) return false;
    }
  }

  static bool send_answer(const Client& client, debox_wire_answer& answer, const Fd& memory) {
    iovec part{&answer, sizeof answer};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (memory.valid()) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(sizeof(int));
      const int fd = memory.get();
      std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    return sendmsg(client.fd.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof answer);
  }

  void forget(Client& client) {
    while (!client.threads.empty()) off(client, client.threads.begin()->first);
  }
};

Result<DeboxServer> DeboxServer::open(DeboxSide& side, Options options) {
  auto impl = std::make_unique<Impl>(side, std::move(options));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string name = impl->options.name;
  if (const uint32_t pid = impl->options.attached) {
    const auto process = std::filesystem::path("/proc") / std::to_string(pid);
    name = DEBOX_WIRE_ATTACHED + own_number(process);
    impl->listener = socket_beside(process);
    if (!impl->listener.valid()) return fail_errno("process " + std::to_string(pid));
  } else {
    impl->listener = new_socket();
  }
  if (name.size() + 1 > sizeof address.sun_path) return fail("the socket's name is too long");
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!impl->listener.valid() ||
      bind(impl->listener.get(), reinterpret_cast<const sockaddr*>(&address), size) ||
      listen(impl->listener.get(), SOMAXCONN))
    return fail_errno("listening for programs that use the library");
  return DeboxServer(std::move(impl));
}

std::vector<int> DeboxServer::poll_fds() const {
  std::vector<int> fds{impl_->listener.get()};
  for (const Impl::Client& client : impl_->clients) fds.push_back(client.fd.get());
  return fds;
}

void DeboxServer::serve() {
  impl_->accept_all();
  for (auto it = impl_->clients.begin(); it != impl_->clients.end();) {
    if (impl_->serve(*it)) {
      ++it;
      continue;
    }
    impl_->forget(*it);
    it = impl_->clients.erase(it);
  }
}

uint64_t DeboxServer::marked() const {
  return impl_->marked;
}

uint64_t DeboxServer::refused() const {
  return impl_->refused;
}

DeboxServer::DeboxServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DeboxServer::DeboxServer(DeboxServer&&) noexcept = default;
DeboxServer& DeboxServer::operator=(DeboxServer&&) noexcept = default;
DeboxServer::~DeboxServer() = default;

}  // namespace pkprof
