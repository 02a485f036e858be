// SPDX-License-Identifier: Apache-2.0
// The same system call all the time, from a stub of its own whose one instruction that enters the
// kernel has a name: the Minix paper's t_syscall.
#include <sys/syscall.h>

#include <cstdlib>

// The loop's own code is a part of the time that nobody has to know.
asm(R"(
  .text
  .globl stub
  .type stub, @function
stub:
  mov %rdi, %rax
  .globl stub_enters
stub_enters:
  syscall
  .globl stub_returns
stub_returns:
  ret
  .size stub, .-stub
)");
extern "C" long stub(long number);

int main(int argc, char** argv) {
  for (long left = argc > 1 ? std::atol(argv[1]) : 1'000'000; left > 0; --left) stub(SYS_getppid);
  return 0;
}
