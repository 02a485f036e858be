// SPDX-License-Identifier: Apache-2.0
// See debox.h. What a thread keeps is its own, but for the connection to pkprof and the names of
// places, which are the process's.
#define _GNU_SOURCE
#include "debox.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "connection.h"
#include "debox_wire.h"

#define PUBLIC __attribute__((visibility("default")))
#define RARE(x) __builtin_expect(!!(x), 0)

enum { MOST_RECORDS = 4096, PLACES = 16384 };

static const uint64_t try_again_ns = 1000000000;

struct thread {
  volatile struct debox_wire_mark mark;  // what the kernel side reads
  int on;
  uint32_t depth;  // of calls that are marked: those of a signal handler are not
  uint32_t mode;
  uint32_t parts;
  uint32_t mask;  // records less one
  uint32_t traces;
  uint32_t stride;
  uint32_t tid;
  const struct debox_record* shared;  // header and records; NULL: not served
  size_t shared_size;
  struct debox_record* ring;  // marked: our own
  uint64_t last;              // sequence of the last call that is over
  uint64_t read;              // of the last one that debox_next() gave
  uint64_t lost;
  uint64_t async_seen;
  uint64_t next_try_ns;
};

static __thread struct thread self __attribute__((tls_model("initial-exec")));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_end;
static uint32_t pid;
static char* place_names[PLACES];

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// A process that was begun by fork() is not served.
static void after_fork(void) {
  forget_connection();
  pid = (uint32_t)getpid();
  self.tid = 0;
  if (!self.on) return;
  if (self.shared) munmap((void*)self.shared, self.shared_size);
  self.shared = NULL;
  self.next_try_ns = 0;
  if (self.mode == DEBOX_ALL_CALLS) self.on = 0;
}

static void thread_ends(void* unused) {
  (void)unused;
  debox_off();
}

static void prepare(void) {
  pid = (uint32_t)getpid();
  pthread_key_create(&at_end, thread_ends);
  pthread_atfork(NULL, NULL, after_fork);
}

static struct debox_wire_request request_for(const struct thread* t, uint32_t what) {
  return (struct debox_wire_request){.version = DEBOX_WIRE_VERSION,
                                     .what = what,
                                     .tid = t->tid,
                                     .mode = t->mode,
                                     .parts = t->parts,
                                     .records = t->mask + 1,
                                     .traces = t->traces,
                                     .mark = (uint64_t)(uintptr_t)&t->mark};
}

// Asks to be served. Returns 0, or an errno. In the middle of something, perhaps in a signal's
// handler, it does not wait for another who asks.
static int get_served(struct thread* t, int wait) {
  struct debox_wire_answer answer;
  int memory;
  if (!t->tid) t->tid = (uint32_t)syscall(SYS_gettid);
  const struct debox_wire_request request = request_for(t, DEBOX_WIRE_ON);
  const int error = ask_pkprof(&request, &answer, &memory, wait);
  if (error) return error;
  if (memory < 0 || answer.stride == 0 || answer.stride > 64) return EPROTO;
  const size_t size = (1 + (size_t)answer.stride * (t->mask + 1)) * sizeof(struct debox_record);
  void* shared = mmap(NULL, size, PROT_READ, MAP_SHARED, memory, 0);
  const int why = errno;
  close(memory);
  if (shared == MAP_FAILED) return why;
  t->stride = answer.stride;
  t->shared_size = size;
  t->shared = shared;
  t->async_seen = ((const struct debox_wire_header*)shared)->async_ns;
  return 0;
}

static void forget_served(struct thread* t) {
  if (!t->shared) return;
  struct debox_wire_answer answer;
  int memory;
  const struct debox_wire_request request = request_for(t, DEBOX_WIRE_OFF);
  ask_pkprof(&request, &answer, &memory, 1);
  munmap((void*)t->shared, t->shared_size);
  t->shared = NULL;
}

static uint32_t power_of_two(uint32_t n) {
  uint32_t power = 1;
  while (power < n) power *= 2;
  return power;
}

