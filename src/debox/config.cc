// SPDX-License-Identifier: Apache-2.0
#include "debox/config.h"

#include <sys/random.h>

#include <iterator>

#include "base/clock.h"

namespace pkprof {
namespace {

// Functions in which a thread waits for something else than it seems; names of 6.1 to 6.18.
struct Special {
  const char* name;
  db_class class_;
};
constexpr Special specials[] = {
    {"futex_wait_queue", DB_CLASS_FUTEX},
    {"futex_do_wait", DB_CLASS_FUTEX},
    {"futex_wait_queue_me", DB_CLASS_FUTEX},
    {"futex_wait_requeue_pi", DB_CLASS_FUTEX},
    {"flock_lock_inode_wait", DB_CLASS_FILE_LOCK},
    {"locks_lock_inode_wait", DB_CLASS_FILE_LOCK},
    {"posix_lock_inode_wait", DB_CLASS_FILE_LOCK},
    {"do_lock_file_wait", DB_CLASS_FILE_LOCK},
    {"fcntl_setlk", DB_CLASS_FILE_LOCK},
    {"folio_wait_bit_common", DB_CLASS_HELPER},
    {"folio_wait_bit", DB_CLASS_HELPER},
    {"folio_wait_bit_killable", DB_CLASS_HELPER},
    {"folio_wait_writeback", DB_CLASS_HELPER},
    {"folio_put_wait_locked", DB_CLASS_HELPER},
    {"__folio_lock", DB_CLASS_HELPER},
    {"__folio_lock_killable", DB_CLASS_HELPER},
    {"__folio_lock_or_retry", DB_CLASS_HELPER},
    {"__wait_on_bit", DB_CLASS_HELPER},
    {"__wait_on_bit_lock", DB_CLASS_HELPER},
    {"out_of_line_wait_on_bit", DB_CLASS_HELPER},
    {"out_of_line_wait_on_bit_lock", DB_CLASS_HELPER},
    {"__wait_on_buffer", DB_CLASS_HELPER},
    {"blk_io_schedule", DB_CLASS_HELPER},
    {"wait_woken", DB_CLASS_HELPER},
    {"sk_wait_data", DB_CLASS_HELPER},
    {"__skb_wait_for_more_packets", DB_CLASS_HELPER},
};
static_assert(std::size(specials) <= DB_CLASS_FUNCTIONS);

// Calls whose result is a number of bytes, x86-64: read, write, pread64, pwrite64, readv, writev,
// sendfile, sendto, recvfrom, sendmsg, recvmsg, splice, tee, vmsplice, preadv, pwritev,
// process_vm_readv, process_vm_writev, getrandom, copy_file_range, preadv2, pwritev2.
constexpr uint32_t moving[] = {0,   1,   17,  18,  19,  20,  40,  44,  45,  46,  47,
                               275, 276, 278, 295, 296, 310, 311, 318, 326, 327, 328};
// i386: read, write, readv, writev, pread64, pwrite64, sendfile, sendfile64, splice, tee, vmsplice.
constexpr uint32_t moving_compat[] = {3, 4, 145, 146, 180, 181, 187, 239, 313, 315, 316};

uint64_t address_of(const KernelSymbols& symbols, const char* name) {
  const auto found = symbols.by_name(name);
  return found.empty() ? 0 : found.front().start;
}

}  // namespace

void tell_debox(db_config& config, const KernelFacts& facts, const KernelSymbols* symbols) {
  config.runqueues = facts.percpu_offset("runqueues");
  config.preempt_count = facts.preempt_count_offset();
  config.kernel_stat = facts.percpu_offset("kstat");
  for (const uint32_t number : moving) config.moves[number / 64] |= uint64_t{1} << (number % 64);
  for (const uint32_t number : moving_compat)
    config.moves[(DB_CALLS + number) / 64] |= uint64_t{1} << (number % 64);
  if (getrandom(&config.seed, sizeof(config.seed), 0) < 0) config.seed = monotonic_ns();
  if (!symbols) return;
  config.scheduling = address_of(*symbols, "__sched_text_start");
  config.scheduling_end = address_of(*symbols, "__sched_text_end");
  config.wake_page = address_of(*symbols, "wake_page_function");
  config.wake_bit = address_of(*symbols, "wake_bit_function");
  config.wake_variable = address_of(*symbols, "var_wake_function");
  size_t n = 0;
  for (const Special& special : specials)
    for (const KernelSymbol& symbol : symbols->by_name(special.name))
      if (n < DB_CLASS_FUNCTIONS)
        config.function[n++] = {symbol.start, symbol.end - symbol.start, special.class_};
}

}  // namespace pkprof
