// SPDX-License-Identifier: Apache-2.0
#include "workload.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <vector>

namespace pkprof::workload {
namespace {

volatile sig_atomic_t stop_flag = 0;

void repeat_alarm() {
  const itimerval soon = {{0, 20'000}, {0, 20'000}};
  setitimer(ITIMER_REAL, &soon, nullptr);
}

void on_signal(int) {
  if (stop_flag == 0) {
    const int saved = errno;
    stop_flag = 1;
    repeat_alarm();
    errno = saved;
  }
}

// Zeroes, shared with children; the file of kProgressVariable, if there is one.
void* shared_memory(size_t bytes) {
  const char* path = std::getenv(kProgressVariable);
  const int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
  if (path && (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0)) die(path);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) die("shared memory");
  if (fd >= 0) close(fd);
  return memory;
}

uint64_t nanoseconds(const timeval& t) {
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_usec) * 1'000;
}

}  // namespace

int guarded(int (*run)(int, char**), int argc, char** argv) noexcept {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, e.what());
    return 1;
  }
}

void Common::add_to(ArgParser parser) {
  parser.add("--seconds", seconds, "end after so long; 0: at SIGTERM or SIGINT").not_negative();
  parser.add("--cpu", cpu, "stay on this CPU");
}

void begin(const Common& common) {
  if (common.cpu >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(common.cpu), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
      die("staying on CPU " + std::to_string(common.cpu));
    }
  }
  struct sigaction action = {};
  action.sa_handler = on_signal;  // no SA_RESTART: blocked calls return EINTR
  for (const int signal : {SIGTERM, SIGINT, SIGALRM}) sigaction(signal, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  if (common.seconds > 0) {
    itimerval timer = {};
    timer.it_value.tv_sec = static_cast<time_t>(common.seconds);
    timer.it_value.tv_usec = static_cast<suseconds_t>(
        (common.seconds - static_cast<double>(timer.it_value.tv_sec)) * 1e6);
    timer.it_interval.tv_usec = 20'000;
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
}

bool stopped() {
  return stop_flag != 0;
}

uint64_t burn_ns(uint64_t us) {
  const auto thread_ns = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
  };
  const uint64_t before = thread_ns();
  burn_us(us);
  return thread_ns() - before;
}

void say_ready() {
  std::puts("ready");
  std::fflush(stdout);
}

void print_result(nlohmann::ordered_json result) {
  uint64_t user = 0;
  uint64_t system = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage = {};
    getrusage(who, &usage);
    user += nanoseconds(usage.ru_utime);
    system += nanoseconds(usage.ru_stime);
  }
  result["pid"] = getpid();
  result["user_ns"] = user;
  result["system_ns"] = system;
  std::printf("%s\n", result.dump().c_str());
  std::fflush(stdout);
}

void die(const std::string& what, bool with_errno) {
  const int err = errno;
  std::fprintf(stderr, "%s: %s%s%s\n", program_invocation_short_name, what.c_str(),
               with_errno ? ": " : "", with_errno ? std::strerror(err) : "");
  std::exit(1);
}

uint64_t now_ns() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

void sleep_until_ns(uint64_t when) {
  const timespec t = {static_cast<time_t>(when / 1'000'000'000),
                      static_cast<long>(when % 1'000'000'000)};
  while (!stopped() && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

void burn_us(uint64_t us) {
  timespec t = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  const auto in_ns = [](const timespec& s) {
    return static_cast<uint64_t>(s.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(s.tv_nsec);
  };
  const uint64_t end = in_ns(t) + us * 1'000;
  volatile uint64_t sink = 0;
  while (in_ns(t) < end) {
    for (int i = 0; i < 10'000; ++i) sink = sink + static_cast<uint64_t>(i);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  }
}

std::span<WorkerStats> run_workers(int count, const std::function<void(int, WorkerStats&)>& work) {
  const size_t size = static_cast<size_t>(std::max(count, 1));
  const std::span<WorkerStats> stats(
      static_cast<WorkerStats*>(shared_memory(size * sizeof(WorkerStats))), size);
  if (count <= 0) {
    stats[0].pid = getpid();
    work(0, stats[0]);
    return stats;
  }

  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    WorkerStats& mine = stats[static_cast<size_t>(i)];
    const pid_t pid = fork();  // timers are not inherited: the first process keeps the time
    if (pid < 0) die("fork");
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      mine.pid = getpid();
      work(i, mine);
      _exit(0);
    }
    children.push_back(pid);
  }
  bool failed = false;
  bool told = false;
  for (const pid_t child : children) {
    int status = 0;
    for (;;) {
      if (stopped() && !told) {
        for (const pid_t c : children) kill(c, SIGTERM);
        told = true;
      }
      if (waitpid(child, &status, 0) == child) break;
      if (errno != EINTR) die("waiting for a worker");
    }
    failed |= status != 0;
  }
  if (failed) die("a worker failed", false);
  return stats;
}

nlohmann::ordered_json to_json(std::span<const WorkerStats> workers) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& w : workers) {
    list.push_back(
        {{"pid", w.pid}, {"operations", w.operations}, {"bytes", w.bytes}, {"dropped", w.dropped}});
  }
  return list;
}

}  // namespace pkprof::workload