PUBLIC int debox_on(const struct debox_options* options) {
  const struct debox_options usual = DEBOX_OPTIONS_INIT;
  const struct debox_options* o = options ? options : &usual;
  if (o->size < sizeof *o || o->mode > DEBOX_ALL_CALLS || o->records == 0 ||
      o->records > MOST_RECORDS || o->traces > 62 * DEBOX_TRACES) {
    errno = EINVAL;
    return -1;
  }
  debox_off();
  pthread_once(&once, prepare);
  struct thread* t = &self;
  const uint32_t records = power_of_two(o->records);
  memset(t, 0, sizeof *t);
  t->mode = o->mode;
  t->parts = o->parts;
  t->traces = o->parts & DEBOX_PART_TRACE ? o->traces : 0;
  t->mask = records - 1;
  if (o->mode == DEBOX_MARKED_CALLS) {
    t->ring = calloc(records, sizeof *t->ring);
    if (!t->ring) return -1;
  }
  const int error = get_served(t, 1);
  if (error && o->mode == DEBOX_ALL_CALLS) {
    errno = error;
    return -1;
  }
  t->next_try_ns = now_ns() + try_again_ns;
  t->on = 1;
  pthread_setspecific(at_end, t);
  return 0;
}

PUBLIC void debox_off(void) {
  struct thread* t = &self;
  if (!t->on) return;
  t->on = 0;
  t->mark.sequence = 0;
  forget_served(t);
  free(t->ring);
  t->ring = NULL;
}

PUBLIC int debox_serves(void) {
  return self.on && self.shared;
}

static struct debox_record* slot_of(const struct thread* t, uint64_t sequence) {
  return &t->ring[(sequence + 1) >> 1 & t->mask];
}

static const struct debox_record* shared_slot_of(const struct thread* t, uint64_t sequence) {
  return &t->shared[1 + (size_t)t->stride * ((sequence + 1) >> 1 & t->mask)];
}

static uint64_t async_of(const struct thread* t) {
  return __atomic_load_n(&((const struct debox_wire_header*)t->shared)->async_ns, __ATOMIC_RELAXED);
}

// What the kernel keeps for the C library in each thread (rseq).
static uint32_t cpu_now(void) {
  if (__rseq_size == 0) return 0;
  const struct rseq* area = (const void*)((const char*)__builtin_thread_pointer() + __rseq_offset);
  return area->cpu_id;
}

// Before the call's own time begins: what was charged since the call before was for that one.
static struct debox_record* begin(uint32_t number) {
  struct thread* t = &self;
  if (RARE(!t->on) || t->depth++) return NULL;
  if (RARE(!t->ring)) return NULL;
  uint64_t between = 0;
  if (t->shared) {
    const uint64_t async = async_of(t);
    between = async - t->async_seen;
    if (t->last) slot_of(t, t->last)->async_later_ns += between;
    t->async_seen = async;
  }
  const uint64_t sequence = t->last + 1;
  struct debox_record* r = slot_of(t, sequence);
  memset(r, 0, offsetof(struct debox_record, sleep));
  r->async_before_ns = between;
  r->sequence = sequence;
  r->number = number;
  r->flags = DEBOX_MARKED;
  return r;
}

static void start(struct debox_record* r) {
  self.mark.sequence = r->sequence;
  r->start_ns = now_ns();
}

PUBLIC void debox_begin(uint32_t number) {
  struct debox_record* r = begin(number);
  if (!r) return;
  r->flags |= DEBOX_NO_ARGUMENTS;
  start(r);
}

PUBLIC void debox_begin_with(uint32_t number, const uint64_t argument[6]) {
  struct debox_record* r = begin(number);
  if (!r) return;
  memcpy(r->argument, argument, sizeof r->argument);
  start(r);
}

// What the kernel side has noted of the call, if there was anything.
static void take_noted(struct debox_record* r, const struct debox_record* noted) {
  if (RARE(noted->flags & (DEBOX_UNSEEN | DEBOX_OFF_CPU))) r->flags |= DEBOX_UNSEEN;
  r->flags |= noted->flags & DEBOX_SAMPLED;
  r->voluntary = noted->voluntary;
  r->forced = noted->forced;
  r->migrations = noted->migrations;
  r->minor_faults = noted->minor_faults;
  r->major_faults = noted->major_faults;
  r->signals = noted->signals;
  r->restarts = noted->restarts;
  r->asleep_ns = noted->asleep_ns;
  r->runnable_ns = noted->runnable_ns;
  r->sleeps = noted->sleeps < DEBOX_SLEEPS ? noted->sleeps : DEBOX_SLEEPS;
  r->faults = noted->faults < DEBOX_FAULTS ? noted->faults : DEBOX_FAULTS;
  r->sleeps_left_out = noted->sleeps_left_out;
  r->faults_left_out = noted->faults_left_out;
  r->traces = noted->traces;
  r->traces_left_out = noted->traces_left_out;
  memcpy(r->sleep, noted->sleep, r->sleeps * sizeof *r->sleep);
  memcpy(r->fault, noted->fault, r->faults * sizeof *r->fault);
}

