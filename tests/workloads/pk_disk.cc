// SPDX-License-Identifier: Apache-2.0
// Uses a file as programs do: written and read through the page cache, past it, through a mapping;
// or many small files, made and removed.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "workload.h"

namespace {

using namespace pkprof::workload;

struct Options {
  std::string file;
  std::string mode = "write";
  uint64_t megabytes = 64;
  uint64_t chunk_kb = 256;
  uint64_t from_mb = 0;
  double rate = 0;         // megabytes (or files) a second; 0: as fast as can be
  uint64_t sync_mb = 0;    // fdatasync after so many; 0: never
  bool synced = false;     // fdatasync after each chunk
  bool at_random = false;  // each chunk somewhere in its part of the time, not when it begins
  int threads = 1;         // each at a part of the file of its own
  bool scattered = false;  // no two pages of a chunk lie beside each other in memory
};

struct Done {
  uint64_t bytes = 0;
  uint64_t files = 0;
};

// Keeps to the rate: sleeps until `amount` is due.
void pace(const Options& options, uint64_t start, double amount) {
  if (options.rate > 0) sleep_until_ns(start + static_cast<uint64_t>(amount / options.rate * 1e9));
}

int open_file(const Options& options, int flags) {
  const int fd = open(options.file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0644);
  if (fd < 0) die("opening " + options.file);
  return fd;
}

// The memory of one read or write.
class Chunk {
 public:
  static constexpr size_t kPage = 4096;

  // Room for `bytes` in one piece; scattered, for `bytes` in pages.
  Chunk(size_t bytes, bool scattered) : bytes_(scattered ? 2 * bytes : bytes) {
    buffer_ = static_cast<char*>(std::aligned_alloc(kPage, bytes_));
    if (!buffer_) die("memory");
    if (scattered && madvise(buffer_, bytes_, MADV_NOHUGEPAGE)) die("madvise");
    std::memset(buffer_, 0x5a, bytes_);
    const size_t step = scattered ? kPage : bytes_;
    for (size_t at = 0; at < bytes_; at += scattered ? 2 * step : step)
      pieces_.push_back({buffer_ + at, step});
    if (pieces_.size() > IOV_MAX) die("a chunk of so many pages");
  }
  ~Chunk() { std::free(buffer_); }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  [[nodiscard]] ssize_t transfer(int fd, bool reads, off_t at) const {
    const auto count = static_cast<int>(pieces_.size());
    return reads ? preadv(fd, pieces_.data(), count, at) : pwritev(fd, pieces_.data(), count, at);
  }

 private:
  size_t bytes_;
  char* buffer_;
  std::vector<iovec> pieces_;
};

// Over and over from the start to the end; `ahead` reads by way of the page cache, which holds
// nothing of the file each time.
Done stream(const Options& options) {
  const bool ahead = options.mode == "ahead";
  const bool reads = options.mode == "read" || ahead;
  const bool direct = options.mode == "direct" || options.mode == "read";
  const int fd = open_file(options, direct ? O_DIRECT : 0);
  const size_t size_of_chunk = options.chunk_kb << 10;
  const uint64_t size = options.megabytes << 20;
  const uint64_t from = options.from_mb << 20;
  if (reads) {
    const size_t filled = std::max(size_of_chunk, size_t{256} << 10);
    const Chunk chunk(filled, false);
    for (uint64_t at = 0; at < size && !stopped(); at += filled)
      if (chunk.transfer(fd, false, static_cast<off_t>(from + at)) < 0)
        die("writing " + options.file);
  }
  if (ahead && (fdatasync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)))
    die("syncing " + options.file);
  const Chunk chunk(size_of_chunk, options.scattered);
  say_ready();
  const uint64_t start = now_ns();
  std::minstd_rand random{std::random_device{}()};
  std::uniform_real_distribution<double> part(0, options.at_random ? 1 : 0);
  Done done;
  uint64_t unsynced = 0;
  while (!stopped()) {
    const auto at = static_cast<off_t>(from + done.bytes % size);
    const ssize_t n = chunk.transfer(fd, reads, at);
    if (n < 0 && errno != EINTR) die(options.mode + " of " + options.file);
    if (n <= 0) continue;
    done.bytes += static_cast<uint64_t>(n);
    // All at once: memory is read into, and given up, in larger pieces than a chunk.
    if (ahead && done.bytes % size == 0) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    unsynced += static_cast<uint64_t>(n);
    if (options.synced || (options.sync_mb && unsynced >= options.sync_mb << 20)) {
      if (fdatasync(fd)) die("fdatasync of " + options.file);
      unsynced = 0;
    }
    const double next = part(random) * static_cast<double>(size_of_chunk);
    pace(options, start, (static_cast<double>(done.bytes) + next) / (1 << 20));
  }
  close(fd);
  return done;
}

