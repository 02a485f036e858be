// SPDX-License-Identifier: Apache-2.0
#include "model/gmon.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "model/file.h"

namespace pkprof {

namespace {

constexpr std::string_view magic = "gmon";
constexpr uint32_t version = 1;
constexpr size_t unused_bytes = 12;
constexpr size_t dimension_bytes = 15;
constexpr size_t max_file = size_t{256} << 20;

enum Tag : uint8_t { histogram_tag = 0, arc_tag = 1, blocks_tag = 2 };

class Writer {
 public:
  template <typename T>
  void put(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof value);
  }
  void put(std::string_view text, size_t width) {
    out_ += text.substr(0, width);
    out_.append(width - std::min(width, text.size()), '\0');
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// Takes what is there and remembers if something was not.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, size_t address_bytes)
      : left_(bytes), address_bytes_(address_bytes) {}

  [[nodiscard]] bool at_end() const { return left_.empty(); }
  [[nodiscard]] bool short_of() const { return short_; }

  template <typename T>
  T take() {
    T value = 0;
    if (const auto from = take_bytes(sizeof value); !from.empty())
      std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  uint64_t address() { return address_bytes_ == 4 ? take<uint32_t>() : take<uint64_t>(); }
  std::span<const std::byte> take_bytes(uint64_t wanted) {
    if (wanted > left_.size()) {
      short_ = true;
      left_ = {};
      return {};
    }
    const auto taken = left_.first(wanted);
    left_ = left_.subspan(wanted);
    return taken;
  }
  [[nodiscard]] size_t address_bytes() const { return address_bytes_; }

 private:
  std::span<const std::byte> left_;
  size_t address_bytes_;
  bool short_ = false;
};

std::string text_of(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return std::string(text.substr(0, text.find('\0')));
}

Result<GmonHistogram> take_histogram(Reader& in) {
  GmonHistogram h;
  h.low = in.address();
  h.high = in.address();
  const auto bins = in.take<uint32_t>();
  h.rate = in.take<uint32_t>();
  h.dimension = text_of(in.take_bytes(dimension_bytes));
  h.abbreviation = static_cast<char>(in.take<uint8_t>());
  const auto counts = in.take_bytes(uint64_t{bins} * sizeof(uint16_t));
  if (in.short_of()) return fail("a histogram is cut off");
  if (h.low > h.high || (bins != 0 && h.high - h.low < bins))
    return fail("a histogram has more counters than addresses");
  if (h.rate == 0) return fail("a histogram has a clock that does not tick");
  h.counts.resize(bins);
  if (bins != 0) std::memcpy(h.counts.data(), counts.data(), counts.size());
  return h;
}

Result<Gmon> take_records(Reader in) {
  Gmon gmon;
  while (!in.at_end()) {
    const auto tag = in.take<uint8_t>();
    if (tag == histogram_tag) {
      auto histogram = take_histogram(in);
      if (!histogram) return std::unexpected(histogram.error());
      gmon.histograms.push_back(std::move(*histogram));
    } else if (tag == arc_tag) {
      GmonArc arc{.from = in.address(), .to = in.address()};
      arc.count = in.take<uint32_t>();
      gmon.arcs.push_back(arc);
    } else if (tag == blocks_tag) {
      const uint64_t blocks = in.take<uint32_t>();
      in.take_bytes(blocks * 2 * in.address_bytes());
      gmon.blocks += blocks;
    } else {
      return fail("a record of an unknown kind: " + std::to_string(tag));
    }
    if (in.short_of()) return fail("the last record is cut off");
  }
  return gmon;
}

}  // namespace

std::string encode_gmon(const Gmon& gmon) {
  Writer out;
  out.put(magic, magic.size());
  out.put(version);
  out.put("", unused_bytes);
  for (const GmonHistogram& h : gmon.histograms) {
    out.put(uint8_t{histogram_tag});
    out.put(h.low);
    out.put(h.high);
    out.put(static_cast<uint32_t>(h.counts.size()));
    out.put(h.rate);
    out.put(h.dimension, dimension_bytes);
    out.put(h.abbreviation);
    for (const uint16_t count : h.counts) out.put(count);
  }
  for (const GmonArc& arc : gmon.arcs) {
    out.put(uint8_t{arc_tag});
    out.put(arc.from);
    out.put(arc.to);
    out.put(arc.count);
  }
  return out.take();
}

Result<Gmon> decode_gmon(std::span<const std::byte> bytes) {
  Reader head(bytes, sizeof(uint64_t));
  const std::string found = text_of(head.take_bytes(magic.size()));
  if (found != magic) return fail("not a gmon.out file of GNU's format");
  const auto number = head.take<uint32_t>();
  head.take_bytes(unused_bytes);
  if (head.short_of()) return fail("gmon.out: cut off");
  if (number == std::byteswap(version)) return fail("gmon.out: of a machine of another byte order");
  if (number != version) return fail("gmon.out: of version " + std::to_string(number) + ", not 1");

  const auto records = bytes.subspan(magic.size() + sizeof version + unused_bytes);
  Result<Gmon> wide = take_records(Reader(records, sizeof(uint64_t)));
  if (wide) return wide;
  Result<Gmon> narrow = take_records(Reader(records, sizeof(uint32_t)));
  if (narrow) return narrow;
  return std::unexpected(wide.error().in("gmon.out"));
}

Result<Gmon> read_gmon(const std::string& path) {
  const Result<std::string> bytes = read_file(path, max_file);
  if (!bytes) return std::unexpected(bytes.error());
  Result<Gmon> gmon = decode_gmon(std::as_bytes(std::span(*bytes)));
  if (!gmon) return std::unexpected(gmon.error().in("reading " + path));
  return gmon;
}

}  // namespace pkprof
