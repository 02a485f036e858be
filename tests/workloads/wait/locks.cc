// SPDX-License-Identifier: Apache-2.0
// Waits for locks: of a program, and of a file.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

#include "wait/wait.h"

namespace pkprof::wait {

pthread_mutex_t wait_mutex = PTHREAD_MUTEX_INITIALIZER;  // has a name

namespace {

// One thread holds a lock for 4 ms of 5; the other wants it, on another CPU.
template <typename Hold, typename Want, typename Unlock>
Said contend(Hold hold, Want want, Unlock unlock) {
  Said said{.others = {getpid()}};
  const uint64_t end = now_ns() + lasts;
  std::jthread holder([&] {
    stay_on(0);
    while (now_ns() < end) {
      hold();
      work(4 * ms);
      unlock();
      sleep_ns(ms);
    }
  });
  stay_on(1);
  sleep_ns(ms);
  while (now_ns() < end) {
    said.waited_ns += blocked_time_of(want);
    unlock();
    work(ms / 2);
  }
  return said;
}

}  // namespace

Said mutex_scenario(const Arguments&) {
  const auto take = [] { pthread_mutex_lock(&wait_mutex); };
  return contend(take, take, [] { pthread_mutex_unlock(&wait_mutex); });
}

Said rwlock_scenario(const Arguments&) {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  return contend([&] { pthread_rwlock_wrlock(&lock); }, [&] { pthread_rwlock_rdlock(&lock); },
                 [&] { pthread_rwlock_unlock(&lock); });
}

// A child writes much to a file at a time, and its lock is the child's meanwhile. "took_ns" is how
// long a write of one byte takes beside that, "waited_ns" how long it is off the CPU: of some of
// its spinning the kernel does not say that it is for a lock.
Said inode_scenario(const Arguments&) {
  const size_t much = is_bystander() ? 1 << 20 : 64 << 20;
  const int file = memfd_create("pk_wait", MFD_CLOEXEC);
  const uint64_t end = now_ns() + lasts;
  const pid_t child = in_child([&] {
    const std::vector<char> bytes(much);
    for (; now_ns() < end; sleep_ns(is_bystander() ? ms : 0))
      if (pwrite(file, bytes.data(), bytes.size(), 0) < 0) give_up("pwrite");
  });
  Said said{.others = {child}};
  while (now_ns() + ms < end) {
    const uint64_t before = now_ns();
    said.waited_ns += off_cpu_time_of([&] { (void)!pwrite(file, "", 1, 0); });
    said.took_ns += now_ns() - before;
    sleep_ns(ms);
  }
  waitpid(child, nullptr, 0);
  close(file);
  return said;
}

}  // namespace pkprof::wait
