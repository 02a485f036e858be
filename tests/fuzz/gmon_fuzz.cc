// SPDX-License-Identifier: Apache-2.0
// gmon.out files. Whatever is decoded is no larger than its file, and writing and reading it again
// gives the same.
#include <cstdlib>
#include <optional>
#include <span>

#include "fuzz.h"
#include "model/gmon.h"
#include "model/gmon_about.h"
#include "report/listing/flat_text.h"
#include "report/listing/gmon_listing.h"
#include "report/listing/graph_text.h"

namespace {

using namespace pkprof;

void require(bool condition) {
  if (!condition) std::abort();
}

void require_sentence(const Error& error) {
  require(!error.message.empty());
  require(error.message.find('\n') == std::string::npos);
}

Gmon seed_of(uint64_t low, uint16_t count) {
  return {.histograms = {{.low = low, .high = low + 64, .rate = 100, .counts = {count, 0, 9}}},
          .arcs = {{low, low + 8, 3}, {0, low, count}}};
}

GmonAbout about_seed() {
  return {.kernel = "6.18",
          .host = "example",
          .cpus = 2,
          .duration_ns = 1'000'000'000,
          .parts = {{.pid = 137, .comm = "cat", .exe = "/bin/cat"}, {.kind = LabelKind::kernel}},
          .files = {"kernel", "libc.so.6"},
          .functions = {{.file = 0, .kind = FrameKind::kernel, .counted = true}, {.root = true}}};
}

// Whatever it holds can be listed, or is refused.
void list(const Gmon& gmon, const std::optional<GmonAbout>& about) {
  GmonSource source{.path = "x", .gmon = gmon, .functions = {}, .about = about};
  for (uint64_t i = 0; i < 6; ++i)
    source.functions.push_back({0x1000 + 16 * i, 0x1010 + 16 * i, "137k:f" + std::to_string(i)});
  source.functions.push_back({0x400000, UINT64_MAX, "rest"});
  const Result<ListingData> data = gmon_listing({&source, 1});
  if (!data) return require_sentence(data.error());
  uint64_t ns = 0;
  for (const CallNode& node : data->graph.nodes) ns += node.self_ns;
  require(ns == data->busy.busy_ns);
  const Listing listing(*data, false);
  require(!flat_text_of(listing, {}).empty());
  require(!graph_text_of(listing, {.threshold = 0}).empty());
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Result<Gmon> gmon = decode_gmon(std::as_bytes(std::span(data, size)));
  if (gmon) {
    size_t counts = 0;
    for (const GmonHistogram& histogram : gmon->histograms) counts += histogram.counts.size();
    require(2 * counts + 13 * gmon->arcs.size() + 8 * gmon->blocks <= size);
    const std::string bytes = encode_gmon(*gmon);
    Result<Gmon> again = decode_gmon(std::as_bytes(std::span(bytes)));
    require(again.has_value());
    again->blocks = gmon->blocks;
    require(*again == *gmon);
    list(*gmon, {});
    list(*gmon, about_seed());
  } else {
    require_sentence(gmon.error());
  }

  const Result<GmonAbout> about = decode_gmon_about({reinterpret_cast<const char*>(data), size});
  if (about) {
    const Result<GmonAbout> again = decode_gmon_about(encode_gmon_about(*about));
    require(again.has_value() && *again == *about);
  } else {
    require_sentence(about.error());
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::string with_blocks = encode_gmon(seed_of(0x1000, 1));
  with_blocks += '\2';
  with_blocks += std::string("\1\0\0\0", 4) + std::string(16, 'a');
  return {encode_gmon({}),
          encode_gmon(seed_of(0x1000, 3)),
          encode_gmon(seed_of(0x400000, 65535)),
          encode_gmon(seed_of(UINT64_MAX - 100, 7)),
          with_blocks,
          encode_gmon_about(about_seed())};
}
