// SPDX-License-Identifier: Apache-2.0
// Waits of a known kind and length. Each mode ends by itself, and says how long was waited by its
// own clock: "pid" is who waited, "waited_ns" what all of its threads did together.
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr uint64_t ms = 1'000'000;
constexpr uint64_t lasts = 2000 * ms;

uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

void sleep_ns(uint64_t ns) {
  const timespec t{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&t, nullptr);
}

void burn(uint64_t ns) {
  for (const uint64_t until = now_ns() + ns; now_ns() < until;) continue;
}

uint64_t own_cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// How long the thread is off the CPU in it.
template <typename Call>
uint64_t time_of(Call call) {
  const uint64_t before = now_ns(), cpu_before = own_cpu_ns();
  call();
  const uint64_t cpu_ns = own_cpu_ns() - cpu_before;
  return now_ns() - before - cpu_ns;
}

void say(int pid, int other, uint64_t waited_ns, uint64_t took_ns = 0, int bystander = 0) {
  std::printf("{\"pid\":%d,\"other\":%d,\"waited_ns\":%llu,\"took_ns\":%llu,\"bystander\":%d}\n",
              pid, other, static_cast<unsigned long long>(waited_ns),
              static_cast<unsigned long long>(took_ns), bystander);
  std::fflush(stdout);
}

// Lengths from a tenth of a millisecond up to thirty, in three threads.
int sleep_mode() {
  std::atomic<uint64_t> waited = 0;
  std::vector<std::jthread> threads;
  for (const uint64_t length : {ms / 10, ms, 30 * ms})
    threads.emplace_back([length, &waited] {
      waited += time_of([&] {  // between its sleeps, too, it may have to wait for a CPU
        for (const uint64_t end = now_ns() + lasts; now_ns() < end; burn(length / 20))
          sleep_ns(length);
      });
    });
  threads.clear();
  say(getpid(), getpid(), waited);
  return 0;
}

// Nanoseconds ready and not running, as the kernel counts them.
uint64_t run_delay() {
  uint64_t ran = 0, delayed = 0;
  std::ifstream("/proc/self/schedstat") >> ran >> delayed;
  return delayed;
}

void stay_on(size_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

// And not ready to run meanwhile: blocked.
template <typename Call>
uint64_t blocked_time_of(Call call) {
  const uint64_t delayed = run_delay();
  const uint64_t off_cpu = time_of(call);
  return off_cpu - std::min(off_cpu, run_delay() - delayed);
}

// One thread holds a lock for 4 ms of 5; the other wants it, on another CPU.
template <typename Hold, typename Want, typename Unlock>
int lock_mode(Hold hold, Want want, Unlock unlock) {
  uint64_t waited = 0;
  const uint64_t end = now_ns() + lasts;
  {
    std::jthread holder([&] {
      stay_on(0);
      while (now_ns() < end) {
        hold();
        burn(4 * ms);
        unlock();
        sleep_ns(ms);
      }
    });
    stay_on(1);
    sleep_ns(ms);
    while (now_ns() < end) {
      waited += blocked_time_of(want);
      unlock();
      burn(ms / 2);
    }
  }
  say(getpid(), getpid(), waited);
  return 0;
}

pthread_mutex_t wait_mutex = PTHREAD_MUTEX_INITIALIZER;  // has a name

int mutex_mode() {
  const auto take = [] { pthread_mutex_lock(&wait_mutex); };
  return lock_mode(take, take, [] { pthread_mutex_unlock(&wait_mutex); });
}

int rwlock_mode() {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  return lock_mode([&] { pthread_rwlock_wrlock(&lock); }, [&] { pthread_rwlock_rdlock(&lock); },
                   [&] { pthread_rwlock_unlock(&lock); });
}

// A child writes much to a file at a time, and its lock is the child's meanwhile. How long a write
// of one byte takes beside that, and is off the CPU: of some of its spinning the kernel does not
// say that it is for a lock.
int inode_mode() {
  constexpr size_t much = 64 << 20;
  const int file = memfd_create("pk_wait", MFD_CLOEXEC);
  const pid_t child = fork();
  const uint64_t end = now_ns() + lasts;
  if (child == 0) {
    const std::vector<char> bytes(much);
    while (now_ns() < end)
      if (pwrite(file, bytes.data(), bytes.size(), 0) < 0) _exit(1);
    _exit(0);
  }
  uint64_t took = 0, off_cpu = 0;
  while (now_ns() + ms < end) {
    const uint64_t before = now_ns();
    off_cpu += time_of([&] { (void)!pwrite(file, "", 1, 0); });
    took += now_ns() - before;
    sleep_ns(ms);
  }
  say(getpid(), child, off_cpu, took);
  waitpid(child, nullptr, 0);
  return 0;
}

// A child answers each byte after it has worked for 2 ms; descriptors: to it, and from it.
int ask(int to, int from, int child) {
  uint64_t waited = 0;
  for (const uint64_t end = now_ns() + lasts; now_ns() < end;) {
    char byte = 1;
    if (write(to, &byte, 1) != 1) return 1;
    waited += time_of([&] { (void)!read(from, &byte, 1); });
    burn(ms / 2);
  }
  say(getpid(), child, waited);
  return 0;
}

[[noreturn]] void answer(int from, int to) {
  for (char byte; read(from, &byte, 1) == 1;) {
    burn(2 * ms);
    if (write(to, &byte, 1) != 1) break;
  }
  _exit(0);
}

int pipe_mode() {
  int question[2], reply[2];
  if (pipe(question) || pipe(reply)) return 1;
  const int child = fork();
  if (child == 0) {
    close(question[1]);
    close(reply[0]);
    answer(question[0], reply[1]);
  }
  const int status = ask(question[1], reply[0], child);
  close(question[1]);
  waitpid(child, nullptr, 0);
  return status;
}

// The child listens and waits by epoll, as servers do.
[[noreturn]] void serve(int listener) {
  const int one = accept(listener, nullptr, nullptr);
  const int poll = epoll_create1(0);
  epoll_event event{.events = EPOLLIN, .data = {}};
  epoll_ctl(poll, EPOLL_CTL_ADD, one, &event);
  while (epoll_wait(poll, &event, 1, -1) == 1) {
    char byte;
    if (read(one, &byte, 1) != 1) break;
    burn(2 * ms);
    if (write(one, &byte, 1) != 1) break;
  }
  _exit(0);
}

int tcp_mode() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t length = sizeof address;
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, at, length) || listen(listener, 1) || getsockname(listener, at, &length))
    return 1;
  const int child = fork();
  if (child == 0) serve(listener);
  const int one = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(one, at, length)) return 1;
  const int status = ask(one, one, child);
  close(one);
  waitpid(child, nullptr, 0);
  return status;
}

