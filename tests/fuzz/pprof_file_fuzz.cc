// SPDX-License-Identifier: Apache-2.0
// pprof files of other programs. Whatever is in one, what comes of it is a profile that can be
// written and whose ledger sums, or one sentence.
#include <cstdlib>

#include "fuzz.h"
#include "import/pprof_file.h"
#include "model/gzip.h"
#include "model/pprof/pprof.h"
#include "random_profile.h"
#include "report/ledger.h"
#include "report_fixture.h"

namespace {

using namespace pkprof;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto profile = read_foreign_pprof(std::as_bytes(std::span(data, size)));
  if (!profile) {
    require(!profile.error().message.empty());
    return 0;
  }
  uint64_t sum = 0;
  for (const auto& sample : profile->samples()) sum += sample.value.ns;
  require(sum == profile->cpu_ns());
  require(build_ledger(*profile).sum_ns() == profile->cpu_ns());
  const auto bytes = encode_pprof(*profile);
  require(bytes.has_value());
  const auto again = decode_pprof(std::as_bytes(std::span(*bytes)));
  require(again && again->samples().size() == profile->samples().size());
  return 0;
}

// Ours, with a comment that is none of ours.
std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Profile profile = seed ? test::random_profile(seed, 4 * seed) : test::small_machine();
    std::string bytes = gunzip(encode_pprof(profile).value(), size_t{1} << 26).value();
    const std::string ours = "pkprof.meta";
    for (size_t at = bytes.find(ours); at != std::string::npos; at = bytes.find(ours, at))
      bytes[at] = 'x';
    seeds.push_back(std::move(bytes));
  }
  return seeds;
}
