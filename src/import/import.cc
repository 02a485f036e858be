// SPDX-License-Identifier: Apache-2.0
#include "import/import.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <span>

#include "import/perf_script.h"
#include "import/pprof_file.h"
#include "model/pprof_format.h"

namespace pkprof {
namespace {

constexpr int gzip_begins = 0x1f;

Result<Profile> import_pprof(std::istream& in) {
  std::string bytes;
  char part[1 << 16];
  while (in.read(part, sizeof(part)) || in.gcount()) {
    bytes.append(part, static_cast<size_t>(in.gcount()));
    if (bytes.size() > pprof::max_file_bytes) return fail("it is larger than 1 GiB");
  }
  return read_foreign_pprof(std::as_bytes(std::span(bytes)));
}

Result<Profile> import_from(std::istream& in, bool pprof, const std::string& name,
                            const std::string& event) {
  if (pprof && !event.empty()) return fail(name + " is a pprof file, in which no event has a name");
  auto profile = pprof ? import_pprof(in) : read_perf_script(in, event);
  if (!profile) return std::unexpected(profile.error().in(name));
  return profile;
}

}  // namespace

Result<Profile> import_file(const std::string& path, const std::string& event) {
  // One byte can be looked at.
  if (path == "-")
    return import_from(std::cin, std::cin.peek() == gzip_begins, "standard input", event);
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail_errno("opening " + path);
  std::string begin(64, '\0');
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<size_t>(in.gcount()));
  if (begin.starts_with("PERFILE2"))
    return fail(path + " is perf's own file: perf script -i " + path + " | pkprof import");
  in.clear();
  in.seekg(0);
  // Text has no such bytes.
  const bool binary = std::ranges::any_of(begin, [](char c) { return c >= 0 && c < '\t'; });
  return import_from(in, binary || begin.starts_with(char{gzip_begins}), path, event);
}

}  // namespace pkprof
