// SPDX-License-Identifier: Apache-2.0
// Writes a file through io_uring: the writing is done by the ring's workers, which are threads of
// this process that it never started; or what is asked for is found by a thread of the kernel's
// that looks for it all the time.
#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "workload.h"

namespace {

using namespace pkprof::workload;

constexpr unsigned kDepth = 8;

struct Options {
  std::string file;
  bool polled = false;
  uint64_t megabytes = 64;
  uint64_t chunk_kb = 256;
  uint64_t sync_mb = 16;
  double rate = 0;  // megabytes a second; 0: as fast as can be
};

// Of a call of liburing's, which returns errors below zero.
int checked(int result, const char* what) {
  if (result >= 0) return result;
  errno = -result;
  die(what);
}

// Over and over from the start to the end, so many writes at a time.
uint64_t write_through(io_uring& ring, int fd, const Options& options) {
  std::vector<char> chunk(options.chunk_kb << 10, 'x');
  const uint64_t size = options.megabytes << 20;
  uint64_t done = 0;
  uint64_t asked = 0;
  uint64_t synced = 0;
  unsigned pending = 0;
  const uint64_t start = now_ns();
  while (!stopped()) {
    if (options.rate > 0) {
      const double seconds = static_cast<double>(asked) / (options.rate * (1 << 20));
      sleep_until_ns(start + static_cast<uint64_t>(seconds * 1e9));
    }
    while (pending < kDepth) {
      io_uring_sqe* sqe = io_uring_get_sqe(&ring);
      if (!sqe) break;
      if (asked - synced >= options.sync_mb << 20) {
        io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
        synced = asked;
      } else {
        io_uring_prep_write(sqe, fd, chunk.data(), static_cast<unsigned>(chunk.size()),
                            asked % size);
        asked += chunk.size();
      }
      sqe->flags |= IOSQE_ASYNC;
      ++pending;
    }
    io_uring_cqe* cqe = nullptr;
    const int result = io_uring_submit_and_wait(&ring, 1);
    if (result == -EINTR) continue;
    checked(result, "io_uring_submit_and_wait");
    while (io_uring_peek_cqe(&ring, &cqe) == 0) {
      if (cqe->res != -EINTR && cqe->res != -ECANCELED)
        done += static_cast<uint64_t>(checked(cqe->res, "writing"));
      io_uring_cqe_seen(&ring, cqe);
      --pending;
    }
  }
  return done;
}

int run(int argc, char** argv) {
  ArgParser app("Writes a file through io_uring.");
  app.show_defaults();
  Common common;
  common.add_to(app);
  Options options;
  app.add("--file", options.file, "path").required();
  app.add("--polled", options.polled, "a thread of the kernel's polls for what is asked for");
  app.add("--megabytes", options.megabytes, "size of the file").positive();
  app.add("--chunk-kb", options.chunk_kb, "of each write").positive();
  app.add("--sync-mb", options.sync_mb, "sync after so many megabytes").positive();
  app.add("--rate", options.rate, "megabytes a second; 0: no limit");
  if (const auto end = app.parse(argc, argv)) return *end;
  begin(common);
  const int fd = open(options.file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) die("opening " + options.file);
  io_uring ring;
  checked(io_uring_queue_init(2 * kDepth, &ring, options.polled ? IORING_SETUP_SQPOLL : 0),
          "io_uring_queue_init");
  say_ready();
  const uint64_t start = now_ns();
  const uint64_t bytes = write_through(ring, fd, options);
  io_uring_queue_exit(&ring);
  close(fd);
  print_result({{"program", "pk_uring"}, {"wall_ns", now_ns() - start}, {"bytes", bytes}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
