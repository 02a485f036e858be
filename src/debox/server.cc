// SPDX-License-Identifier: Apache-2.0
#include "debox/server.h"

#include <fcntl.h>
#include <linux/types.h>
#include <poll.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <list>
#include <map>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "debox/debox.h"
#include "debox/debox_wire.h"
#include "debox/room.h"

namespace pkprof {
namespace {

constexpr size_t most_clients = 4096;
constexpr size_t most_of_user = 1024;  // clients; root's may be all
constexpr uint32_t most_records = 4096;
constexpr uint32_t most_pieces = 62;                // of a trace: strides are up to 64
constexpr uint64_t most_bytes = uint64_t{1} << 26;  // of a thread's records
// In a turn.
constexpr int most_accepted = 64;
constexpr uint64_t most_ns = 10'000'000;  // for one user's clients

// The number by which a thread or a process knows itself: a container has numbers of its own. Empty
// if it is gone.
std::string own_number(const std::filesystem::path& task) {
  std::ifstream status(task / "status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("NSpid:")) return line.substr(line.find_last_of("\t ") + 1);
  return "";
}

// The thread as we know it. In a container it is looked for among all of its process's.
std::optional<uint32_t> thread_of(uint32_t pid, uint32_t own_tid) {
  const std::filesystem::path process = "/proc/" + std::to_string(pid);
  const std::filesystem::path tasks = process / "task";
  const std::string own = std::to_string(own_tid);
  if (own_number(tasks / own) == own) return own_tid;
  if (own_number(process) == std::to_string(pid)) return {};
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

Result<DeboxSocket> bind_to(DeboxSocket made) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, made.name.data(), made.name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + made.name.size());
  if (!made.fd.valid() || bind(made.fd.get(), reinterpret_cast<const sockaddr*>(&address), size))
    return fail_errno("a socket for programs that use the library, " + made.name);
  return made;
}

}  // namespace

Result<DeboxSocket> DeboxSocket::for_command() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) return fail_errno("a random number");
  char name[40];
  std::snprintf(name, sizeof name, "pkprof-debox-%016llx", static_cast<unsigned long long>(number));
  return bind_to({.name = name, .fd = new_socket()});
}

