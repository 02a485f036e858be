// SPDX-License-Identifier: Apache-2.0
// Reads the records of its own calls, of each of which it is known what it does. Prints a line of
// JSON for each, with what is true beside it.
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "debox.hpp"
#include "workload.h"

namespace pkprof::workload {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t page = 4096;

void nap_ms(uint64_t ms) {
  const timespec t{static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000 * 1'000'000)};
  nanosleep(&t, nullptr);
}

uint32_t own_tid() {
  return static_cast<uint32_t>(syscall(SYS_gettid));
}

Json json_of(const debox_record& r) {
  Json sleeps = Json::array();
  for (const debox_sleep& s : debox::sleeps(r))
    sleeps.push_back(
        {{"place", debox_place(s.place)},
         {"inside", debox_place(s.inside)},
         {"resource", s.resource},
         {"total_ns", s.total_ns},
         {"longest_ns", s.longest_ns},
         {"runnable_ns", s.runnable_ns},
         {"count", s.count},
         {"waiters_entry", s.waiters_entry},
         {"waiters_exit", s.waiters_exit},
         {"waker_context", s.waker.context},
         {"waker_tid", s.waker.tid},
         {"waker_for", s.waker.for_pid},
         {"waker_comm", std::string(s.waker.comm, strnlen(s.waker.comm, DEBOX_COMM))}});
  Json faults = Json::array();
  for (const debox_fault& f : debox::faults(r))
    faults.push_back({{"address", f.address},
                      {"minor", f.minor},
                      {"major", f.major},
                      {"place", debox_place(f.place)}});
  return {{"sequence", r.sequence},
          {"number", r.number},
          {"result", r.result},
          {"wall_ns", r.wall_ns},
          {"asleep_ns", r.asleep_ns},
          {"runnable_ns", r.runnable_ns},
          {"voluntary", r.voluntary},
          {"forced", r.forced},
          {"minor_faults", r.minor_faults},
          {"major_faults", r.major_faults},
          {"signals", r.signals},
          {"restarts", r.restarts},
          {"async_ns", r.async_ns},
          {"unseen", (r.flags & DEBOX_UNSEEN) != 0},
          {"pid", r.pid},
          {"tid", r.tid},
          {"argument", r.argument},
          {"sleeps", sleeps},
          {"faults", faults}};
}

// What the last recorded call took by our own clock.
uint64_t outer_ns = 0;

void say(const std::string& what, const debox_record* record, Json truth) {
  Json line = {{"what", what}, {"truth", std::move(truth)}, {"outer_ns", outer_ns}};
  if (record) line["record"] = json_of(*record);
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

const int64_t getppid_of_all = getppid();

// With all calls recorded, the last one is the record: nothing else may come between.
bool all_calls = false;

template <typename Call>
const debox_record* recorded(uint32_t number, const Call& call) {
  const uint64_t start = now_ns();
  if (!all_calls) {
    const debox_record* record = debox::marked(number, call).second;
    outer_ns = now_ns() - start;
    return record;
  }
  call();
  const debox_record* record = debox_last();  // at once: the clock may be a call, too
  outer_ns = now_ns() - start;
  return record;
}

// A kernel may run no programs for a moment: a call of which that is said is made again.
template <typename Once>
const debox_record* seen(const Once& once) {
  const debox_record* record = once();
  for (int i = 0; i < 5 && record && record->flags & DEBOX_UNSEEN; ++i) record = once();
  return record;
}

void sleeping() {
  for (const uint64_t ms : {5, 50}) {
    const timespec t{0, static_cast<long>(ms * 1'000'000)};
    const debox_record* r = seen([&] {
      return recorded(SYS_clock_nanosleep,
                      [&] { return static_cast<long>(nanosleep(&t, nullptr)); });
    });
    say("sleep", r, {{"ns", ms * 1'000'000}});
  }
}

void nothing() {
  const debox_record* r = recorded(SYS_getppid, [] { return syscall(SYS_getppid); });
  say("nothing", r, {{"result", getppid()}, {"pid", getpid()}, {"tid", own_tid()}});
}

// So many wait for the same before this thread does; then another wakes them all.
void among(
    const std::string& what, int others, uint32_t number, const std::function<long()>& wait,
    const std::function<void()>& wake, uint32_t others_exit,
    const std::function<void()>& prepare = [] {}) {
  std::atomic<uint32_t> waker = 0;
  const debox_record* r = seen([&] {
    prepare();
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<size_t>(others) + 1);
    for (int i = 0; i < others; ++i) threads.emplace_back([&] { wait(); });
    threads.emplace_back([&] {
      waker = own_tid();
      nap_ms(200);
      wake();
    });
    nap_ms(100);
    return recorded(number, wait);
  });
  const uint32_t woke = waker;
  say(what, r,
      {{"others", others}, {"others_exit", others_exit}, {"waker", woke}, {"ns", 100'000'000}});
}

