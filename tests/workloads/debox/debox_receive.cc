// SPDX-License-Identifier: Apache-2.0
// What is done elsewhere for one who receives.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "address.h"
#include "debox_calls.h"

namespace pkprof::workload {
namespace {

// What the records say, each read once.
struct Told {
  uint64_t calls = 0;
  uint64_t within_ns = 0;
  uint64_t between_ns = 0;

  void read() {
    for (debox_record r; debox_next(&r); ++calls) {
      within_ns += r.async_ns;
      between_ns += r.async_before_ns;
    }
  }
};

// What came in the last ten milliseconds, so that no packet has to wake us: that would cost more
// where fewer come. How many bytes; -1: the stream has ended.
long receive_once(int fd, std::vector<char>& buffer, Told& told) {
  nap_ms(10);
  long sum = 0;
  for (int i = 1;; ++i) {
    if (i % 64 == 0) told.read();
    long got = 0;
    recorded(SYS_recvfrom,
             [&] { return got = recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT); });
    if (got <= 0) return got == 0 ? -1 : sum;
    sum += got;
  }
}

// Some computing, of a millisecond or so, and a call that nothing is done for.
long burn_once() {
  burn_us(1000);
  recorded(SYS_getppid, [] { return static_cast<long>(getppid()); });
  return 0;
}

int connected(uint16_t port, bool stream) {
  const int fd = bound_socket(parse_address("::", port), stream ? SOCK_STREAM : SOCK_DGRAM, false);
  if (!stream) return fd;
  if (listen(fd, 1)) die("listen");
  say_ready();
  const int peer = accept(fd, nullptr, nullptr);
  if (peer < 0) die("accept");
  return peer;
}

}  // namespace

void receive(uint16_t port, bool stream) {
  begin({});
  const int fd = port ? connected(port, stream) : -1;
  constexpr int room = 16 << 20;
  if (port && setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room)) die("SO_RCVBUFFORCE");
  if (!stream) say_ready();
  std::vector<char> buffer(65536);
  Told{}.read();  // what it did while it waited to be served
  const uint64_t lost = debox_lost();
  Told told;
  uint64_t bytes = 0;
  while (!stopped()) {
    const long got = fd < 0 ? burn_once() : receive_once(fd, buffer, told);
    told.read();
    if (got < 0) break;
    bytes += static_cast<uint64_t>(got);
  }
  say("received", nullptr,
      {{"calls", told.calls},
       {"bytes", bytes},
       {"within_ns", told.within_ns},
       {"between_ns", told.between_ns},
       {"lost", debox_lost() - lost}});
}

}  // namespace pkprof::workload
