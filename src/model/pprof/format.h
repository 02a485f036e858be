// SPDX-License-Identifier: Apache-2.0
// What the encoder and the decoder share: the field numbers of profile.proto, the names of the
// labels, the limits, and the JSON object in the comment. Private to src/model.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/profile.h"

namespace pkprof::pprof {

// profile.proto, by message.
namespace profile_field {
enum : uint32_t {
  sample_type = 1,
  sample = 2,
  mapping = 3,
  location = 4,
  function = 5,
  string_table = 6,
  time_nanos = 9,
  duration_nanos = 10,
  period_type = 11,
  period = 12,
  comment = 13,
  default_sample_type = 14,
};
}
namespace value_type_field {
enum : uint32_t { type = 1, unit = 2 };
}
namespace sample_field {
enum : uint32_t { location_id = 1, value = 2, label = 3 };
}
namespace label_field {
enum : uint32_t { key = 1, str = 2, num = 3 };
}
namespace mapping_field {
enum : uint32_t {
  id = 1,
  start = 2,
  limit = 3,
  offset = 4,
  file = 5,
  build_id = 6,
  has_functions = 7,
};
}
namespace location_field {
enum : uint32_t { id = 1, mapping_id = 2, address = 3, line = 4 };
}
namespace line_field {
enum : uint32_t { function_id = 1, line = 2 };
}
namespace function_field {
enum : uint32_t { id = 1, name = 2, system_name = 3, file = 4 };
}

inline constexpr std::string_view key_ran_on = "ran-on";
inline constexpr std::string_view key_served = "served";
inline constexpr std::string_view key_source = "source";
inline constexpr std::string_view key_basis = "basis";
inline constexpr std::string_view key_cgroup = "cgroup";
inline constexpr std::string_view key_container = "container";
inline constexpr std::string_view key_host = "host";
inline constexpr std::string_view key_thread = "thread";
inline constexpr std::string_view key_served_thread = "served-thread";
inline constexpr std::string_view key_client = "client";
inline constexpr std::string_view key_client_rule = "client-rule";
inline constexpr std::string_view key_client_number = "client-number";
inline constexpr std::string_view key_wakeup = "wakeup-number";

// The values of samples, by their resource.
struct ValueType {
  Resource resource;
  std::string_view type;
  std::string_view unit;
  uint64_t SampleValue::* member;
};
inline constexpr std::array value_types = {
    ValueType{Resource::cpu, "samples", "count", &SampleValue::count},
    ValueType{Resource::cpu, "cpu", "nanoseconds", &SampleValue::ns},
    ValueType{Resource::cpu, "exact", "nanoseconds", &SampleValue::exact_ns},
    ValueType{Resource::cpu, "calls", "count", &SampleValue::calls},
    ValueType{Resource::wait, "waits", "count", &SampleValue::count},
    ValueType{Resource::wait, "wait", "nanoseconds", &SampleValue::ns},
    ValueType{Resource::lock, "contentions", "count", &SampleValue::count},
    ValueType{Resource::lock, "lock", "nanoseconds", &SampleValue::ns},
    ValueType{Resource::disk, "requests", "count", &SampleValue::count},
    ValueType{Resource::disk, "disk", "bytes", &SampleValue::ns},
    ValueType{Resource::disk, "disk_time", "nanoseconds", &SampleValue::exact_ns},
    ValueType{Resource::net, "packets", "count", &SampleValue::count},
    ValueType{Resource::net, "net", "bytes", &SampleValue::ns},
    ValueType{Resource::memory, "allocations", "count", &SampleValue::count},
    ValueType{Resource::memory, "memory", "bytes", &SampleValue::ns},
};

// The function of the one frame that stands for an empty stack.
inline constexpr std::string_view no_stack = "[no stack]";

// The decoder's limits. Generous for anything recorded, small for anything a machine has.
inline constexpr size_t max_file_bytes = size_t{1} << 30;
inline constexpr size_t max_inflated_bytes = size_t{1} << 30;
inline constexpr size_t free_inflated_bytes = size_t{64} << 20;  // allowed at any ratio
inline constexpr size_t max_inflate_ratio = 200;                 // beyond that
inline constexpr size_t max_entries = size_t{1} << 23;           // in each table
inline constexpr size_t max_depth = 4096;                        // frames in a stack
inline constexpr size_t max_stack_frames = size_t{1} << 27;      // in all stacks together
inline constexpr size_t max_comment_bytes = size_t{64} << 20;
inline constexpr uint32_t max_cpus = 1U << 20;

// What a frame is taken for when the label table says nothing else.
[[nodiscard]] FrameKind default_kind(const Frame& frame);

// What pprof has no place for: Profile::meta but for time and duration, the labels with the names
// that samples refer to them by, the kinds of the frames that are not of their default kind, the
// names of threads, and the addresses that linkers gave to what is mapped.
struct MetaComment {
  Meta meta;
  std::vector<Label> labels;
  std::vector<std::string> names;  // of labels[i]; escaped, unique
  struct KindOf {
    uint64_t location = 0;  // id, from 1
    FrameKind kind = FrameKind::user;
  };
  std::vector<KindOf> kinds;
  struct ThreadName {
    std::string label;  // one of `names`
    uint32_t thread = 0;
    std::string name;
  };
  std::vector<ThreadName> threads;
  struct VaddrOf {
    uint64_t mapping = 0;  // id, from 1
    uint64_t vaddr = 0;
  };
  std::vector<VaddrOf> vaddrs;
  std::vector<Client> clients;               // of `labels`, by position; their calls are in `calls`
  std::vector<std::vector<uint64_t>> calls;  // of each client: location ids, leaf first
  // Of `labels` and location ids; in their order those of the Profile, without the first.
  struct WakeupOf {
    uint32_t label = 0;
    std::vector<uint32_t> before;
    std::vector<uint64_t> locations;
  };
  std::vector<WakeupOf> wakeups;
  struct RequestsOf {
    uint32_t server = 0;  // of `labels`
    uint32_t client = 0;  // of `clients`
    uint64_t count = 0;
  };
  std::vector<RequestsOf> requests;
  struct Cell {
    uint32_t slot = 0;
    uint32_t ran_on = 0;  // of `labels`
    uint32_t served = 0;
    uint32_t source = 0;  // of `timeline_sources`
    uint64_t ns = 0;
  };
  std::vector<std::string> timeline_sources;
  std::vector<Cell> timeline;
};

// One name a label, escaped and unique.
[[nodiscard]] std::vector<std::string> unique_names(const std::vector<Label>& labels);

[[nodiscard]] bool is_meta_comment(std::string_view comment);
[[nodiscard]] std::string encode_comment(const MetaComment& comment);
[[nodiscard]] Result<MetaComment> decode_comment(std::string_view text);

}  // namespace pkprof::pprof