Result<DeboxSocket> DeboxSocket::beside(uint32_t pid) {
  const auto process = std::filesystem::path("/proc") / std::to_string(pid);
  Fd fd = socket_beside(process);
  if (!fd.valid()) return fail_errno("process " + std::to_string(pid));
  return bind_to({.name = DEBOX_WIRE_ATTACHED + own_number(process), .fd = std::move(fd)});
}

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
  const DeboxSocket& listener;
  Options options;
  bool has_files = true;  // for more clients
  std::list<Client> clients;
  std::map<uid_t, size_t> of_user;  // how many of them
  DeboxRoom room{DeboxSide::is_held};
  uint64_t marked = 0;
  uint64_t refused = 0;
  uint64_t threads_refused = 0;

  Impl(DeboxSide& s, const DeboxSocket& of, Options o)
      : side(s), listener(of), options(std::move(o)) {}

  void accept_some() {
    for (int n = 0; n < most_accepted; ++n) {
      Fd fd(accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      has_files = fd.valid() || errno == EAGAIN;
      if (!fd.valid()) return;
      ucred peer{};
      socklen_t size = sizeof peer;
      if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.pid <= 0) continue;
      if (clients.size() >= most_clients || (peer.uid && of_user[peer.uid] >= most_of_user)) {
        ++refused;
        continue;
      }
      Fd process(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
      if (!process.valid() || !options.serves(static_cast<uint32_t>(peer.pid))) continue;
      ++of_user[peer.uid];
      clients.push_back(
          {std::move(fd), std::move(process), static_cast<uint32_t>(peer.pid), peer.uid, {}, {}});
    }
  }

  // Whether the thread is the client's, and its user may look into it. If the process is not
  // dumpable, /proc/PID/task/TID/status belongs to root; /proc/PID itself does not tell.
  static bool has_thread(const Client& client, uint32_t tid) {
    struct stat owner{};
    const std::string status =
        "/proc/" + std::to_string(client.pid) + "/task/" + std::to_string(tid) + "/status";
    if (stat(status.c_str(), &owner) || (owner.st_uid != client.uid && client.uid)) return false;
    pollfd ended{client.process.get(), POLLIN, 0};
    return poll(&ended, 1, 0) == 0;
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
      who.was = it->second.area;
      if (!side.watch(who)) side.unwatch(tid, who.was);
    } else {
      side.unwatch(tid, it->second.area);
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
    if (request.traces > most_pieces * DEBOX_TRACES) return EINVAL;
    const auto tid = thread_of(client.pid, request.tid);
    if (!tid || !has_thread(client, *tid)) return ESRCH;
    off(client, request.tid);
    Thread thread;
    thread.marked = request.mode == DEBOX_MARKED_CALLS;
    const bool trace = request.parts & DEBOX_PART_TRACE && request.traces && side.traces();
    uint32_t pieces = trace ? (request.traces + DEBOX_TRACES - 1) / DEBOX_TRACES : 0;
    if (!thread.marked && options.wants & DB_TRACE) pieces = std::max<uint32_t>(pieces, DB_PIECES);
    const uint32_t stride = 1 + pieces;
    DeboxRoom::Holder holder{.pid = client.pid,
                             .user = client.uid,
                             .bytes = uint64_t{stride} * request.records * sizeof(debox_record)};
    if (holder.bytes > most_bytes) return ENOMEM;
    if (const int error = room.refuses(holder)) {
      ++threads_refused;
      return error;
    }
    if (!thread.marked && !side.attach_calls()) return EPERM;
    auto records = side.make_records(1 + stride * request.records);
    if (!records) return ENOMEM;
    holder.memory = records->id;
    room.add(holder);
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
    client.tids[request.tid] = *tid;
    client.threads[request.tid] = std::move(thread);
    // The thread may have ended or executed another program up to here. The kernel side sees what
    // comes after side.watch().
    if (!has_thread(client, *tid)) {
      off(client, request.tid);
      return ESRCH;
    }
    marked += request.mode == DEBOX_MARKED_CALLS;
    memory = std::move(records->memory);
    answer.stride = stride;
    answer.parts = request.parts & (DEBOX_PARTS | (trace ? uint32_t{DEBOX_PART_TRACE} : 0));
    return 0;
  }

  // Answers one request, or frees one thread of a client that is gone. Returns whether there was
  // one.
  bool serve(Client& client) {
    if (!client.fd.valid()) {
      if (!client.threads.empty()) off(client, client.threads.begin()->first);
      return true;
    }
    debox_wire_request request{};
    const ssize_t n = recv(client.fd.get(), &request, sizeof request, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    // Gone, or makes no sense.
    if (n != sizeof request || request.version != DEBOX_WIRE_VERSION || !answer(client, request))
      client.fd.reset();
    return true;
  }

  bool answer(Client& client, const debox_wire_request& request) {
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
    return send_answer(client, answer, memory);
  }

  // Answers one request of each client, until its user's time is up: requests may come faster than
  // they are answered. Returns whether a client that is gone still has threads.
  bool serve_some() {
    std::map<uid_t, uint64_t> spent;
    bool leaving = false;
    auto next = clients.begin();
    for (size_t left = clients.size(); left; --left) {
      const auto client = next++;
      uint64_t& ns = spent[client->uid];
      const uint64_t begin = monotonic_ns();
      const bool served = ns < most_ns && serve(*client);
      ns += monotonic_ns() - begin;
      if (!client->fd.valid() && client->threads.empty()) {
        --of_user[client->uid];
        clients.erase(client);
        continue;
      }
      leaving |= !client->fd.valid();
      if (served) clients.splice(clients.end(), clients, client);
    }
    return leaving;
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
};

Result<DeboxServer> DeboxServer::open(DeboxSide& side, const DeboxSocket& socket, Options options) {
  if (listen(socket.fd.get(), SOMAXCONN))
    return fail_errno("listening for programs that use the library");
  return DeboxServer(std::make_unique<Impl>(side, socket, std::move(options)));
}

std::vector<int> DeboxServer::poll_fds() const {
  std::vector<int> fds;
  if (impl_->has_files) fds.push_back(impl_->listener.fd.get());
  for (const Impl::Client& client : impl_->clients)
    if (client.fd.valid()) fds.push_back(client.fd.get());
  return fds;
}

bool DeboxServer::serve() {
  impl_->accept_some();
  return impl_->serve_some();
}

uint64_t DeboxServer::marked() const {
  return impl_->marked;
}

uint64_t DeboxServer::refused() const {
  return impl_->refused;
}

uint64_t DeboxServer::threads_refused() const {
  return impl_->threads_refused;
}

DeboxServer::DeboxServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DeboxServer::DeboxServer(DeboxServer&&) noexcept = default;
DeboxServer& DeboxServer::operator=(DeboxServer&&) noexcept = default;
DeboxServer::~DeboxServer() = default;

}  // namespace pkprof
