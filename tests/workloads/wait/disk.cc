// SPDX-License-Identifier: Apache-2.0
// Waits for a disk: reads past the page cache, and page faults of a mapped file; first alone, then
// beside a child that writes to the same disk.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "wait/wait.h"

namespace pkprof::wait {
namespace {

constexpr size_t pieces = 16;

// A file that is read or written past the page cache.
class Direct {
 public:
  Direct(const std::string& path, size_t bytes)
      : memory_(aligned_alloc(4096, bytes)), bytes_(bytes) {
    file_ = open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
    std::memset(memory_, 1, bytes);
    for (size_t i = 0; i < pieces; ++i) write(i);
  }
  ~Direct() {
    close(file_);
    std::free(memory_);
  }
  Direct(const Direct&) = delete;
  Direct& operator=(const Direct&) = delete;
  void write(size_t i) { check(pwrite(file_, memory_, bytes_, at(i))); }
  void read(size_t i) { check(pread(file_, memory_, bytes_, at(i))); }

 private:
  [[nodiscard]] off_t at(size_t i) const { return static_cast<off_t>(i % pieces * bytes_); }
  void check(ssize_t done) const {
    if (done != static_cast<ssize_t>(bytes_)) give_up("the disk");
  }

  void* memory_;
  size_t bytes_;
  int file_ = -1;
};

// The same file, mapped. A piece is out of memory before it is read.
class Mapped {
 public:
  Mapped(const std::string& path, size_t bytes) : bytes_(bytes) {
    file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    void* const memory = mmap(nullptr, pieces * bytes, PROT_READ, MAP_SHARED, file_, 0);
    if (memory == MAP_FAILED) give_up("mapping a file");
    madvise(memory, pieces * bytes, MADV_RANDOM);  // a page is read when it is touched
    memory_ = static_cast<volatile char*>(memory);
  }
  ~Mapped() {
    munmap(const_cast<char*>(memory_), pieces * bytes_);
    close(file_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  void drop(size_t i) {
    madvise(const_cast<char*>(piece(i)), bytes_, MADV_DONTNEED);
    posix_fadvise(file_, static_cast<off_t>(i % pieces * bytes_), static_cast<off_t>(bytes_),
                  POSIX_FADV_DONTNEED);
  }
  void read(size_t i) {
    for (size_t at = 0; at < bytes_; at += 4096) (void)piece(i)[at];
  }

 private:
  [[nodiscard]] volatile char* piece(size_t i) const { return memory_ + i % pieces * bytes_; }

  volatile char* memory_ = nullptr;
  size_t bytes_;
  int file_ = -1;
};

constexpr size_t read_bytes = 64 << 10, write_bytes = 4 << 20;

// `read` returns how long it was blocked. "took_ns" is how much longer that is beside the writer.
// The bystander reads as often as it can, and has no writer.
Said read_beside_writer(const std::string& directory, uint64_t made_ns,
                        const std::function<uint64_t(size_t)>& read) {
  std::optional<Direct> writers;
  if (!is_bystander())
    made_ns += blocked_time_of([&] { writers.emplace(directory + "/write", write_bytes); });
  const uint64_t alone = now_ns() + lasts / 2, end = alone + lasts;
  const auto reads_until = [&](uint64_t until) {
    std::pair<uint64_t, size_t> waited;  // and how many
    while (now_ns() < until) {
      waited.first += read(waited.second++);
      if (is_bystander()) sleep_ns(ms / 4);
    }
    return waited;
  };
  const auto [alone_ns, alone_times] = reads_until(alone);
  if (is_bystander()) return {};
  const pid_t writer = in_child([&] {
    for (size_t i = 0; now_ns() < end; ++i) writers->write(i);
  });
  const auto [beside_ns, beside_times] = reads_until(end);
  const uint64_t own_ns = alone_ns * beside_times / alone_times;
  waitpid(writer, nullptr, 0);
  return {.others = {writer},
          .waited_ns = made_ns + alone_ns + beside_ns,
          .took_ns = beside_ns - std::min(beside_ns, own_ns)};
}

}  // namespace

Said disk_scenario(const Arguments& directories) {
  const std::string& directory = directories.front();
  std::optional<Direct> own;
  const uint64_t made_ns = blocked_time_of([&] { own.emplace(directory + "/read", read_bytes); });
  return read_beside_writer(directory, made_ns,
                            [&](size_t i) { return blocked_time_of([&] { own->read(i); }); });
}

// What its file takes to be made is no fault.
Said fault_scenario(const Arguments& directories) {
  const std::string& directory = directories.front();
  const std::string file = directory + "/read";
  {
    const Direct made(file, read_bytes);
  }
  Mapped own(file, read_bytes);
  Said said = read_beside_writer(directory, 0, [&](size_t i) {
    own.drop(i);
    return blocked_time_of([&] { own.read(i); });
  });
  return said;
}

}  // namespace pkprof::wait
