// SPDX-License-Identifier: Apache-2.0
// Uses memory so that kernel threads have work with it: fills it with the pages of a file
// (kswapd), has small pages joined (khugepaged), tears free memory to pieces and has it put
// together (kcompactd), holds it or asks for more than there is (the oom reaper).
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "workload.h"

namespace {

using namespace pkprof::workload;

constexpr size_t page = 4096;
constexpr size_t huge = size_t{2} << 20;

struct Options {
  std::string mode;
  std::string file;
  uint64_t megabytes = 64;
  double rate = 0;  // megabytes a second; 0: as fast as can be
};

// Memory whose beginning and end are those of huge pages; unmapped with the object.
class Memory {
 public:
  explicit Memory(size_t bytes) : bytes_((bytes + huge - 1) / huge * huge) {
    whole_ = static_cast<char*>(mmap(nullptr, bytes_ + huge, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (whole_ == MAP_FAILED) die("mmap");
    start_ = whole_ + (huge - reinterpret_cast<uintptr_t>(whole_) % huge) % huge;
  }
  ~Memory() { munmap(whole_, bytes_ + huge); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void advise(int advice) const {
    if (madvise(start_, bytes_, advice) != 0) die("madvise");
  }
  // Has all of it, or as much as there is time for.
  void touch() const { touch(0, bytes_); }
  void touch(size_t from, size_t to) const {
    for (size_t at = from; at < to && !stopped(); at += page) start_[at] = 1;
  }
  // Gives back every other page.
  void punch() const {
    for (size_t at = 0; at < bytes_ && !stopped(); at += 2 * page)
      madvise(start_ + at, page, MADV_DONTNEED);
  }

 private:
  char* whole_;
  char* start_;
  size_t bytes_;
};

void sleep_ms(uint64_t ms) {
  sleep_until_ns(now_ns() + ms * 1'000'000);
}

// What this process has in huge pages.
uint64_t huge_bytes() {
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("AnonHugePages:"))
      return std::strtoull(line.c_str() + std::strlen("AnonHugePages:"), nullptr, 10) << 10;
  return 0;
}

// Reads a file (a hole will do) through the page cache, over and over. At a rate the pieces come
// at random moments: with even steps, who is the one to find too little memory would go by how the
// steps of two readers meet.
uint64_t read_file(const Options& options) {
  const int fd = open(options.file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  const uint64_t size = options.megabytes << 20;
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0) die(options.file);
  std::string buffer(size_t{256} << 10, 0);
  say_ready();
  std::minstd_rand random{std::random_device{}()};
  const double pieces_a_ns = options.rate * (1 << 20) / static_cast<double>(buffer.size()) / 1e9;
  std::exponential_distribution<double> wait(pieces_a_ns > 0 ? pieces_a_ns : 1);
  auto next = static_cast<double>(now_ns());
  uint64_t done = 0;
  while (!stopped()) {
    const auto at = static_cast<off_t>(done % size);
    if (pread(fd, buffer.data(), buffer.size(), at) < 0) die("reading " + options.file);
    done += buffer.size();
    if (options.rate > 0) sleep_until_ns(static_cast<uint64_t>(next += wait(random)));
  }
  return done;
}

// Small pages that may be joined, and new ones when they are.
uint64_t have_joined(const Options& options) {
  const uint64_t size = options.megabytes << 20;
  say_ready();
  uint64_t rounds = 0;
  while (!stopped()) {
    const Memory memory(size);
    memory.advise(MADV_NOHUGEPAGE);
    memory.touch();
    memory.advise(MADV_HUGEPAGE);
    while (!stopped() && huge_bytes() < size / 10 * 9) sleep_ms(20);
    ++rounds;
  }
  return rounds;
}

// Free memory that is all single pages, and a request to put it together.
uint64_t have_compacted(const Options& options) {
  constexpr const char* knob = "/proc/sys/vm/compaction_proactiveness";
  std::string before;
  std::ifstream(knob) >> before;
  if (before.empty()) die(knob);
  say_ready();
  uint64_t rounds = 0;
  while (!stopped()) {
    const Memory memory(options.megabytes << 20);
    memory.advise(MADV_NOHUGEPAGE);
    memory.touch();
    memory.punch();
    std::ofstream(knob) << "100\n";  // sets it and, whatever was there, sets off a run
    sleep_ms(500);
    ++rounds;
  }
  std::ofstream(knob) << before << '\n';
  return rounds;
}

// Until SIGUSR1 says so: by then we are in the cgroup that is to be charged.
void wait_for_go() {
  sigset_t go;
  sigemptyset(&go);
  sigaddset(&go, SIGUSR1);
  sigprocmask(SIG_BLOCK, &go, nullptr);
  say_ready();
  const timespec moment = {0, 100'000'000};
  while (!stopped() && sigtimedwait(&go, nullptr, &moment) != SIGUSR1) {
  }
}

// Has its memory and, with a file, writes to it now and then, until the end.
uint64_t hold(const Options& options) {
  wait_for_go();
  const Memory memory(options.megabytes << 20);
  memory.advise(MADV_NOHUGEPAGE);
  memory.touch();
  const int fd =
      options.file.empty() ? -1 : open(options.file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  while (!stopped()) {
    if (fd >= 0 && write(fd, "x", 1) != 1) die("writing " + options.file);
    sleep_ms(10);
  }
  return 0;
}

// When it is told so: has its memory, and as much of a file in the page cache, at a rate.
uint64_t fill(const Options& options) {
  wait_for_go();
  constexpr size_t piece = size_t{1} << 20;
  const Memory memory(options.megabytes * piece);
  memory.advise(MADV_NOHUGEPAGE);
  const int fd = open(options.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const std::string bytes(piece, 'x');
  auto next = static_cast<double>(now_ns());
  for (uint64_t i = 0; i < options.megabytes && !stopped(); ++i) {
    memory.touch(i * piece, (i + 1) * piece);
    if (write(fd, bytes.data(), piece) != static_cast<ssize_t>(piece))
      die("writing " + options.file);
    if (options.rate > 0) sleep_until_ns(static_cast<uint64_t>(next += 1e9 / options.rate));
  }
  while (!stopped()) sleep_ms(100);
  return options.megabytes;
}

// Asks for memory when it is told so.
uint64_t grow(const Options& options) {
  wait_for_go();
  const Memory memory(options.megabytes << 20);
  memory.advise(MADV_NOHUGEPAGE);
  memory.touch();
  while (!stopped()) sleep_ms(100);
  return options.megabytes;
}

int run(int argc, char** argv) {
  ArgParser app("Uses memory so that kernel threads have work with it.");
  app.show_defaults();
  Common common;
  common.add_to(app);
  Options options;
  app.add("mode", options.mode, "read, join, compact, hold, fill, grow")
      .required()
      .one_of({"read", "join", "compact", "hold", "fill", "grow"});
  app.add("--file", options.file, "what is read, or what hold writes to");
  app.add("--megabytes", options.megabytes, "of the file, or of memory");
  app.add("--rate", options.rate, "of read and fill: megabytes a second; 0: no limit");
  if (const auto end = app.parse(argc, argv)) return *end;
  begin(common);
  const uint64_t start = now_ns();
  const uint64_t done = options.mode == "read"      ? read_file(options)
                        : options.mode == "join"    ? have_joined(options)
                        : options.mode == "compact" ? have_compacted(options)
                        : options.mode == "hold"    ? hold(options)
                        : options.mode == "fill"    ? fill(options)
                                                    : grow(options);
  print_result({{"program", "pk_memory"}, {"wall_ns", now_ns() - start}, {"done", done}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
