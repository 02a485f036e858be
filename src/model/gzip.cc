// SPDX-License-Identifier: Apache-2.0
// See gzip.h. The output grows by doubling up to the limit, so memory follows what really came
// out of the stream and never what its trailer says.
#include "model/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

namespace pkprof {

namespace {

constexpr int gzip_window = 15 + 16;  // zlib: largest window, gzip wrapper
constexpr int level = 4;              // of a large profile: half the time of 6, 5 % larger

Bytef* bytes_of(std::string_view text) {
  // zlib does not write through next_in; the C interface just does not say const.
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

std::unexpected<Error> too_large(size_t limit) {
  return fail("it inflates to more than " + std::to_string(limit >> 20) +
              " MiB, which no real profile of its size does");
}

}  // namespace

Result<std::string> gzip(std::string_view plain) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return fail("compressing the profile: out of memory");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, deflateEnd);
  if (plain.size() > UINT32_MAX) return fail("compressing the profile: larger than 4 GiB");

  std::string out(deflateBound(&stream, plain.size()), '\0');
  stream.next_in = bytes_of(plain);
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) return fail("compressing the profile failed");
  out.resize(stream.total_out);
  return out;
}

bool is_gzip(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b");
}

Result<std::string> gunzip(std::string_view packed, size_t limit) {
  if (packed.size() > UINT32_MAX) return fail("larger than 4 GiB");
  z_stream stream{};
  if (inflateInit2(&stream, gzip_window) != Z_OK) return fail("out of memory");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  stream.next_in = bytes_of(packed);
  stream.avail_in = static_cast<uInt>(packed.size());

  std::string out;
  size_t filled = 0;
  for (;;) {
    if (filled == out.size()) {
      if (filled > limit) return too_large(limit);
      out.resize(std::min(limit + 1, std::max<size_t>(2 * out.size(), 8 * packed.size() + 64)));
    }
    const auto room = static_cast<uInt>(std::min<size_t>(out.size() - filled, UINT32_MAX));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    stream.avail_out = room;
    const int status = inflate(&stream, Z_NO_FLUSH);
    filled += room - stream.avail_out;
    if (status == Z_STREAM_END) {
      const std::string_view rest = packed.substr(packed.size() - stream.avail_in);
      if (rest.empty()) break;
      if (!is_gzip(rest)) return fail("data after the end of the gzip stream");
      if (inflateReset(&stream) != Z_OK) return fail("corrupt gzip data");
      continue;
    }
    if (status == Z_MEM_ERROR) return fail("out of memory");
    if (status == Z_BUF_ERROR || (status == Z_OK && stream.avail_in == 0 && stream.avail_out > 0))
      return fail("truncated gzip data");
    if (status != Z_OK) return fail("corrupt gzip data");
  }
  if (filled > limit) return too_large(limit);
  out.resize(filled);
  return out;
}

}  // namespace pkprof
