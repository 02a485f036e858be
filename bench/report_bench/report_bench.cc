// SPDX-License-Identifier: Apache-2.0
// Where the time of a report goes: reading the file, and each view.
//
//   report_bench FILE
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "model/pprof/pprof.h"
#include "report/ledger/ledger_text.h"
#include "report/listing/flat_text.h"
#include "report/listing/graph_text.h"
#include "report/report_json.h"
#include "report/tree/tree_text.h"

namespace {

using namespace pkprof;
using Clock = std::chrono::steady_clock;

// The best of several, as everything else that happens only adds.
template <typename Work>
void measure(const char* name, Work work) {
  double best = 1e9;
  size_t size = 0;
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    size = work();
    const std::chrono::duration<double, std::milli> took = Clock::now() - start;
    best = std::min(best, took.count());
  }
  std::printf("%-8s %8.1f ms  %10zu bytes\n", name, best, size);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: report_bench FILE\n");
    return 2;
  }
  const char* const file = argv[1];
  Result<Profile> profile = read_profile(file);
  if (!profile) {
    std::fprintf(stderr, "report_bench: %s\n", profile.error().message.c_str());
    return 125;
  }
  measure("read", [&] {
    profile = read_profile(file);
    return profile->samples().size() * sizeof(Profile::Sample);
  });
  measure("ledger", [&] { return ledger_text(*profile).size(); });
  measure("json", [&] { return report_json(*profile).size(); });
  measure("flat", [&] { return flat_text(*profile).size(); });
  measure("graph", [&] { return graph_text(*profile).size(); });
  measure("tree", [&] { return tree_text(*profile).size(); });
  measure("encode", [&] { return encode_pprof(*profile).value().size(); });
}