void waiting(int others) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC)) die("pipe2");
  const auto read_one = [&] {
    char byte;
    return static_cast<long>(read(pipe_fds[0], &byte, 1));
  };
  // Whoever reads from a pipe is woken alone, in turn: ours is the last in the queue.
  among(
      "pipe", others, SYS_read, read_one,
      [&] {
        for (int i = 0; i <= others; ++i) {
          (void)!write(pipe_fds[1], "x", 1);
          // With two bytes in it, who has read one wakes the next.
          for (int left = 1; left && !ioctl(pipe_fds[0], FIONREAD, &left);) nap_ms(20);
        }
      },
      0);

  alignas(4) static std::atomic<uint32_t> word = 1;
  const auto wait_for_word = [] {
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
  };
  among(
      "futex", others, SYS_futex, wait_for_word,
      [] {
        word = 0;
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
      },
      0, [] { word = 1; });

  const int server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (server < 0 || bind(server, reinterpret_cast<sockaddr*>(&address), size) ||
      getsockname(server, reinterpret_cast<sockaddr*>(&address), &size))
    die("socket");
  const auto receive = [&] {
    char byte;
    return static_cast<long>(recv(server, &byte, 1, 0));
  };
  among(
      "socket", others, SYS_recvfrom, receive,
      [&] {
        const int client = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (client < 0) die("socket");
        for (int i = 0; i <= others; ++i) {
          sendto(client, "x", 1, 0, reinterpret_cast<sockaddr*>(&address), size);
          for (int left = 1; left && !ioctl(server, FIONREAD, &left);) nap_ms(20);
        }
        close(client);
      },
      0);
  close(server);

  // The holder lets it go; each of the others does at once what it waited for.
  const int file = open("/dev/shm/pk_debox.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) die("open");
  const int held = open("/dev/shm/pk_debox.lock", O_RDWR | O_CLOEXEC);
  const auto lock = [] {
    const int own = open("/dev/shm/pk_debox.lock", O_RDWR | O_CLOEXEC);
    const long result = flock(own, LOCK_EX);
    close(own);
    return result;
  };
  const int own = open("/dev/shm/pk_debox.lock", O_RDWR | O_CLOEXEC);
  const auto lock_alone = [own] { return static_cast<long>(flock(own, LOCK_EX)); };
  const debox_record* r = seen([&] {
    flock(own, LOCK_UN);
    if (flock(held, LOCK_EX)) die("flock");
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<size_t>(others) + 1);
    for (int i = 0; i < others; ++i) threads.emplace_back(lock);
    threads.emplace_back([&] {
      nap_ms(200);
      flock(held, LOCK_UN);
    });
    nap_ms(100);
    return recorded(SYS_flock, lock_alone);
  });
  say("flock", r, {{"others", others}, {"ns", 100'000'000}});
  unlink("/dev/shm/pk_debox.lock");
}

// The kernel copies from pages that were never touched, and from the same again.
void faulting() {
  constexpr size_t pages = 12;
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC)) die("pipe2");
  fcntl(pipe_fds[1], F_SETPIPE_SZ, 1 << 20);
  char* fresh = static_cast<char*>(
      mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  madvise(fresh, pages * page, MADV_NOHUGEPAGE);
  const debox_record* r = recorded(
      SYS_write, [&] { return static_cast<long>(write(pipe_fds[1], fresh, pages * page)); });
  say("faults", r, {{"pages", pages}, {"address", reinterpret_cast<uint64_t>(fresh)}});
  r = recorded(SYS_write,
               [&] { return static_cast<long>(write(pipe_fds[1], fresh, pages * page)); });
  say("no faults", r, {{"pages", 0}});
}

