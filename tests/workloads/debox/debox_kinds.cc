// SPDX-License-Identifier: Apache-2.0
// Calls of each kind, once.
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "debox_calls.h"

namespace pkprof::workload {
namespace {

constexpr size_t page = 4096;

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

}  // namespace

void all_kinds(int others, const std::string& path) {
  nothing();
  sleeping();
  waiting(others);
  faulting();
  reading(path);
  interrupted();
  forking();
}

}  // namespace pkprof::workload