// Two on one CPU.
int hogs_mode() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  sched_setaffinity(0, sizeof one, &one);
  const int child = fork();
  if (child == 0) {
    burn(lasts + 100 * ms);
    _exit(0);
  }
  sleep_ns(50 * ms);
  const uint64_t before = run_delay();
  burn(lasts);
  say(getpid(), child, run_delay() - before);
  waitpid(child, nullptr, 0);
  return 0;
}

// A file that is read or written past the page cache.
class Direct {
 public:
  Direct(const std::string& path, size_t bytes)
      : memory_(aligned_alloc(4096, bytes)), bytes_(bytes) {
    file_ = open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT, 0600);
    std::memset(memory_, 1, bytes);
    for (size_t i = 0; i < pieces; ++i) write(i);
  }
  void write(size_t i) { check(pwrite(file_, memory_, bytes_, at(i))); }
  void read(size_t i) { check(pread(file_, memory_, bytes_, at(i))); }

 private:
  static constexpr size_t pieces = 16;
  [[nodiscard]] off_t at(size_t i) const { return static_cast<off_t>(i % pieces * bytes_); }
  void check(ssize_t done) const {
    if (done == static_cast<ssize_t>(bytes_)) return;
    std::perror("pk_wait: the disk");
    std::exit(1);
  }

  void* memory_;
  size_t bytes_;
  int file_ = -1;
};

pid_t in_child(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child) return child;
  work();
  _exit(0);
}

// Reads pieces of 64 KiB from a directory's disk: first alone, then beside a child that writes
// there, 4 MiB at a time. "took_ns" is how much longer they take beside it. Another child is at
// work on another directory's disk, which is nobody's concern.
int disk_mode(const std::string& disk, const std::string& other_disk) {
  std::optional<Direct> own, writers;
  const uint64_t made_ns = blocked_time_of([&] {
    own.emplace(disk + "/read", 64 << 10);
    writers.emplace(disk + "/write", 4 << 20);
  });
  const uint64_t alone = now_ns() + lasts / 2, end = alone + lasts;
  const pid_t bystander = in_child([&] {
    Direct file(other_disk + "/file", 64 << 10);
    for (size_t i = 0; now_ns() < end; sleep_ns(ms)) file.write(i++);
  });
  const auto reads_until = [&](uint64_t until) {
    std::pair<uint64_t, size_t> waited;  // and how many
    while (now_ns() < until) waited.first += blocked_time_of([&] { own->read(waited.second++); });
    return waited;
  };
  const auto [alone_ns, alone_times] = reads_until(alone);
  const pid_t writer = in_child([&] {
    for (size_t i = 0; now_ns() < end; ++i) writers->write(i);
  });
  const auto [beside_ns, beside_times] = reads_until(end);
  const uint64_t own_ns = alone_ns * beside_times / alone_times;
  say(getpid(), writer, made_ns + alone_ns + beside_ns, beside_ns - std::min(beside_ns, own_ns),
      bystander);
  waitpid(writer, nullptr, 0);
  waitpid(bystander, nullptr, 0);
  return 0;
}

// Two thousand threads, fifty at a time, that live for some 40 ms and mostly sleep: how long each
// lived.
int threads_mode() {
  std::atomic<uint64_t> lived = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 50; ++i)
      threads.emplace_back([&lived, i, born = now_ns()] {
        for (int n = 0; n < 4; ++n) sleep_ns((9 + i % 3) * ms);
        lived += now_ns() - born;
      });
  }
  say(getpid(), getpid(), lived);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "sleep") return sleep_mode();
  if (mode == "mutex") return mutex_mode();
  if (mode == "rwlock") return rwlock_mode();
  if (mode == "inode") return inode_mode();
  if (mode == "pipe") return pipe_mode();
  if (mode == "tcp") return tcp_mode();
  if (mode == "hogs") return hogs_mode();
  if (mode == "threads") return threads_mode();
  if (mode == "disk" && argc == 4) return disk_mode(argv[2], argv[3]);
  std::fputs("usage: pk_wait sleep|mutex|rwlock|inode|pipe|tcp|hogs|threads|disk DIRECTORY OTHER\n",
             stderr);
  return 2;
}