// A file of this file system, read from the disk and from memory.
void reading(const std::string& path) {
  constexpr size_t size = 1 << 20;
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) die("open " + path);
  std::vector<char> data(size, 'x');
  if (pwrite(fd, data.data(), size, 0) != static_cast<ssize_t>(size) || fsync(fd)) die("pwrite");
  const auto read_all = [&] { return static_cast<long>(pread(fd, data.data(), size, 0)); };
  // A disk that lies in memory may be there before the call looks for it.
  const debox_record* r = nullptr;
  for (int i = 0; i < 200 && !(r && r->voluntary && !(r->flags & DEBOX_UNSEEN)); ++i) {
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    r = recorded(SYS_pread64, read_all);
  }
  say("read from disk", r, {{"bytes", size}});
  // What another process has asked for is waited for, where it is not there yet.
  for (int i = 0; i < 200; ++i) {
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    int asked[2];
    if (pipe2(asked, O_CLOEXEC)) die("pipe2");
    const pid_t child = fork();
    if (child == 0) {
      posix_fadvise(fd, 0, size, POSIX_FADV_WILLNEED);
      (void)!write(asked[1], "x", 1);
      _exit(0);
    }
    char byte;
    (void)!read(asked[0], &byte, 1);
    r = recorded(SYS_pread64, read_all);
    close(asked[0]);
    close(asked[1]);
    waitpid(child, nullptr, 0);
    if (!r || !r->sleeps || !r->sleep[0].waker.for_pid) continue;
    say("read by another", r, {{"child", child}});
    break;
  }
  posix_fadvise(fd, 0, size, POSIX_FADV_WILLNEED);
  read_all();
  say("read from memory", recorded(SYS_pread64, read_all), {{"bytes", size}});
  unlink(path.c_str());
}

void handle(int) {}

// A signal comes while the thread sleeps: the call fails, or goes on.
void interrupted() {
  const pthread_t self = pthread_self();
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC)) die("pipe2");
  for (const bool restarts : {false, true}) {
    struct sigaction action{};
    action.sa_handler = handle;
    action.sa_flags = restarts ? SA_RESTART : 0;
    sigaction(SIGUSR1, &action, nullptr);
    const debox_record* r = seen([&] {
      std::jthread other([&] {
        nap_ms(50);
        pthread_kill(self, SIGUSR1);
        nap_ms(50);
        (void)!write(pipe_fds[1], "x", 1);
      });
      char byte;
      const auto read_one = [&] { return static_cast<long>(read(pipe_fds[0], &byte, 1)); };
      static debox_record record;  // more calls follow, which may want its place
      record = *recorded(SYS_read, read_one);
      other.join();
      if (!restarts) read_one();
      return &record;
    });
    say(restarts ? "restarted" : "interrupted", r, {{"ns", restarts ? 100'000'000 : 50'000'000}});
  }
}

// So many calls, of which the last ones are kept.
void many(uint32_t calls, uint32_t records) {
  for (uint32_t i = 0; i < calls; ++i) recorded(SYS_getppid, [] { return syscall(SYS_getppid); });
  debox_record record;
  uint64_t read = 0;
  uint64_t last = 0;
  bool in_order = true;
  while (read < uint64_t{2} * records && debox_next(&record)) {
    in_order = in_order && (!last || record.sequence == last + 2);
    last = record.sequence;
    ++read;
  }
  say("many", debox_last(),
      {{"calls", calls},
       {"kept", records},
       {"read", read},
       {"lost", debox_lost()},
       {"in_order", in_order}});
}

