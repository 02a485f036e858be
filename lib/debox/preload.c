// SPDX-License-Identifier: Apache-2.0
// To be preloaded into programs that cannot be changed: marks the calls that they make through the
// C library's functions, and says at the end what they cost.
//
//     LD_PRELOAD=libdebox-preload.so.1 DEBOX_OUT=calls.jsonl PROGRAM
//
// DEBOX_OUT: where the records go, a line of JSON each; without it, a table goes to standard error.
// DEBOX_MIN_US: of calls that take less no record is written.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "debox.h"

#define PUBLIC __attribute__((visibility("default")))

// Of the process, by number.
enum { KINDS = 512 };
static struct kind {
  const char* name;
  _Atomic uint64_t count, errors, total_ns, longest_ns, asleep_ns, runnable_ns, faults, async_ns;
} kinds[KINDS];

static int out = -1;       // for records, or
static int table_fd = -1;  // for the table: programs close standard error before they end
static uint64_t least_ns;
// Of a thread: 1 while it is at work here, or has DeBox for itself, and nothing is to be marked.
static __thread int busy __attribute__((tls_model("initial-exec")));
static __thread int on __attribute__((tls_model("initial-exec")));

// Not among the first numbers, which programs take for granted.
static int put_away(int fd) {
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, 900);
  return high < 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 100) : high;
}

__attribute__((constructor)) static void begin_process(void) {
  const char* name = secure_getenv("DEBOX_OUT");
  const char* least = secure_getenv("DEBOX_MIN_US");
  busy = 1;
  if (least && __builtin_mul_overflow(strtoull(least, NULL, 10), 1000, &least_ns))
    least_ns = UINT64_MAX;
  if (name) {
    const int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) fprintf(stderr, "debox: %s: %s\n", name, strerror(errno));
    out = fd < 0 ? -1 : put_away(fd);
    if (fd >= 0) close(fd);
  } else {
    table_fd = put_away(STDERR_FILENO);
  }
  busy = 0;
}

// Room for a line: names of places are short.
struct line {
  char text[8192];
  size_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct line* l, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const size_t room = sizeof l->text - l->length;
  const int n = vsnprintf(l->text + l->length, room, format, arguments);
  va_end(arguments);
  if (n > 0) l->length += (size_t)n < room ? (size_t)n : room - 1;
}

// As `pkprof debox -o` writes them. Names of places have no character that JSON minds.
static void write_record(const char* name, const struct debox_record* r) {
  struct line l = {.length = 0};
  add(&l, "{\"call\":\"%s\",\"number\":%u,\"pid\":%u,\"tid\":%u,\"start_ns\":%llu", name, r->number,
      r->pid, r->tid, (unsigned long long)r->start_ns);
  add(&l, ",\"wall_ns\":%llu,\"result\":%lld,\"cpu\":%u", (unsigned long long)r->wall_ns,
      (long long)r->result, r->cpu);
  add(&l, ",\"asleep_ns\":%llu,\"runnable_ns\":%llu", (unsigned long long)r->asleep_ns,
      (unsigned long long)r->runnable_ns);
  add(&l, ",\"voluntary\":%u,\"forced\":%u,\"migrations\":%u", r->voluntary, r->forced,
      r->migrations);
  add(&l, ",\"minor_faults\":%u,\"major_faults\":%u,\"signals\":%u,\"restarts\":%u",
      r->minor_faults, r->major_faults, r->signals, r->restarts);
  add(&l, ",\"async_before_ns\":%llu,\"async_ns\":%llu,\"sleeps\":[",
      (unsigned long long)r->async_before_ns, (unsigned long long)r->async_ns);
  for (uint32_t i = 0; i < r->sleeps && i < DEBOX_SLEEPS; ++i) {
    const struct debox_sleep* s = &r->sleep[i];
    add(&l, "%s{\"place\":\"%s\",\"inside\":\"%s\",\"count\":%u,\"total_ns\":%llu", i ? "," : "",
        debox_place(s->place), debox_place(s->inside), s->count, (unsigned long long)s->total_ns);
    add(&l, ",\"longest_ns\":%llu}", (unsigned long long)s->longest_ns);
  }
  add(&l, "]}\n");
  if (l.text[l.length - 1] == '\n') (void)!write(out, l.text, l.length);
}

// Of the thread's last call: what is done for it elsewhere after its end is its kind's.
static _Thread_local struct kind* last_kind;

