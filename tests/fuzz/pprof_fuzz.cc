// SPDX-License-Identifier: Apache-2.0
// Profile files. Whatever is decoded must be sound: every report of it can be made, its ledger
// sums, and writing and reading it again gives the same.
#include <cstdlib>

#include "fuzz.h"
#include "model/gzip.h"
#include "model/pprof/pprof.h"
#include "random_profile.h"
#include "report/histogram/histogram_json.h"
#include "report/histogram/histogram_text.h"
#include "report/ledger.h"
#include "report/ledger/ledger_text.h"
#include "report/listing/flat_text.h"
#include "report/report_json.h"
#include "report/tree/tree_text.h"
#include "report_fixture.h"

namespace {

using namespace pkprof;

void require(bool condition) {
  if (!condition) std::abort();
}

void check(const Profile& profile) {
  const Ledger ledger = build_ledger(profile);
  require(ledger.sum_ns() == std::max(ledger.cpu_ns, ledger.sampled_ns));
  require(!ledger_text(profile).empty());
  require(!flat_text(profile, {.unicode = false}).empty());
  require(!tree_text(profile).empty());
  require(!report_json(profile, {.pids = {1}}).empty());

  for (const By by : {By::thread, By::comm, By::container, By::unit}) {
    require(build_ledger(profile, {}, by).sum_ns() == ledger.sum_ns());
    require(!ledger_text(profile, {.by = by}).empty());
    require(!report_json(profile, {.by = by}).empty());
  }

  for (const size_t rows : {0U, 1U, 20U}) {
    const auto histogram = histogram_of(profile, {.rows = rows});
    if (!histogram) continue;
    HistogramValue sum = histogram->here;
    for (const HistogramElsewhere& e : histogram->elsewhere) sum += e.value;
    require(sum.ns == histogram->all.ns && sum.samples == histogram->all.samples);
    require(!histogram_text(profile, *histogram).empty());
    require(!histogram_json(profile, *histogram).empty());
  }

  const Result<std::string> bytes = encode_pprof(profile);
  require(bytes.has_value());
  const Result<Profile> again = decode_pprof(std::as_bytes(std::span(*bytes)));
  require(again.has_value());
  require(again->meta == profile.meta);
  require(test::described(*again) == test::described(profile));
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Result<Profile> profile = decode_pprof(std::as_bytes(std::span(data, size)));
  if (profile) {
    check(*profile);
  } else {
    require(!profile.error().message.empty());
    require(profile.error().message.find('\n') == std::string::npos);
  }
  return 0;
}

// Not compressed, so that mutations reach the message and not only the checksum.
std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  std::vector<Profile> profiles = {Profile(), test::small_machine(), test::grouped_machine()};
  for (uint64_t seed = 1; seed < 6; ++seed)
    profiles.push_back(test::random_profile(seed, 3 * seed));
  seeds.reserve(profiles.size() + 1);
  for (const Profile& profile : profiles)
    seeds.push_back(gunzip(encode_pprof(profile).value(), size_t{1} << 26).value());
  seeds.push_back(encode_pprof(test::small_machine()).value());
  return seeds;
}
