// SPDX-License-Identifier: Apache-2.0
#include "import/import.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <span>
#include <streambuf>
#include <string_view>
#include <utility>

#include "import/perf_script.h"
#include "import/pprof_file.h"
#include "model/gzip.h"
#include "model/pprof/format.h"
#include "model/pprof/pprof.h"

namespace pkprof {
namespace {

constexpr size_t bytes_looked_at = 64;

// A file whose beginning was looked at. A pipe cannot be read again, so that what was read of it
// comes once more from here, and then the rest.
class LookedAt : public std::streambuf {
 public:
  explicit LookedAt(std::streambuf& file) : file_(file) { read(bytes_looked_at); }
  [[nodiscard]] std::string_view begin() const { return {eback(), egptr()}; }

 protected:
  int_type underflow() override {
    read(buffer_.size());
    return gptr() == egptr() ? traits_type::eof() : traits_type::to_int_type(*gptr());
  }

 private:
  void read(size_t most) {
    const auto got = file_.sgetn(buffer_.data(), static_cast<std::streamsize>(most));
    setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
  }

  std::streambuf& file_;
  std::array<char, 1 << 16> buffer_{};
};

Result<Profile> import_pprof(std::istream& in) {
  std::string bytes;
  char part[1 << 16];
  while (in.read(part, sizeof(part)) || in.gcount()) {
    bytes.append(part, static_cast<size_t>(in.gcount()));
    if (bytes.size() > pprof::max_file_bytes) return fail("it is larger than 1 GiB");
  }
  return read_foreign_pprof(std::as_bytes(std::span(bytes)));
}

// A CPU profile of gperftools begins with the words 0, 3, 0, the period in microseconds, 0, of that
// machine's size.
template <typename Word>
bool is_of_gperftools(std::string_view begin) {
  std::array<Word, 5> words{};
  if (begin.size() < sizeof(words)) return false;
  begin.copy(reinterpret_cast<char*>(words.data()), sizeof(words));
  const Word period = std::exchange(words[3], 0);
  return period > 0 && words == std::array<Word, 5>{0, 3, 0, 0, 0};
}

// A report reads what is made of it: nothing of the file was out of range, whichever kind it is of.
Result<Profile> checked(const Profile& profile) {
  const auto bytes = encode_pprof(profile);
  if (!bytes) return std::unexpected(bytes.error());
  return decode_pprof(std::as_bytes(std::span(*bytes)));
}

Result<Profile> import_from(std::streambuf& file, const std::string& name,
                            const std::string& event) {
  LookedAt looked_at(file);
  const std::string_view begin = looked_at.begin();
  if (begin.starts_with("PERFILE2"))
    return fail(name + " is perf's own file: perf script -i " + name + " | pkprof import");
  if (is_of_gperftools<uint64_t>(begin) || is_of_gperftools<uint32_t>(begin))
    return fail(name +
                " is a CPU profile of gperftools, which pprof converts: pprof -proto -output "
                "profile.pb.gz PROGRAM " +
                name + " && pkprof import profile.pb.gz");
  // Text has no such bytes.
  const bool binary = std::ranges::any_of(begin, [](char c) { return c >= 0 && c < '\t'; });
  const bool pprof = binary || is_gzip(begin);
  if (pprof && !event.empty()) return fail(name + " is a pprof file, in which no event has a name");
  std::istream in(&looked_at);
  auto profile = pprof ? import_pprof(in) : read_perf_script(in, event);
  if (profile) profile = checked(*profile);
  if (!profile) return std::unexpected(profile.error().in(name));
  return profile;
}

}  // namespace

Result<Profile> import_file(const std::string& path, const std::string& event) {
  if (path == "-") return import_from(*std::cin.rdbuf(), "standard input", event);
  std::filebuf file;
  if (!file.open(path, std::ios::in | std::ios::binary)) return fail_errno("opening " + path);
  return import_from(file, path, event);
}

}  // namespace pkprof