static void count(const char* name, const struct debox_record* r) {
  struct kind* k = &kinds[r->number % KINDS];
  if (last_kind && r->async_before_ns) last_kind->async_ns += r->async_before_ns;
  last_kind = k;
  k->name = name;
  k->count++;
  k->errors += r->result < 0;
  k->total_ns += r->wall_ns;
  k->asleep_ns += r->asleep_ns;
  k->runnable_ns += r->runnable_ns;
  k->faults += r->minor_faults + r->major_faults;
  k->async_ns += r->async_ns;
  uint64_t longest = k->longest_ns;
  while (longest < r->wall_ns &&
         !atomic_compare_exchange_weak(&k->longest_ns, &longest, r->wall_ns)) {
  }
}

// Returns whether the call is to be marked.
static int begin_call(uint32_t number, const uint64_t argument[6]) {
  if (busy) return 0;
  if (!on) {
    const int old_errno = errno;
    busy = 1;
    on = debox_on(NULL) ? -1 : 1;
    busy = 0;
    errno = old_errno;
  }
  if (on < 0) return 0;
  debox_begin_with(number, argument);
  return 1;
}

static void end_call(const char* name, int64_t result) {
  const int old_errno = errno;
  busy = 1;
  const struct debox_record* r = debox_end(result < 0 ? -(int64_t)old_errno : result);
  if (r) {
    count(name, r);
    if (out >= 0 && r->wall_ns >= least_ns) write_record(name, r);
  }
  busy = 0;
  errno = old_errno;
}

static void* next_of(const char* name) {
  void* function = dlsym(RTLD_NEXT, name);
  if (!function) abort();
  return function;
}

__attribute__((destructor)) static void end_process(void) {
  busy = 1;
  if (table_fd < 0) return;
  size_t used[KINDS];
  size_t n = 0;
  for (size_t i = 0; i < KINDS; ++i)
    if (kinds[i].count) used[n++] = i;
  if (!n) return;
  for (size_t i = 1; i < n; ++i)
    for (size_t j = i; j && kinds[used[j]].total_ns > kinds[used[j - 1]].total_ns; --j) {
      const size_t other = used[j];
      used[j] = used[j - 1];
      used[j - 1] = other;
    }
  dprintf(table_fd, "%-14s %10s %8s %10s %10s %10s %10s %8s\n", "CALL", "COUNT", "ERRORS",
          "TOTAL ms", "MEAN us", "MAX us", "ASLEEP ms", "FAULTS");
  for (size_t i = 0; i < n; ++i) {
    const struct kind* k = &kinds[used[i]];
    const double total = (double)k->total_ns;
    dprintf(table_fd, "%-14s %10llu %8llu %10.3f %10.3f %10.3f %10.3f %8llu\n", k->name,
            (unsigned long long)k->count, (unsigned long long)k->errors, total / 1e6,
            total / 1e3 / (double)k->count, (double)k->longest_ns / 1e3, (double)k->asleep_ns / 1e6,
            (unsigned long long)k->faults);
  }
}