// A child has records of its own.
void forking() {
  const pid_t child = fork();
  if (child == 0) {
    if (all_calls) {
      debox_options options = DEBOX_OPTIONS_INIT;
      options.mode = DEBOX_ALL_CALLS;
      if (debox_on(&options)) _exit(2);
    }
    // A marked thread asks again at the end of a call.
    for (int i = 0; i < 20 && !debox_serves(); ++i) {
      debox::marked(SYS_getppid, [] { return static_cast<long>(getppid()); });
      nap_ms(100);
    }
    sleeping();
    _exit(debox_serves() ? 0 : 3);
  }
  int status = 0;
  const debox_record* r =
      recorded(SYS_wait4, [&] { return static_cast<long>(waitpid(child, &status, 0)); });
  say("forked", r, {{"status", WEXITSTATUS(status)}, {"child", child}});
}

// Many threads at once, each with calls that it knows by an argument, reading all of its records.
void storm(int threads, double seconds, const debox_options& options) {
  struct Sum {
    std::atomic<uint64_t> calls = 0, read = 0, lost = 0, wrong = 0;
  } sum;
  const uint64_t end = now_ns() + static_cast<uint64_t>(seconds * 1e9);
  const auto work = [&] {
    const debox::On on(options);
    uint64_t calls = 0;
    uint64_t read = 0;
    uint64_t wrong = 0;
    uint64_t last = 0;
    const auto read_all = [&] {
      debox_record r;
      while (debox_next(&r)) {
        if (r.number != SYS_getppid) continue;  // not ours
        ++read;
        if (r.argument[0] <= last || r.argument[0] > calls || r.argument[5] != ~r.argument[0] ||
            r.result != getppid_of_all)
          ++wrong;
        last = r.argument[0];
      }
    };
    while (now_ns() < end) {
      // More than are kept: some are lost, and counted.
      for (uint32_t i = 0; i < options.records + options.records / 4; ++i) {
        ++calls;
        const uint64_t argument[6] = {calls, 0, 0, 0, 0, ~calls};
        if (all_calls)
          syscall(SYS_getppid, argument[0], 0, 0, 0, 0, argument[5]);
        else
          debox_syscall(SYS_getppid, argument);
      }
      read_all();
    }
    sum.calls += calls;
    sum.read += read;
    sum.lost += debox_lost();
    sum.wrong += wrong;
  };
  {
    std::vector<std::jthread> all;
    all.reserve(static_cast<size_t>(threads));
    for (int i = 0; i < threads; ++i) all.emplace_back(work);
  }
  say("storm", nullptr,
      {{"calls", sum.calls.load()},
       {"read", sum.read.load()},
       {"lost", sum.lost.load()},
       {"wrong", sum.wrong.load()}});
}

// The record of a call with the kernel's functions that it entered.
void say_traced(const std::string& what, const debox_record* r) {
  if (!r) die(what);
  Json trace = Json::array();
  const debox_trace* traces = debox_traces_of(r);
  for (uint32_t i = 0; traces && i < r->traces; ++i)
    trace.push_back({{"function", debox_place(traces[i].function)},
                     {"depth", traces[i].depth},
                     {"begin_ns", traces[i].begin_ns},
                     {"wall_ns", traces[i].wall_ns}});
  say(what, r,
      {{"trace", trace},
       {"left_out", r->traces_left_out},
       {"sampled", (r->flags & DEBOX_SAMPLED) != 0},
       {"start_ns", r->start_ns},
       {"runnable_ns", r->runnable_ns}});
}

// Calls of kinds that nothing else here makes.
void traced() {
  const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  int pipe_fds[2];
  if (zero < 0 || pipe2(pipe_fds, O_CLOEXEC)) die("pipe2");
  static char data[5][page];
  iovec parts[5];
  for (size_t i = 0; i < 5; ++i) parts[i] = {data[i], sizeof data[i]};
  say_traced("readv",
             recorded(SYS_readv, [&] { return static_cast<long>(readv(zero, parts, 5)); }));
  say_traced("writev", recorded(SYS_writev,
                                [&] { return static_cast<long>(writev(pipe_fds[1], parts, 3)); }));
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC;
  say_traced("openat2", recorded(SYS_openat2, [&] {
               return syscall(SYS_openat2, AT_FDCWD, "/dev/null", &how, sizeof how);
             }));
  // The pipe has what was written; then this one waits for more.
  iovec rest = {data, sizeof data};
  readv(pipe_fds[0], &rest, 1);
  std::jthread writer([&] {
    nap_ms(50);
    (void)!write(pipe_fds[1], "x", 1);
  });
  say_traced("preadv2", recorded(SYS_preadv2, [&] {
               return static_cast<long>(preadv2(pipe_fds[0], &rest, 1, -1, 0));
             }));
  // Long enough for samples.
  constexpr size_t size = size_t{64} << 20;
  std::vector<char> large(size);
  say_traced("read",
             recorded(SYS_read, [&] { return static_cast<long>(read(zero, large.data(), size)); }));
}

