// SPDX-License-Identifier: Apache-2.0
#include "cpus.h"

#include <cstdio>

#include "kernel/kernel_side.h"
#include "pkprof/cpu.h"
#include "process/sideband.h"

namespace pkprof::scale {
namespace {

constexpr double mib = 1 << 20;

// As the kernel rounds them up: a hash table's element has a head of 48 bytes, and comes from a
// size class.
constexpr double count_bytes = 128;
constexpr double stack_bytes = 1024;
constexpr double bucket_bytes = 16;

}  // namespace

void print_cpus(uint64_t frequency_hz) {
  const double fixed = static_cast<double>(
      sizeof(pk_cpu) * PK_MAX_CPUS + (sizeof(pk_slot) + sizeof(uint32_t)) * PK_SLOTS +
      sizeof(pk_note) * PK_NOTES * PK_NOTE_TABLES + sizeof(uint64_t) * PK_UNWINDS);
  std::printf(
      "Fixed: %.1f MiB, of which %zu bytes for each of %d CPUs, %zu for each of %d slots, "
      "%zu for each of %d notes, and %zu for each of %d ways up a stack.\n\n",
      fixed / mib, sizeof(pk_cpu), PK_MAX_CPUS, sizeof(pk_slot), PK_SLOTS, sizeof(pk_note),
      PK_NOTES * PK_NOTE_TABLES, sizeof(uint64_t), PK_UNWINDS);
  std::printf(
      "| CPUs, at %llu Hz | entries of a table | empty tables, MiB | full of what a second "
      "can bring, MiB | ring of a CPU, KiB | rings, MiB |\n|--:|--:|--:|--:|--:|--:|\n",
      static_cast<unsigned long long>(frequency_hz));
  KernelSideOptions options;
  options.frequency_hz = frequency_hz;
  for (const uint32_t cpus : {2U, 8U, 64U, 256U, 1024U}) {
    const uint32_t entries = table_room(options, cpus).counts;
    const double samples = static_cast<double>(cpus * frequency_hz);
    const double stacks = std::min<double>(entries, 2 * samples);
    const double counts = std::min<double>(entries, samples);
    const size_t ring = Sideband::ring_bytes_for(cpus);
    std::printf("| %u | %u | %.1f | %.1f | %zu | %.1f |\n", cpus, entries,
                4 * entries * bucket_bytes / mib,
                (stacks * stack_bytes + counts * count_bytes) / mib, ring >> 10,
                static_cast<double>(cpus * ring) / mib);
  }
  std::puts("");
}

}  // namespace pkprof::scale
