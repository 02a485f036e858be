// SPDX-License-Identifier: Apache-2.0
// See raw.h. A known field of an unexpected wire type is skipped like an unknown one.
#include "model/pprof/raw.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "model/gzip.h"
#include "model/pprof/format.h"

namespace pkprof::pprof {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::tag_and_type;

constexpr uint64_t varint(uint32_t field) {
  return tag_and_type(field, pbf_wire_type::varint);
}
constexpr uint64_t bytes_of(uint32_t field) {
  return tag_and_type(field, pbf_wire_type::length_delimited);
}

// Sends the number of each varint field to where `member` says; null: not wanted.
template <typename Entry, typename Member>
Entry read_numbers(protozero::data_view message, Member member) {
  Entry entry;
  pbf_reader in(message);
  while (in.next()) {
    uint64_t Entry::* const to = member(in.tag());
    if (to != nullptr && in.wire_type() == pbf_wire_type::varint)
      entry.*to = in.get_uint64();
    else
      in.skip();
  }
  return entry;
}

RawValueType read_value_type(protozero::data_view message) {
  return read_numbers<RawValueType>(message, [](uint32_t tag) {
    return tag == value_type_field::type   ? &RawValueType::type
           : tag == value_type_field::unit ? &RawValueType::unit
                                           : nullptr;
  });
}

RawMapping read_mapping(protozero::data_view message) {
  return read_numbers<RawMapping>(message, [](uint32_t tag) -> uint64_t RawMapping::* {
    switch (tag) {
      case mapping_field::id:
        return &RawMapping::id;
      case mapping_field::start:
        return &RawMapping::start;
      case mapping_field::limit:
        return &RawMapping::limit;
      case mapping_field::offset:
        return &RawMapping::offset;
      case mapping_field::file:
        return &RawMapping::file;
      case mapping_field::build_id:
        return &RawMapping::build_id;
      default:
        return nullptr;
    }
  });
}

RawFunction read_function(protozero::data_view message) {
  return read_numbers<RawFunction>(message, [](uint32_t tag) {
    return tag == function_field::id     ? &RawFunction::id
           : tag == function_field::name ? &RawFunction::name
           : tag == function_field::file ? &RawFunction::file
                                         : nullptr;
  });
}

RawLabel read_label(protozero::data_view message) {
  return read_numbers<RawLabel>(message, [](uint32_t tag) {
    return tag == label_field::key   ? &RawLabel::key
           : tag == label_field::str ? &RawLabel::str
           : tag == label_field::num ? &RawLabel::num
                                     : nullptr;
  });
}

RawLocation read_location(protozero::data_view message, std::vector<RawLine>& lines) {
  RawLocation location;
  location.first_line = lines.size();
  pbf_reader in(message);
  while (in.next()) {
    switch (in.tag_and_type()) {
      case varint(location_field::id):
        location.id = in.get_uint64();
        break;
      case varint(location_field::mapping_id):
        location.mapping = in.get_uint64();
        break;
      case varint(location_field::address):
        location.address = in.get_uint64();
        break;
      case bytes_of(location_field::line):
        require(lines.size() < max_entries, "its lines are too many");
        lines.push_back(read_numbers<RawLine>(in.get_view(), [](uint32_t tag) {
          return tag == line_field::function_id ? &RawLine::function
                 : tag == line_field::line      ? &RawLine::line
                                                : nullptr;
        }));
        ++location.line_count;
        break;
      default:
        in.skip();
    }
  }
  return location;
}

// A repeated number is packed or not, as the writer likes.
void read_repeated(pbf_reader& in, std::vector<uint64_t>& to, size_t limit) {
  constexpr const char* too_long = "a stack is too deep";
  if (in.wire_type() == pbf_wire_type::varint) {
    require(to.size() < limit, too_long);
    to.push_back(in.get_uint64());
  } else if (in.wire_type() == pbf_wire_type::length_delimited) {
    for (const uint64_t value : in.get_packed_uint64()) {
      require(to.size() < limit, too_long);
      to.push_back(value);
    }
  } else {
    in.skip();
  }
}

template <typename Entry>
void append(std::vector<Entry>& table, Entry entry) {
  require(table.size() < max_entries, "a table is too long");
  table.push_back(entry);
}

// What a file of this size may hold.
size_t inflate_limit(size_t packed) {
  return std::min(max_inflated_bytes, std::max(free_inflated_bytes, packed * max_inflate_ratio));
}

}  // namespace

Result<Profile> with_plain_bytes(std::span<const std::byte> bytes, const Decode& decode) {
  std::string_view plain(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (plain.empty()) return fail("not a profile: it is empty");
  if (plain.size() > max_file_bytes) return fail("not a profile: it is larger than 1 GiB");
  try {
    std::string inflated;
    if (is_gzip(plain)) {
      Result<std::string> result = gunzip(plain, inflate_limit(plain.size()));
      if (!result) return std::unexpected(result.error().in("not a readable profile"));
      inflated = std::move(*result);
      plain = inflated;
    }
    return decode(plain);
  } catch (const Malformed& malformed) {
    return fail("not a readable profile: " + malformed.what);
  } catch (const protozero::exception&) {
    return fail("not a readable profile: neither gzip nor a whole pprof message");
  } catch (const std::bad_alloc&) {
    return fail("not a readable profile: it needs more memory than there is");
  } catch (const std::length_error&) {
    return fail("not a readable profile: it needs more memory than there is");
  }
}

RawFile read_raw(std::string_view bytes) {
  RawFile file;
  pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) {
    switch (in.tag_and_type()) {
      case bytes_of(profile_field::sample_type):
        append(file.value_types, read_value_type(in.get_view()));
        break;
      case bytes_of(profile_field::sample):
        append(file.samples, in.get_view());
        break;
      case bytes_of(profile_field::mapping):
        append(file.mappings, read_mapping(in.get_view()));
        break;
      case bytes_of(profile_field::location):
        append(file.locations, read_location(in.get_view(), file.lines));
        break;
      case bytes_of(profile_field::function):
        append(file.functions, read_function(in.get_view()));
        break;
      case bytes_of(profile_field::string_table): {
        const protozero::data_view text = in.get_view();
        append(file.strings, std::string_view(text.data(), text.size()));
        break;
      }
      case varint(profile_field::comment):
      case bytes_of(profile_field::comment):
        read_repeated(in, file.comments, max_depth);
        break;
      case varint(profile_field::time_nanos):
        file.time = in.get_uint64();
        break;
      case varint(profile_field::duration_nanos):
        file.duration = in.get_uint64();
        break;
      case bytes_of(profile_field::period_type):
        file.period_type = read_value_type(in.get_view());
        break;
      case varint(profile_field::period):
        file.period = in.get_uint64();
        break;
      default:
        in.skip();
    }
  }
  require(!file.strings.empty() && file.strings[0].empty(), "it has no string table");
  return file;
}

void read_raw_sample(protozero::data_view sample, std::vector<uint64_t>& locations,
                     std::vector<uint64_t>& values, std::vector<RawLabel>& labels, size_t deepest) {
  locations.clear();
  values.clear();
  labels.clear();
  pbf_reader in(sample);
  while (in.next()) {
    if (in.tag() == sample_field::location_id) {
      read_repeated(in, locations, deepest);
    } else if (in.tag() == sample_field::value) {
      read_repeated(in, values, max_depth);
    } else if (in.tag_and_type() == bytes_of(sample_field::label)) {
      require(labels.size() < max_depth, "a sample has too many labels");
      labels.push_back(read_label(in.get_view()));
    } else {
      in.skip();
    }
  }
}

}  // namespace pkprof::pprof