// Naps of a millisecond, at least. Of how many is less said, although the kernel did put us to
// sleep?
void nap_often(uint32_t naps) {
  const timespec t{0, 1'000'000};
  uint64_t unseen = 0;
  uint64_t too_short = 0;
  for (uint32_t i = 0; i < naps; ++i) {
    rusage before{};
    rusage after{};
    getrusage(RUSAGE_THREAD, &before);
    const debox_record record =
        *recorded(SYS_clock_nanosleep, [&] { return static_cast<long>(nanosleep(&t, nullptr)); });
    getrusage(RUSAGE_THREAD, &after);
    unseen += (record.flags & DEBOX_UNSEEN) != 0;
    // A timer may fire before its thread lies down, where the CPU stands still for a while.
    const bool marked_unseen = !all_calls && record.flags & DEBOX_UNSEEN;
    too_short += !marked_unseen && after.ru_nvcsw != before.ru_nvcsw &&
                 (record.sleeps != 1 || record.asleep_ns == 0 || record.voluntary != 1);
  }
  say("naps", nullptr, {{"naps", naps}, {"unseen", unseen}, {"too_short", too_short}});
}

int run(int argc, char** argv) {
  ArgParser app("Reads the records of its own system calls.");
  std::string path = "/var/tmp/pk_debox.data";
  int others = 3;
  uint32_t records = 16;
  uint32_t calls = 100;
  double wait_s = 0;
  int storming = 0;
  uint32_t naps = 0;
  bool tracing = false;
  app.add("--all-calls", all_calls, "The kernel side records each, none is marked");
  app.add("--others", others, "That wait for the same").positive();
  app.add("--file", path, "To be read");
  app.add("--records", records, "That are kept").positive();
  app.add("--calls", calls, "Of which so many are kept").positive();
  app.add("--naps", naps, "A millisecond each, nothing else").positive();
  app.add("--trace", tracing, "Calls of which the kernel's functions are of interest");
  app.add("--storm", storming, "Threads that make calls all the time, for two seconds").positive();
  app.add("--wait", wait_s, "Seconds to wait for being served");
  if (const auto end = app.parse(argc, argv)) return *end;
  debox_options options = DEBOX_OPTIONS_INIT;
  options.mode = all_calls ? DEBOX_ALL_CALLS : DEBOX_MARKED_CALLS;
  options.records = records;
  if (tracing) {
    options.parts |= DEBOX_PART_TRACE;
    options.traces = 1000;
    const debox::On on(options);
    traced();
    return 0;
  }
  if (naps) {
    const debox::On on(options);
    nap_often(naps);
    return 0;
  }
  if (storming) {
    storm(storming, 2, options);
    return 0;
  }
  const debox::On on(options);
  for (const uint64_t end = now_ns() + static_cast<uint64_t>(wait_s * 1e9);
       !debox_serves() && now_ns() < end;) {
    debox::marked(SYS_getppid, [] { return static_cast<long>(getppid()); });
    nap_ms(100);
  }
  say("begins", nullptr, {{"serves", debox_serves() != 0}});
  nothing();
  sleeping();
  waiting(others);
  faulting();
  reading(path);
  interrupted();
  forking();
  many(calls, records);
  return 0;
}

}  // namespace
}  // namespace pkprof::workload

int main(int argc, char** argv) {
  return pkprof::workload::guarded(pkprof::workload::run, argc, argv);
}
