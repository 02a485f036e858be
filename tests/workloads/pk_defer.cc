// SPDX-License-Identifier: Apache-2.0
// Makes the kernel put work off, of one kind: to a work queue (a terminal), to timers, to RCU, to
// another CPU.
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "workload.h"

namespace {

using namespace pkprof::workload;

// So many operations a second; 0: as many as can be. It sleeps for a millisecond or more at a time.
class Pace {
 public:
  explicit Pace(double rate) : rate_(rate) {}
  void keep_to(uint64_t done) const {
    if (rate_ <= 0) return;
    const uint64_t due = start_ + static_cast<uint64_t>(static_cast<double>(done) / rate_ * 1e9);
    if (due > now_ns() + 1'000'000) sleep_until_ns(due + 1'000'000);
  }

 private:
  double rate_;
  uint64_t start_ = now_ns();
};

// A pseudo-terminal: what is written to one side a kworker carries to the other.
uint64_t terminal(const Pace& pace) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0 || grantpt(master) || unlockpt(master)) die("a pseudo-terminal");
  const int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave < 0) die("a pseudo-terminal");
  termios raw{};
  tcgetattr(slave, &raw);
  cfmakeraw(&raw);
  tcsetattr(slave, TCSANOW, &raw);
  char text[2048] = {};
  uint64_t bytes = 0;
  while (!stopped()) {
    const ssize_t n = write(master, text, sizeof text);
    if (n <= 0) continue;
    for (ssize_t left = n; left > 0 && !stopped();) {
      const ssize_t got = read(slave, text, sizeof text);
      if (got > 0) left -= got;
    }
    bytes += static_cast<uint64_t>(n);
    pace.keep_to(bytes / sizeof text);
  }
  return bytes;
}

// Waits for what never comes, a few ticks at a time.
uint64_t timeouts() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  const timeval wait = {0, 4000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  uint64_t waits = 0;
  char byte = 0;
  while (!stopped()) {
    (void)!recv(fd, &byte, 1, 0);
    ++waits;
  }
  close(fd);
  return waits;
}

// Sockets opened and closed: each is freed when no CPU can see it any more.
uint64_t close_sockets(const Pace& pace) {
  uint64_t sockets = 0;
  while (!stopped()) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    close(fd);
    pace.keep_to(++sockets);
  }
  return sockets;
}

// A clock that ticks in a hard interrupt; each tick is waited for, or it would be the last. Clocks
// that tick together share an interrupt, which is cheaper: each thread's has a rate of its own, so
// that over a second every two clocks are together as often as any other two.
uint64_t ticks(int hz) {
  static std::atomic<int> started = 0;
  const int turn = started++;
  const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  if (fd < 0) die("timerfd_create");
  itimerspec every{};
  every.it_interval.tv_nsec = 1'000'000'000 / (hz + 7 * turn);
  every.it_value = every.it_interval;
  if (timerfd_settime(fd, 0, &every, nullptr)) die("timerfd_settime");
  uint64_t all = 0;
  while (!stopped()) {
    uint64_t expired = 0;
    if (read(fd, &expired, sizeof expired) == sizeof expired) all += expired;
  }
  close(fd);
  return all;
}

// The same by a POSIX timer: each tick is a signal to the thread that started it.
uint64_t alarms(int hz) {
  static std::atomic<int> started = 0;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGRTMIN);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGRTMIN;
  event._sigev_un._tid = gettid();
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer)) die("timer_create");
  itimerspec every{};
  every.it_interval.tv_nsec = 1'000'000'000 / (hz + 7 * started++);
  every.it_value = every.it_interval;
  if (timer_settime(timer, 0, &every, nullptr)) die("timer_settime");
  uint64_t all = 0;
  const timespec patience = {0, 100'000'000};
  siginfo_t info;
  while (!stopped()) {
    if (sigtimedwait(&signals, &info, &patience) == SIGRTMIN)
      all += 1 + static_cast<uint64_t>(info.si_overrun);
  }
  timer_delete(timer);
  return all;
}

