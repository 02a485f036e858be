// SPDX-License-Identifier: Apache-2.0
// How the time to read a file grows with pkprof's comment in it. Two kinds: labels of an honest
// recording, and small objects that mean nothing. A few hundred bytes of gzip hold 100,000 of
// those. Nanoseconds that grow from row to row are a hole.
//
//   comment_bench [OBJECTS]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>

#include "model/gzip.h"
#include "model/pprof/pprof.h"

namespace {

using namespace pkprof;
using Clock = std::chrono::steady_clock;

constexpr int rows = 5;

// The fields of profile.proto that have the table of strings, and the comment's place in it.
std::string file_with_comment(const std::string& comment) {
  std::string message;
  protozero::pbf_writer out(message);
  out.add_string(6, "");
  out.add_string(6, comment);
  out.add_int64(13, 1);
  return gzip(message).value();
}

std::string small_objects(size_t count) {
  std::string comment =
      R"({"schema":"pkprof.meta/1","labels":[{"kind":"kernel","name":"a"}],"x":[{})";
  for (size_t i = 1; i < count; ++i) comment += ",{}";
  return file_with_comment(comment + "]}");
}

std::string processes(size_t count) {
  Profile profile;
  for (size_t i = 0; i < count; ++i)
    profile.label({.kind = LabelKind::process,
                   .pid = static_cast<uint32_t>(i + 1),
                   .start_ns = i,
                   .comm = "process-" + std::to_string(i),
                   .exe = "/usr/bin/program",
                   .cgroup = "/system.slice"});
  return encode_pprof(profile).value();
}

bool measure(const char* name, size_t count, const std::string& file) {
  const auto start = Clock::now();
  const Result<Profile> profile = decode_pprof(std::as_bytes(std::span(file)));
  const std::chrono::duration<double, std::nano> took = Clock::now() - start;
  if (!profile) {
    std::fprintf(stderr, "comment_bench: %s\n", profile.error().message.c_str());
    return false;
  }
  std::printf("%-14s %9zu %9zu bytes %8.1f ms %8.0f ns each\n", name, count, file.size(),
              took.count() / 1e6, took.count() / static_cast<double>(count));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  size_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 12'500;
  for (int row = 0; row < rows; ++row, count *= 2)
    if (!measure("small objects", count, small_objects(count)) ||
        !measure("processes", count, processes(count)))
      return 125;
}