#define ARGUMENT(x) ((uint64_t)(uintptr_t)(x))
#define MARKED_AS(call, type, name, number, parameters, arguments, ...)               \
  PUBLIC type name parameters {                                                       \
    static type(*real) parameters;                                                    \
    if (!real) real = (type(*) parameters)next_of(#name);                             \
    if (!begin_call(number, (const uint64_t[6]){__VA_ARGS__})) return real arguments; \
    const type result = real arguments;                                               \
    end_call(#call, (int64_t)result);                                                 \
    return result;                                                                    \
  }
#define MARKED(type, name, ...) MARKED_AS(name, type, name, __VA_ARGS__)

MARKED(ssize_t, read, SYS_read, (int fd, void* to, size_t n), (fd, to, n), ARGUMENT(fd),
       ARGUMENT(to), n)
MARKED(ssize_t, write, SYS_write, (int fd, const void* from, size_t n), (fd, from, n), ARGUMENT(fd),
       ARGUMENT(from), n)
MARKED(ssize_t, pread, SYS_pread64, (int fd, void* to, size_t n, off_t at), (fd, to, n, at),
       ARGUMENT(fd), ARGUMENT(to), n, ARGUMENT(at))
MARKED(ssize_t, pread64, SYS_pread64, (int fd, void* to, size_t n, off64_t at), (fd, to, n, at),
       ARGUMENT(fd), ARGUMENT(to), n, ARGUMENT(at))
MARKED(ssize_t, pwrite, SYS_pwrite64, (int fd, const void* from, size_t n, off_t at),
       (fd, from, n, at), ARGUMENT(fd), ARGUMENT(from), n, ARGUMENT(at))
MARKED(ssize_t, pwrite64, SYS_pwrite64, (int fd, const void* from, size_t n, off64_t at),
       (fd, from, n, at), ARGUMENT(fd), ARGUMENT(from), n, ARGUMENT(at))
MARKED(ssize_t, readv, SYS_readv, (int fd, const struct iovec* v, int n), (fd, v, n), ARGUMENT(fd),
       ARGUMENT(v), ARGUMENT(n))
MARKED(ssize_t, writev, SYS_writev, (int fd, const struct iovec* v, int n), (fd, v, n),
       ARGUMENT(fd), ARGUMENT(v), ARGUMENT(n))
MARKED(ssize_t, sendfile, SYS_sendfile, (int to, int from, off_t* at, size_t n), (to, from, at, n),
       ARGUMENT(to), ARGUMENT(from), ARGUMENT(at), n)
MARKED(ssize_t, splice, SYS_splice,
       (int from, off64_t* at, int to, off64_t* to_at, size_t n, unsigned flags),
       (from, at, to, to_at, n, flags), ARGUMENT(from), ARGUMENT(at), ARGUMENT(to), ARGUMENT(to_at),
       n, flags)
MARKED(ssize_t, recv, SYS_recvfrom, (int fd, void* to, size_t n, int flags), (fd, to, n, flags),
       ARGUMENT(fd), ARGUMENT(to), n, ARGUMENT(flags))
MARKED(ssize_t, recvfrom, SYS_recvfrom,
       (int fd, void* to, size_t n, int flags, struct sockaddr* from, socklen_t* size),
       (fd, to, n, flags, from, size), ARGUMENT(fd), ARGUMENT(to), n, ARGUMENT(flags),
       ARGUMENT(from), ARGUMENT(size))
MARKED(ssize_t, recvmsg, SYS_recvmsg, (int fd, struct msghdr* m, int flags), (fd, m, flags),
       ARGUMENT(fd), ARGUMENT(m), ARGUMENT(flags))
MARKED(ssize_t, send, SYS_sendto, (int fd, const void* from, size_t n, int flags),
       (fd, from, n, flags), ARGUMENT(fd), ARGUMENT(from), n, ARGUMENT(flags))
MARKED(ssize_t, sendto, SYS_sendto,
       (int fd, const void* from, size_t n, int flags, const struct sockaddr* to, socklen_t size),
       (fd, from, n, flags, to, size), ARGUMENT(fd), ARGUMENT(from), n, ARGUMENT(flags),
       ARGUMENT(to), size)
MARKED(ssize_t, sendmsg, SYS_sendmsg, (int fd, const struct msghdr* m, int flags), (fd, m, flags),
       ARGUMENT(fd), ARGUMENT(m), ARGUMENT(flags))
MARKED(int, accept, SYS_accept, (int fd, struct sockaddr* a, socklen_t* size), (fd, a, size),
       ARGUMENT(fd), ARGUMENT(a), ARGUMENT(size))
MARKED(int, accept4, SYS_accept4, (int fd, struct sockaddr* a, socklen_t* size, int flags),
       (fd, a, size, flags), ARGUMENT(fd), ARGUMENT(a), ARGUMENT(size), ARGUMENT(flags))
MARKED(int, connect, SYS_connect, (int fd, const struct sockaddr* a, socklen_t size), (fd, a, size),
       ARGUMENT(fd), ARGUMENT(a), size)
MARKED(int, poll, SYS_poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms), ARGUMENT(fds), n,
       ARGUMENT(ms))
MARKED(int, select, SYS_select, (int n, fd_set* r, fd_set* w, fd_set* e, struct timeval* t),
       (n, r, w, e, t), ARGUMENT(n), ARGUMENT(r), ARGUMENT(w), ARGUMENT(e), ARGUMENT(t))
MARKED(int, epoll_wait, SYS_epoll_wait, (int fd, struct epoll_event* to, int n, int ms),
       (fd, to, n, ms), ARGUMENT(fd), ARGUMENT(to), ARGUMENT(n), ARGUMENT(ms))
MARKED(int, fsync, SYS_fsync, (int fd), (fd), ARGUMENT(fd))
MARKED(int, fdatasync, SYS_fdatasync, (int fd), (fd), ARGUMENT(fd))
MARKED(int, ftruncate, SYS_ftruncate, (int fd, off_t n), (fd, n), ARGUMENT(fd), ARGUMENT(n))
MARKED(int, flock, SYS_flock, (int fd, int what), (fd, what), ARGUMENT(fd), ARGUMENT(what))
MARKED(int, close, SYS_close, (int fd), (fd), ARGUMENT(fd))
MARKED(int, stat, SYS_newfstatat, (const char* path, struct stat* to), (path, to), ARGUMENT(path),
       ARGUMENT(to))
MARKED(int, lstat, SYS_newfstatat, (const char* path, struct stat* to), (path, to), ARGUMENT(path),
       ARGUMENT(to))
MARKED(int, fstat, SYS_newfstatat, (int fd, struct stat* to), (fd, to), ARGUMENT(fd), ARGUMENT(to))
MARKED(int, rename, SYS_rename, (const char* from, const char* to), (from, to), ARGUMENT(from),
       ARGUMENT(to))
MARKED(int, unlink, SYS_unlink, (const char* path), (path), ARGUMENT(path))
MARKED(int, mkdir, SYS_mkdir, (const char* path, mode_t mode), (path, mode), ARGUMENT(path), mode)
MARKED(int, nanosleep, SYS_nanosleep, (const struct timespec* t, struct timespec* left), (t, left),
       ARGUMENT(t), ARGUMENT(left))

// What programs call that are built with _FORTIFY_SOURCE, as distributions build theirs: the C
// library compares with the room there is, and ends the program where that is too little.
MARKED_AS(read, ssize_t, __read_chk, SYS_read, (int fd, void* to, size_t n, size_t room),
          (fd, to, n, room), ARGUMENT(fd), ARGUMENT(to), n)
MARKED_AS(pread, ssize_t, __pread_chk, SYS_pread64,
          (int fd, void* to, size_t n, off_t at, size_t room), (fd, to, n, at, room), ARGUMENT(fd),
          ARGUMENT(to), n, ARGUMENT(at))
MARKED_AS(pread64, ssize_t, __pread64_chk, SYS_pread64,
          (int fd, void* to, size_t n, off64_t at, size_t room), (fd, to, n, at, room),
          ARGUMENT(fd), ARGUMENT(to), n, ARGUMENT(at))
MARKED_AS(recv, ssize_t, __recv_chk, SYS_recvfrom,
          (int fd, void* to, size_t n, size_t room, int flags), (fd, to, n, room, flags),
          ARGUMENT(fd), ARGUMENT(to), n, ARGUMENT(flags))
MARKED_AS(recvfrom, ssize_t, __recvfrom_chk, SYS_recvfrom,
          (int fd, void* to, size_t n, size_t room, int flags, struct sockaddr* from,
           socklen_t* size),
          (fd, to, n, room, flags, from, size), ARGUMENT(fd), ARGUMENT(to), n, ARGUMENT(flags),
          ARGUMENT(from), ARGUMENT(size))
MARKED_AS(poll, int, __poll_chk, SYS_poll, (struct pollfd * fds, nfds_t n, int ms, size_t room),
          (fds, n, ms, room), ARGUMENT(fds), n, ARGUMENT(ms))
MARKED_AS(open, int, __open_2, SYS_open, (const char* path, int flags), (path, flags),
          ARGUMENT(path), ARGUMENT(flags))
MARKED_AS(open64, int, __open64_2, SYS_open, (const char* path, int flags), (path, flags),
          ARGUMENT(path), ARGUMENT(flags))
MARKED_AS(openat, int, __openat_2, SYS_openat, (int at, const char* path, int flags),
          (at, path, flags), ARGUMENT(at), ARGUMENT(path), ARGUMENT(flags))
MARKED_AS(openat64, int, __openat64_2, SYS_openat, (int at, const char* path, int flags),
          (at, path, flags), ARGUMENT(at), ARGUMENT(path), ARGUMENT(flags))

// The mode is there only where a file may be made.
#define OPENS(name, number, parameters, arguments, ...)                               \
  PUBLIC int name parameters {                                                        \
    static int(*real) parameters;                                                     \
    if (!real) real = (int(*) parameters)next_of(#name);                              \
    mode_t mode = 0;                                                                  \
    if (flags & (O_CREAT | __O_TMPFILE)) {                                            \
      va_list rest;                                                                   \
      va_start(rest, flags);                                                          \
      mode = va_arg(rest, mode_t);                                                    \
      va_end(rest);                                                                   \
    }                                                                                 \
    if (!begin_call(number, (const uint64_t[6]){__VA_ARGS__, ARGUMENT(flags), mode})) \
      return real arguments;                                                          \
    const int result = real arguments;                                                \
    end_call(#name, result);                                                          \
    return result;                                                                    \
  }

OPENS(open, SYS_open, (const char* path, int flags, ...), (path, flags, mode), ARGUMENT(path))
OPENS(open64, SYS_open, (const char* path, int flags, ...), (path, flags, mode), ARGUMENT(path))
OPENS(openat, SYS_openat, (int at, const char* path, int flags, ...), (at, path, flags, mode),
      ARGUMENT(at), ARGUMENT(path))
OPENS(openat64, SYS_openat, (int at, const char* path, int flags, ...), (at, path, flags, mode),
      ARGUMENT(at), ARGUMENT(path))