PUBLIC const struct debox_record* debox_end(int64_t result) {
  struct thread* t = &self;
  if (RARE(!t->on) || !t->depth || --t->depth) return NULL;
  if (RARE(!t->ring)) return NULL;
  const int old_errno = errno;
  const uint64_t end = now_ns();
  const uint64_t sequence = t->last + 1;
  struct debox_record* r = slot_of(t, sequence);
  t->mark.sequence = sequence + 1;
  t->last = sequence + 1;
  r->wall_ns = end - r->start_ns;
  r->result = result;
  r->tid = t->tid;
  r->pid = pid;
  r->cpu = cpu_now();
  if (t->shared) {
    const struct debox_record* noted = shared_slot_of(t, sequence);
    if (noted->sequence == sequence) take_noted(r, noted);
    const uint64_t async = async_of(t);
    r->async_ns = async - t->async_seen;
    t->async_seen = async;
  } else if (RARE(end >= t->next_try_ns)) {
    t->next_try_ns = end + try_again_ns;
    get_served(t, 0);
  }
  r->sequence = sequence + 1;
  errno = old_errno;
  return r;
}

PUBLIC int64_t debox_syscall(uint32_t number, const uint64_t argument[6]) {
  debox_begin_with(number, argument);
  long result =
      syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
  const int64_t out = result == -1 ? -(int64_t)errno : result;
  debox_end(out);
  return out;
}

// With DEBOX_ALL_CALLS the kernel side counts the calls; here it is seen how far it has come.
static void catch_up(struct thread* t) {
  if (t->ring || !t->shared) return;
  for (;;) {
    const uint64_t next = t->last + 2;
    const uint64_t there =
        __atomic_load_n(&shared_slot_of(t, next)->sequence, __ATOMIC_ACQUIRE) & ~UINT64_C(1);
    if (there < next) return;
    // The ring went around, perhaps more than once: the place of the next one has a later one.
    t->last = there == next ? next : there;
  }
}

PUBLIC const struct debox_record* debox_last(void) {
  struct thread* t = &self;
  if (!t->on) return NULL;
  catch_up(t);
  if (!t->last) return NULL;
  return t->ring ? slot_of(t, t->last) : shared_slot_of(t, t->last);
}

PUBLIC int debox_next(struct debox_record* record) {
  struct thread* t = &self;
  if (!t->on) return 0;
  catch_up(t);
  const uint64_t kept = 2 * (uint64_t)(t->mask + 1);
  if (t->last > t->read + kept) {
    t->lost += (t->last - t->read - kept) / 2;
    t->read = t->last - kept;
  }
  while (t->read < t->last) {
    t->read += 2;
    const struct debox_record* r = t->ring ? slot_of(t, t->read) : shared_slot_of(t, t->read);
    memcpy(record, r, sizeof *record);
    if (record->sequence != t->read)
      ++t->lost;
    else if (!(record->flags & DEBOX_GOES_ON))
      return 1;
  }
  return 0;
}

PUBLIC uint64_t debox_lost(void) {
  return self.lost;
}

PUBLIC const struct debox_trace* debox_traces_of(const struct debox_record* record) {
  const struct thread* t = &self;
  if (!t->on || !t->shared || !record || !record->traces) return NULL;
  return ((const struct debox_trace_piece*)(shared_slot_of(t, record->sequence) + 1))->trace;
}

PUBLIC const char* debox_place(uint32_t place) {
  if (!place || place >= PLACES) return "";
  const char* name = __atomic_load_n(&place_names[place], __ATOMIC_ACQUIRE);
  if (name) return name;
  struct debox_wire_request request = request_for(&self, DEBOX_WIRE_PLACE);
  request.place = place;
  struct debox_wire_answer answer;
  int memory;
  if (ask_pkprof(&request, &answer, &memory, 1)) return "";
  answer.name[sizeof answer.name - 1] = 0;
  char* told = answer.name[0] ? strdup(answer.name) : NULL;
  if (!told) return "";
  char* other = NULL;  // that another thread asked for meanwhile
  if (__atomic_compare_exchange_n(&place_names[place], &other, told, 0, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return told;
  free(told);
  return other;
}