Done stream_by_threads(const Options& options) {
  std::atomic<uint64_t> bytes = 0;
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < options.threads; ++i) {
      Options part = options;
      part.from_mb += static_cast<uint64_t>(i) * options.megabytes;
      all.emplace_back([&bytes, part] { bytes += stream(part).bytes; });
    }
  }
  return {.bytes = bytes};
}

// A byte in each page of a mapping.
Done map(const Options& options) {
  const int fd = open_file(options, 0);
  const uint64_t size = options.megabytes << 20;
  if (ftruncate(fd, static_cast<off_t>(size))) die("ftruncate");
  auto* bytes =
      static_cast<volatile char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  if (bytes == MAP_FAILED) die("mmap of " + options.file);
  say_ready();
  const uint64_t start = now_ns();
  Done done;
  while (!stopped()) {
    bytes[done.bytes % size] = static_cast<char>(done.bytes >> 12);
    done.bytes += 4096;
    if (done.bytes % (1 << 20) == 0)
      pace(options, start, static_cast<double>(done.bytes) / (1 << 20));
  }
  close(fd);
  return done;
}

// Small files: made, written, synced if asked for, removed.
Done create(const Options& options) {
  say_ready();
  const uint64_t start = now_ns();
  Done done;
  const std::string text(1000, 'x');
  while (!stopped()) {
    const std::string name = options.file + std::to_string(done.files % 64);
    unlink(name.c_str());
    const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) die("making " + name);
    const ssize_t n = write(fd, text.data(), text.size());
    if (n > 0) done.bytes += static_cast<uint64_t>(n);
    if (options.sync_mb) fsync(fd);
    close(fd);
    ++done.files;
    pace(options, start, static_cast<double>(done.files));
  }
  return done;
}

int run(int argc, char** argv) {
  ArgParser app("Uses files.");
  app.show_defaults();
  Common common;
  common.add_to(app);
  Options options;
  app.add("--file", options.file, "path; of small files, how their paths begin").required();
  app.add("--mode", options.mode,
          "write, direct (O_DIRECT), read (O_DIRECT), ahead (read without), map, create")
      .one_of({"write", "direct", "read", "ahead", "map", "create"});
  app.add("--megabytes", options.megabytes, "size of the file");
  app.add("--from-mb", options.from_mb, "where in the file it begins to write");
  app.add("--chunk-kb", options.chunk_kb, "of each write or read");
  app.add("--rate", options.rate, "megabytes (create: files) a second; 0: no limit");
  app.add("--sync-mb", options.sync_mb, "sync after so many megabytes (create: each file)");
  app.add("--synced", options.synced, "of write, direct: sync after each chunk");
  app.add("--at-random", options.at_random,
          "with --rate: each chunk at a random moment of its part of the time");
  app.add("--threads", options.threads, "of write, direct, read: each at that rate").positive();
  app.add("--scattered", options.scattered, "of write, direct, read: each page a piece of its own");
  if (const auto end = app.parse(argc, argv)) return *end;
  begin(common);
  const uint64_t start = now_ns();
  const Done done = options.mode == "map"      ? map(options)
                    : options.mode == "create" ? create(options)
                    : options.threads > 1      ? stream_by_threads(options)
                                               : stream(options);
  print_result({{"program", "pk_disk"},
                {"wall_ns", now_ns() - start},
                {"bytes", done.bytes},
                {"files", done.files}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
