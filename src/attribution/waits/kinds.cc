// SPDX-License-Identifier: Apache-2.0
#include "attribution/waits/kinds.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace pkprof {
namespace {

// By the place, before it is looked at who ended it.
enum class Place : uint8_t {
  none,
  disk,
  memory,
  lock,
  futex,
  pipe,
  socket,
  accept,
  many,  // whatever comes first of several
  sleep,
  child,
  event,
  quiet,  // signals, terminals
  stopped,
};

struct Rule {
  std::string_view prefix;  // of a function's name
  Place place;
};

// The first frame from within that any of these knows tells it; frames in between (schedule(),
// wait_for_completion(), wait_woken()) are in none.
constexpr std::array rules = {
    Rule{"do_wait_intr", Place::none},  // of any wait queue; do_wait() is for children
    Rule{"io_schedule", Place::disk},
    Rule{"folio_wait", Place::disk},
    Rule{"__folio_lock", Place::disk},
    Rule{"wait_on_page", Place::disk},
    Rule{"__wait_on_buffer", Place::disk},
    Rule{"submit_bio_wait", Place::disk},
    Rule{"blk_", Place::disk},
    Rule{"rq_qos_wait", Place::disk},
    Rule{"balance_dirty_pages", Place::disk},
    Rule{"wb_wait_for", Place::disk},
    Rule{"jbd2_", Place::disk},
    Rule{"ext4_", Place::disk},
    Rule{"xfs_", Place::disk},
    Rule{"xlog_", Place::disk},
    Rule{"btrfs_", Place::disk},
    Rule{"f2fs_", Place::disk},
    Rule{"nfs_", Place::disk},
    Rule{"iomap_", Place::disk},
    Rule{"reclaim_throttle", Place::memory},
    Rule{"throttle_direct_reclaim", Place::memory},
    Rule{"shrink_", Place::memory},
    Rule{"try_to_free", Place::memory},
    Rule{"__alloc_pages_slowpath", Place::memory},
    Rule{"mem_cgroup_", Place::memory},
    Rule{"__mem_cgroup_", Place::memory},
    Rule{"compact_zone", Place::memory},
    Rule{"out_of_memory", Place::memory},
    Rule{"__mutex_lock", Place::lock},
    Rule{"mutex_lock", Place::lock},
    Rule{"ww_mutex", Place::lock},
    Rule{"rwsem_down", Place::lock},
    Rule{"down_", Place::lock},
    Rule{"__down_", Place::lock},
    Rule{"percpu_rwsem", Place::lock},
    Rule{"__percpu_down", Place::lock},
    Rule{"rt_mutex", Place::lock},
    Rule{"do_semtimedop", Place::lock},
    Rule{"__do_semtimedop", Place::lock},
    Rule{"fcntl_setlk", Place::lock},
    Rule{"locks_lock", Place::lock},
    Rule{"flock_lock", Place::lock},
    Rule{"futex_lock_pi", Place::lock},
    Rule{"futex_wait", Place::futex},
    Rule{"__futex_wait", Place::futex},
    Rule{"futex_do_wait", Place::futex},
    Rule{"pipe_", Place::pipe},
    Rule{"anon_pipe_", Place::pipe},
    Rule{"fifo_", Place::pipe},
    Rule{"wait_for_partner", Place::pipe},
    Rule{"inet_csk_accept", Place::accept},
    Rule{"inet_csk_wait_for_connect", Place::accept},
    Rule{"inet_accept", Place::accept},
    Rule{"unix_accept", Place::accept},
    Rule{"sk_wait_data", Place::socket},
    Rule{"__skb_wait_for_more", Place::socket},
    Rule{"tcp_recvmsg", Place::socket},
    Rule{"unix_stream_", Place::socket},
    Rule{"unix_wait_for_peer", Place::socket},
    Rule{"inet_wait_for_connect", Place::socket},
    Rule{"inet_stream_connect", Place::socket},
    Rule{"__inet_stream_connect", Place::socket},
    Rule{"sock_alloc_send", Place::socket},
    Rule{"sk_stream_wait", Place::socket},
    Rule{"wq_sleep", Place::socket},
    Rule{"do_msgrcv", Place::socket},
    Rule{"do_msgsnd", Place::socket},
    Rule{"ep_poll", Place::many},
    Rule{"do_epoll_wait", Place::many},
    Rule{"do_poll", Place::many},
    Rule{"do_sys_poll", Place::many},
    Rule{"do_select", Place::many},
    Rule{"core_sys_select", Place::many},
    Rule{"io_cqring_wait", Place::many},
    Rule{"do_nanosleep", Place::sleep},
    Rule{"hrtimer_nanosleep", Place::sleep},
    Rule{"common_nsleep", Place::sleep},
    Rule{"timerfd_read", Place::sleep},
    Rule{"usleep_range", Place::sleep},
    Rule{"msleep", Place::sleep},
    Rule{"do_wait", Place::child},
    Rule{"kernel_wait", Place::child},
    Rule{"kernel_clone", Place::child},
    Rule{"eventfd_read", Place::event},
    Rule{"do_sigtimedwait", Place::quiet},
    Rule{"sigsuspend", Place::quiet},
    Rule{"__x64_sys_pause", Place::quiet},
    Rule{"n_tty_", Place::quiet},
    Rule{"tty_", Place::quiet},
    Rule{"inotify_read", Place::quiet},
    Rule{"signalfd_read", Place::quiet},
    Rule{"do_syslog", Place::quiet},
    Rule{"syslog_print", Place::quiet},
    Rule{"devkmsg_read", Place::quiet},
    Rule{"ptrace_stop", Place::stopped},
    Rule{"do_signal_stop", Place::stopped},
    Rule{"do_freezer_trap", Place::stopped},
    Rule{"__refrigerator", Place::stopped},
};

Place place_of(std::span<const std::string_view> functions) {
  for (const std::string_view function : functions) {
    const auto* const rule = std::ranges::find_if(
        rules, [&](const Rule& one) { return function.starts_with(one.prefix); });
    if (rule != rules.end() && rule->place != Place::none) return rule->place;
  }
  return Place::none;
}

bool is_fault(std::span<const std::string_view> functions) {
  return std::ranges::any_of(functions, [](std::string_view function) {
    return function.starts_with("asm_exc_page_fault") || function.starts_with("exc_page_fault");
  });
}

bool ended_by_timer(const pk_waker* waker) {
  if (!waker) return false;
  if (waker->context == PK_WOKEN_BY_INTERRUPT) return waker->vec == PK_EXACT_TIMER;
  return waker->context == PK_WOKEN_BY_SOFTIRQ &&
         (waker->vec == PK_VEC_TIMER || waker->vec == PK_VEC_HRTIMER);
}

// Something has come over a connection, as an answer or as a question.
std::string_view kind_of_message(const pk_waker* waker) {
  return waker && waker->question ? "idle" : "reply";
}

std::string_view kind_of_many(const pk_waker* waker) {
  if (!waker || waker->context == PK_WOKEN_BY_NOBODY) return "idle"; /* nothing came */
  if (ended_by_timer(waker)) return "timer";
  return kind_of_message(waker);
}

// By the first of them: a condition's wait takes its mutex again, and a lock may be made of a
// condition.
constexpr std::array lock_calls = {"pthread_rwlock_",       "__pthread_rwlock_",
                                   "pthread_mutex_",        "__pthread_mutex_",
                                   "PyThread_acquire_lock", "std::sys::sync::mutex"};

bool is_lock_call(std::span<const std::string_view> callers) {
  constexpr size_t innermost = 6;
  return std::ranges::any_of(
      callers.first(std::min(callers.size(), innermost)), [](std::string_view function) {
        return std::ranges::any_of(
            lock_calls, [&](const char* prefix) { return function.starts_with(prefix); });
      });
}

// Libraries wait for conditions by FUTEX_WAIT_BITSET, and for mutexes by the others. By either for
// what else they have as locks.
std::string_view kind_of_futex(const WaitClues& clues) {
  constexpr uint8_t wait_bitset = 1 + 9;
  if (ended_by_timer(clues.waker)) return "timer";
  return clues.futex == wait_bitset && !is_lock_call(clues.callers) ? "event" : "lock";
}

}  // namespace

std::string_view wait_kind(const WaitClues& clues) {
  if (clues.part == PK_WAIT_READY) return "runnable";
  const bool fault = is_fault(clues.functions);
  switch (place_of(clues.functions)) {
    case Place::disk:
      return fault ? "fault" : "disk";
    case Place::memory:
      return "memory";
    case Place::lock:
      return "lock";
    case Place::futex:
      return kind_of_futex(clues);
    case Place::pipe:
      return "reply";
    case Place::socket:
      return ended_by_timer(clues.waker) ? "timer" : kind_of_message(clues.waker);
    case Place::accept:
      return "idle";
    case Place::many:
      return kind_of_many(clues.waker);
    case Place::sleep:
      return "timer";
    case Place::child:
      return "child";
    case Place::event:
      return "event";
    case Place::quiet:
      return "idle";
    case Place::stopped:
      return "stopped";
    case Place::none:
      break;
  }
  if (ended_by_timer(clues.waker)) return "timer";
  return fault ? "fault" : "other";
}

}  // namespace pkprof
