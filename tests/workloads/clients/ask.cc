// SPDX-License-Identifier: Apache-2.0
#include "ask.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "workload.h"

namespace pkprof::workload {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Address address_of(const Place& place) {
  Address address;
  if (!place.path.empty()) {
    auto* un = reinterpret_cast<sockaddr_un*>(&address.storage);
    un->sun_family = AF_UNIX;
    std::strncpy(un->sun_path, place.path.c_str(), sizeof(un->sun_path) - 1);
    address.length = sizeof(sockaddr_un);
    return address;
  }
  auto* in = reinterpret_cast<sockaddr_in*>(&address.storage);
  in->sin_family = AF_INET;
  in->sin_port = htons(static_cast<uint16_t>(place.port));
  if (inet_pton(AF_INET, place.address.c_str(), &in->sin_addr) != 1)
    die("address " + place.address, false);
  address.length = sizeof(sockaddr_in);
  return address;
}

int open_socket(const Place& place) {
  const int type = (place.datagrams ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC;
  const int fd = ::socket(place.path.empty() ? AF_INET : AF_UNIX, type, 0);
  if (fd < 0) die("socket");
  const int on = 1;
  if (place.path.empty()) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (place.path.empty() && !place.datagrams)
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

}  // namespace

int Place::connect() const {
  const Address to = address_of(*this);
  for (int i = 0; i < 500 && !stopped(); ++i) {
    const int fd = open_socket(*this);
    if (::connect(fd, to.get(), to.length) == 0) return fd;
    ::close(fd);
    usleep(10'000);
  }
  if (stopped()) exit(0);
  die("connect");
}

int Place::listen() const {
  const int fd = open_socket(*this);
  if (!path.empty()) ::unlink(path.c_str());
  const Address at = address_of(*this);
  if (::bind(fd, at.get(), at.length)) die("bind");
  if (!datagrams && ::listen(fd, 128)) die("listen");
  return fd;
}

struct Truth::Client {
  std::atomic<int64_t> pid;
  std::atomic<uint64_t> amount;
};

namespace {
constexpr size_t most_clients = 64;
}

Truth::Truth(const std::string& path) {
  constexpr size_t bytes = most_clients * sizeof(Client);
  const int fd = path.empty() ? -1 : open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (!path.empty() && (fd < 0 || ftruncate(fd, bytes))) die(path);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
  if (memory == MAP_FAILED) die("mmap");
  clients_ = static_cast<Client*>(memory);
}

void Truth::add(int client, uint64_t amount) const {
  for (size_t i = 0; i < most_clients; ++i) {
    int64_t nobody = 0;
    Client& at = clients_[i];
    if (at.pid != client && !at.pid.compare_exchange_strong(nobody, client) && nobody != client)
      continue;
    at.amount += amount;
    return;
  }
}

bool read_all(int fd, Ask& to) {
  auto* at = reinterpret_cast<char*>(&to);
  for (size_t got = 0; got < sizeof to;) {
    const ssize_t n = ::read(fd, at + got, sizeof to - got);
    if (n == 0 || (n < 0 && (errno != EINTR || stopped()))) return false;
    if (n > 0) got += static_cast<size_t>(n);
  }
  return true;
}

bool write_all(int fd, const Ask& from) {
  ssize_t n = 0;
  do n = ::write(fd, &from, sizeof from);
  while (n < 0 && errno == EINTR && !stopped());
  return n == static_cast<ssize_t>(sizeof from);
}

}  // namespace pkprof::workload
