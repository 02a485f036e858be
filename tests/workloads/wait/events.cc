// SPDX-License-Identifier: Apache-2.0
// Waits for events: a condition in shared memory, an eventfd, the end of a child.
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "wait/wait.h"

namespace pkprof::wait {
namespace {

struct Shared {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  bool is_set;
};

Shared* make_shared_condition() {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) give_up("mmap");
  auto* const shared = static_cast<Shared*>(memory);
  pthread_mutexattr_t of_mutex;
  pthread_mutexattr_init(&of_mutex);
  pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->mutex, &of_mutex);
  pthread_condattr_t of_condition;
  pthread_condattr_init(&of_condition);
  pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&shared->condition, &of_condition);
  return shared;
}

void set(Shared* shared) {
  pthread_mutex_lock(&shared->mutex);
  shared->is_set = true;
  pthread_mutex_unlock(&shared->mutex);
  pthread_cond_signal(&shared->condition);
}

void wait_for(Shared* shared) {
  pthread_mutex_lock(&shared->mutex);
  while (!shared->is_set) pthread_cond_wait(&shared->condition, &shared->mutex);
  shared->is_set = false;
  pthread_mutex_unlock(&shared->mutex);
}

// A child works for 2 ms before each signal.
Said wait_for_signals(const std::function<void()>& signal, const std::function<void()>& wait) {
  const pid_t child = in_child([&] {
    for (;; sleep_ns(ms)) {
      work(2 * ms);
      signal();
    }
  });
  Said said{.others = {child}};
  for (const uint64_t end = now_ns() + lasts; now_ns() < end; work(ms / 2))
    said.waited_ns += blocked_time_of(wait);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return said;
}

}  // namespace

Said condition_scenario(const Arguments&) {
  Shared* const shared = make_shared_condition();
  Said said = wait_for_signals([=] { set(shared); }, [=] { wait_for(shared); });
  munmap(shared, sizeof(Shared));
  return said;
}

Said eventfd_scenario(const Arguments&) {
  const int event = eventfd(0, EFD_CLOEXEC);
  Said said = wait_for_signals(
      [=] {
        if (eventfd_write(event, 1)) give_up("eventfd_write");
      },
      [=] {
        eventfd_t value;
        if (eventfd_read(event, &value)) give_up("eventfd_read");
      });
  close(event);
  return said;
}

// Children that live for 20 ms, one after the other.
Said children_scenario(const Arguments&) {
  Said said;
  for (const uint64_t end = now_ns() + lasts; now_ns() < end;) {
    const pid_t child = in_child([] { work(20 * ms); });
    said.others.push_back(child);
    said.waited_ns += blocked_time_of([=] { waitpid(child, nullptr, 0); });
  }
  return said;
}

}  // namespace pkprof::wait
