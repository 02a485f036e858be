// SPDX-License-Identifier: Apache-2.0
// Loads one of two plug-ins, works in it and unloads it, in turns, many times a second: for so many
// milliseconds of CPU time. Prints what each took, in nanoseconds, and how many turns met it in
// another place than the first of all.
#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cpu_clock.h"

int main(int argc, char** argv) {
  const uint64_t ns = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000) * 1'000'000;
  const std::string self = argv[0];
  const std::string dir = self.substr(0, self.rfind('/') + 1);
  const clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
  std::array<uint64_t, 2> took{};
  void* first = nullptr;
  int moved = 0;
  const uint64_t end = cpu_ns(clock) + ns;
  for (size_t turn = 0; cpu_ns(clock) < end; ++turn) {
    const std::string name = turn % 2 ? "two" : "one";
    void* plugin = dlopen((dir + "pk_plugin_" + name + ".so").c_str(), RTLD_NOW);
    void* function = plugin ? dlsym(plugin, ("in_plugin_" + name).c_str()) : nullptr;
    if (!function) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    if (!first) first = function;
    moved += function != first;
    const uint64_t begin = cpu_ns(clock);
    reinterpret_cast<void (*)(uint64_t)>(function)(2'000'000);
    took[turn % 2] += cpu_ns(clock) - begin;
    dlclose(plugin);
  }
  std::printf("%llu %llu %d\n", static_cast<unsigned long long>(took[0]),
              static_cast<unsigned long long>(took[1]), moved);
  return 0;
}