// Sleeps for a moment, again and again: each time it is woken by a timer's interrupt.
uint64_t naps() {
  uint64_t naps = 0;
  while (!stopped()) {
    const timespec moment = {0, 200'000};
    nanosleep(&moment, nullptr);
    ++naps;
  }
  return naps;
}

// Interrupts every CPU that runs a process which asked to take part.
uint64_t barriers(const Pace& pace) {
  uint64_t done = 0;
  while (!stopped()) {
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0)) die("membarrier");
    pace.keep_to(++done);
  }
  return done;
}

// Has a page, and gives it back: who computes in the same memory on another CPU is interrupted.
uint64_t shootdowns(const Pace& pace) {
  constexpr size_t bytes = 4096;
  void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) die("mmap");
  uint64_t done = 0;
  while (!stopped()) {
    *static_cast<volatile char*>(page) = 1;
    if (madvise(page, bytes, MADV_DONTNEED)) die("madvise");
    pace.keep_to(++done);
  }
  return done;
}

// A process in this one's memory, as vfork's child is; it ends with this one. Thread-local
// variables are its parent's, too: it does little.
void share_memory(const char* name, int cpu, std::function<void()> work) {
  struct Shared {
    const char* name;
    int cpu;
    std::function<void()> work;
    std::atomic<bool> begun = false;
    alignas(16) char stack[65536];
  };
  static std::list<Shared> all;
  Shared& shared = all.emplace_back(name, cpu, std::move(work));
  const auto begin = [](void* argument) -> int {
    auto* self = static_cast<Shared*>(argument);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, self->name);
    if (self->cpu >= 0) {
      cpu_set_t cpus;
      CPU_ZERO(&cpus);
      CPU_SET(self->cpu, &cpus);
      sched_setaffinity(0, sizeof cpus, &cpus);
    }
    self->begun = true;
    self->work();
    return 0;
  };
  if (clone(begin, shared.stack + sizeof shared.stack, CLONE_VM | SIGCHLD, &shared) < 0)
    die("clone");
  while (!shared.begun) sched_yield();
}

int run(int argc, char** argv) {
  ArgParser app("Makes the kernel put work off.");
  app.show_defaults();
  Common common;
  common.add_to(app);
  std::string mode;
  int threads = 1;
  int hz = 5000;
  int beside = 1;
  double rate = 0;
  app.add("mode", mode, "terminal, timeouts, sockets, ticks, alarms, naps, barriers, shootdowns")
      .required()
      .one_of(
          {"terminal", "timeouts", "sockets", "ticks", "alarms", "naps", "barriers", "shootdowns"});
  app.add("--threads", threads, "that do it, each at that rate").positive();
  app.add("--hz", hz, "of ticks, alarms; each further thread ticks 7 Hz faster").range(1, 100'000);
  app.add("--rate", rate,
          "of terminal (2 KiB each), sockets, barriers, shootdowns: a second; 0: no limit");
  app.add("--beside", beside,
          "of shootdowns: in the same memory there are a process \"second\", which does it as one "
          "thread "
          "does, and a process \"beside\", which computes on this CPU");
  if (const auto end = app.parse(argc, argv)) return *end;
  begin(common);
  const Pace pace(rate);
  if (mode == "shootdowns") {
    share_memory("second", -1, [&] { shootdowns(pace); });
    share_memory("beside", beside, [] {
      for (;;) asm volatile("" ::: "memory");
    });
  }
  say_ready();
  const uint64_t start = now_ns();
  const std::function<uint64_t()> work = [&] {
    return mode == "terminal"     ? terminal(pace)
           : mode == "timeouts"   ? timeouts()
           : mode == "ticks"      ? ticks(hz)
           : mode == "alarms"     ? alarms(hz)
           : mode == "naps"       ? naps()
           : mode == "barriers"   ? barriers(pace)
           : mode == "shootdowns" ? shootdowns(pace)
                                  : close_sockets(pace);
  };
  std::atomic<uint64_t> done = 0;
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back([&] { done += work(); });
    done += work();
  }
  print_result({{"program", "pk_defer"}, {"wall_ns", now_ns() - start}, {"done", done.load()}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
