// SPDX-License-Identifier: Apache-2.0
// Ways of calling, each of known functions: pk_frames SECONDS takes CPU time in one after the
// other. Built with each kind of optimization, with and without frame pointers.
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone_attribute))
#ifdef __clang__
#define noclone_attribute
#else
#define noclone_attribute noclone
#endif

static double each;
static volatile long turns;  // what is done after a call makes it no tail call

static double cpu_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

NOINLINE void spin(void) {
  const double end = cpu_now() + each;
  while (cpu_now() < end)
    for (int i = 0; i < 100000; ++i) ++turns;
}

NOINLINE void plain(void) {
  spin();
  ++turns;
}

NOINLINE void recursion(int depth) {
  if (depth)
    recursion(depth - 1);
  else
    spin();
  ++turns;
}

NOINLINE void with_alloca(size_t size) {
  char* memory = (char*)alloca(size);
  memset(memory, 1, size);
  spin();
  turns += memory[size / 2];
}

// Its frame is to be at a multiple of so many bytes.
NOINLINE void realigned(void) {
  volatile char aligned[64] __attribute__((aligned(64)));
  aligned[1] = 1;
  spin();
  turns += aligned[1];
}

NOINLINE void large_frame(void) {
  volatile char large[40000];
  large[1] = 1;
  spin();
  turns += large[1];
}

static int compared;

// Called by libc's qsort.
NOINLINE int compare(const void* a, const void* b) {
  if (!compared++) spin();
  ++turns;
  return *(const int*)a - *(const int*)b;
}

NOINLINE void sorting(void) {
  int numbers[3] = {3, 1, 2};
  compared = 0;
  qsort(numbers, 3, sizeof numbers[0], compare);
  turns += numbers[0];
}

NOINLINE void handler(int number) {
  spin();
  turns += number;
}

NOINLINE void signalled(int flags) {
  static char other_stack[65536];
  const stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaltstack(&stack, NULL);
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  ++turns;
}

static jmp_buf place;

NOINLINE void jump(void) {
  ++turns;
  longjmp(place, 1);
}

NOINLINE void after_a_jump(void) {
  if (!setjmp(place)) jump();
  spin();
  ++turns;
}

NOINLINE void* of_thread(void* unused) {
  spin();
  ++turns;
  return unused;
}

int main(int argc, char** argv) {
  each = argc > 1 ? atof(argv[1]) : 0.1;
  plain();
  recursion(5);
  with_alloca(1000 + (size_t)argc);
  realigned();
  large_frame();
  sorting();
  signalled(0);
  signalled(SA_ONSTACK);
  after_a_jump();
  pthread_t thread;
  pthread_create(&thread, NULL, of_thread, NULL);
  pthread_join(thread, NULL);
  return 0;
}
