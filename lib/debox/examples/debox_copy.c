// SPDX-License-Identifier: Apache-2.0
// The DeBox paper's own example: a file that is mapped into memory is copied with write(2), and the
// record of that one call says what became of it. As a whole it is an example of the library.
//
//     pkprof debox --serve -- debox_copy SOURCE TARGET
#define _GNU_SOURCE
#include <debox.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void die(const char* what) {
  perror(what);
  exit(1);
}

static const char* woken_by(const struct debox_waker* waker) {
  static char text[64];
  switch (waker->context) {
    case DEBOX_BY_PROCESS:
      snprintf(text, sizeof text, "process %u (%.16s)", waker->pid, waker->comm);
      return text;
    case DEBOX_BY_KTHREAD:
      snprintf(text, sizeof text, "kernel thread %.16s", waker->comm);
      return text;
    case DEBOX_BY_SOFTIRQ:
      return "a softirq";
    case DEBOX_BY_INTERRUPT:
      return "an interrupt";
  }
  return "somebody";
}

static void print(const struct debox_record* r) {
  printf("system call %u: %lld bytes in %.3f ms\n", r->number, (long long)r->result,
         (double)r->wall_ns / 1e6);
  printf("  %u minor and %u major page faults; went to sleep %u times, had to make room %u times\n",
         r->minor_faults, r->major_faults, r->voluntary, r->forced);
  printf("  asleep %.3f ms, ready and waiting for a CPU %.3f ms\n", (double)r->asleep_ns / 1e6,
         (double)r->runnable_ns / 1e6);
  for (uint32_t i = 0; i < r->sleeps; ++i) {
    const struct debox_sleep* s = &r->sleep[i];
    printf("  slept %u times, %.3f ms, in %s (%s)\n", s->count, (double)s->total_ns / 1e6,
           debox_place(s->place), debox_place(s->inside));
    printf("    longest %.3f ms; last woken by %s", (double)s->longest_ns / 1e6,
           woken_by(&s->waker));
    if (s->waiters_entry != DEBOX_UNKNOWN) printf("; %u others waited", s->waiters_entry);
    printf("\n");
  }
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: debox_copy SOURCE TARGET\n");
    return 2;
  }
  const int source = open(argv[1], O_RDONLY | O_CLOEXEC);
  if (source < 0) die(argv[1]);
  // What is written is to be on the disk when the call returns, as in the paper.
  const int target = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_SYNC | O_CLOEXEC, 0644);
  if (target < 0) die(argv[2]);
  struct stat about;
  if (fstat(source, &about)) die(argv[1]);
  const size_t size = (size_t)about.st_size;
  // The file is to come from the disk, too.
  posix_fadvise(source, 0, 0, POSIX_FADV_DONTNEED);
  const char* memory = mmap(NULL, size, PROT_READ, MAP_SHARED, source, 0);
  if (memory == MAP_FAILED) die("mmap");

  if (debox_on(NULL)) die("debox_on");
  if (!debox_serves()) fprintf(stderr, "debox_copy: no pkprof serves this: times only\n");
  debox_begin(SYS_write);
  const ssize_t written = write(target, memory, size);
  const struct debox_record* record = debox_end(written < 0 ? -errno : written);
  if (record) print(record);
  debox_off();
  return written == (ssize_t)size ? 0 : 1;
}
