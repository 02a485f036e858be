// SPDX-License-Identifier: Apache-2.0
// What `perf script` may have printed. Whatever the text is, what comes of it is a profile that can
// be written and whose ledger sums, or one sentence.
#include <cstdlib>
#include <sstream>

#include "fuzz.h"
#include "import/perf_script.h"
#include "model/pprof/pprof.h"
#include "report/ledger.h"

namespace {

using namespace pkprof;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const auto profile = read_perf_script(in);
  if (!profile) {
    require(!profile.error().message.empty());
    return 0;
  }
  uint64_t sum = 0;
  for (const auto& sample : profile->samples()) sum += sample.value.ns;
  require(sum <= profile->cpu_ns());
  require(build_ledger(*profile).cpu_ns == profile->cpu_ns());
  const auto bytes = encode_pprof(*profile);
  require(bytes.has_value());
  const auto again = decode_pprof(std::as_bytes(std::span(*bytes)));
  require(again && again->samples().size() == profile->samples().size());
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "# os release : 6.1.0\n# nrcpus online : 2\n#\n"
      "nginx  812/813  [001]  4711.123456:   10101010 cpu-clock:pppH: \n"
      "\tffffffff81a2b3c4 tcp_recvmsg+0x64 ([kernel.kallsyms])\n"
      "\tffffffff81000000 __x64_sys_recvfrom+0x20 ([kernel.kallsyms])\n"
      "\t    7f1e2d3c4b5a recv+0x1a (/usr/lib/libc.so.6)\n\n"
      "swapper     0 [000]  4711.223456:   10101010 cpu-clock: \n"
      "\tffffffff81a2b3c4 net_rx_action+0x64 ([kernel.kallsyms])\n"
      "\tffffffff81a2b3c4 handle_softirqs+0x64 ([kernel.kallsyms])\n"
      "\tffffffff81a2b3c4 asm_common_interrupt+0x64 ([kernel.kallsyms])\n\n",
      "a b: 1.5: 77 [000] 12.000001: 250000 cycles:P: \n\t 55d0 operator()(int) const+0x5 "
      "(/bin/a)\n\n"
      "a b: 1.5: 77 [000] 12.000251: 250000 cycles:P: \n\t 55d0 [unknown] ([unknown])\n\n",
      // Without call graphs; without this and that.
      "hot  5279  6757.490623:    1003009 cpu-clock:      56379fced1d0 f+0x20 (/usr/bin/hot)\n"
      "foobar [worker] 21332 cycles:\n\nhot 5279      56379fced1d0 f+0x20 (/usr/bin/hot)\n"
      "hot 5279 [001] 7\n\t56379fced1d0 f (/usr/bin/hot (deleted))\n\n",
      ":-1 -1/-1 [000] d.h1. 1795775000.5: 1 sched:sched_switch: prev_comm=a\n"
      "\t55 operator()(int) (.constprop.0) (/lib/a.so (deleted))\n  a.c:12\n"
      "\t66 net_rx_action+0x1 (/boot/vmlinux-6)\n\t77 f ([guest.kernel.kallsyms])\n\n",
  };
}
