// SPDX-License-Identifier: Apache-2.0
// Reads from /dev/zero, as often and as much as it is told: built as distributions build programs,
// it calls the C library's checked functions.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  char data[4096];
  if (argc < 3) return 2;
  const size_t n = strtoul(argv[2], NULL, 10);
  const int zero = open("/dev/zero", O_RDONLY);
  if (zero < 0) return 1;
  for (long left = atol(argv[1]); left > 0; --left)
    if (read(zero, data, n) != (ssize_t)n) return 1;
  return 0;
}
