// SPDX-License-Identifier: Apache-2.0
// The Profile: CPU time, or what is used of another resource, by (ran-on, served, source, basis,
// stack). Everything that reports and exports is a function of a Profile; nothing here knows of a
// live kernel.
//
// Tables (labels, mappings, frames, stacks, strings) are interned and append-only; samples refer
// to them by index. Adding the same sample twice sums its values, so a Profile is as large as the
// number of different things that happened, not as the number of samples taken.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/container.h"
#include "model/index_table.h"

namespace pkprof {

// Why a label was charged. The numbers are part of the file format: append only.
enum class Basis : uint8_t {
  own = 0,          // the process ran in its own context (user code, system call, fault)
  consumed = 1,     // it took the object that carried the work
  owner = 2,        // it holds the object (a socket, a timer) that the work was for
  submitter = 3,    // it submitted the request
  dirtier = 4,      // it dirtied the page
  queuer = 5,       // it queued the work
  voted = 6,        // its part of an object that several share, by their votes
  provisional = 7,  // the best guess at hand when the account had to be closed
};
[[nodiscard]] std::string_view to_string(Basis basis);
[[nodiscard]] std::optional<Basis> basis_from_string(std::string_view name);
inline constexpr int basis_count = 8;

enum class LabelKind : uint8_t { process = 0, kernel, idle, other, unclaimed, steal, remote };
inline constexpr int label_kind_count = 7;
[[nodiscard]] std::string_view to_string(LabelKind kind);
[[nodiscard]] std::optional<LabelKind> label_kind_from_string(std::string_view name);
// Whether the CPU ran anything: false for idle time and for time that the host took.
[[nodiscard]] bool is_working(LabelKind kind);

// In a pid: the number is the host's, since it has none in the PID namespace of the recorder.
constexpr uint32_t outside_pid = 1U << 28;
// "1234", or "host:1234"; of a process or a thread.
[[nodiscard]] std::string number_text(uint32_t number);

// Who ran or who was served. For `process`, identity is {host, pid, start_ns}; comm, exe and cgroup
// are as first seen, since the process may be gone. Kernel threads are processes with `kthread`
// set.
struct Label {
  LabelKind kind = LabelKind::kernel;
  // Thread group id; 0 unless kind is process, and for all ended processes of a program together.
  uint32_t pid = 0;
  uint64_t start_ns = 0;  // start of the process, nanoseconds since boot; with pid 0 any number
  bool kthread = false;
  bool without_pid = false;  // an import that does not say it
  uint32_t parent_pid = 0;
  std::string comm;        // the last that was seen
  std::string first_comm;  // the first, since its last exec; "" where that is not known
  std::string exe;         // path, empty when it could not be had
  std::string cgroup;      // path below the cgroup v2 mount, empty when it could not be had
  Container container;     // as found while recording; see container_of()
  // The machine of the process, in a profile of several machines; else "", and Meta::host says it.
  std::string host;
  // For unclaimed: dropped, forwarded, expired, lost, untracked, ... For remote, a client of a
  // server here: its address.
  std::string reason;
  // "nginx:1234", "web1/nginx:1234" with a host, "KERNEL", "IDLE", "OTHER", "STEAL",
  // "UNCLAIMED:dropped", "192.0.2.7". Not cleaned for any output.
  [[nodiscard]] std::string name() const;
  // "web1/", or "" without a host: what stands in front of the process's name.
  [[nodiscard]] std::string host_prefix() const;
  // "1234"; "ended" for several together; "-" for one that is not known; "host:1234" for one
  // outside the recorder's namespace.
  [[nodiscard]] std::string pid_text() const;
  bool operator==(const Label&) const = default;
};

// The container of a process: as it was recorded, or else as the cgroup tells it.
[[nodiscard]] Container container_of(const Label& label);

// What a sample is of.
enum class Resource : uint8_t {
  cpu = 0,  // SampleValue::ns is CPU time
  wait,     // it is time off the CPU, and SampleValue::count waits, about
  lock,     // it is time that locks were waited for
  disk,     // it is bytes, and SampleValue::exact_ns time at the disk
  net,      // it is bytes, and SampleValue::count packets
  memory,   // it is bytes
};
inline constexpr std::array every_resource = {Resource::cpu,  Resource::wait, Resource::lock,
                                              Resource::disk, Resource::net,  Resource::memory};
// Whether SampleValue::ns is bytes.
[[nodiscard]] constexpr bool is_in_bytes(Resource resource) {
  return resource >= Resource::disk;
}
[[nodiscard]] std::string_view to_string(Resource resource);
[[nodiscard]] std::optional<Resource> resource_from_string(std::string_view name);

using LabelId = uint32_t;
using ClientId = uint32_t;
using WakeupId = uint32_t;
using FrameId = uint32_t;
using StackId = uint32_t;
using StringId = uint32_t;
using MappingId = uint32_t;
inline constexpr MappingId no_mapping = UINT32_MAX;

inline constexpr uint64_t no_vaddr = UINT64_MAX;

struct Mapping {
  uint64_t start = 0;    // of the mapped range, as it was in memory
  uint64_t limit = 0;    // first address past it
  uint64_t offset = 0;   // file offset of `start`
  std::string file;      // path; "[kernel.kallsyms]", "[module]", "[bpf]", "[vdso]" for the rest
  std::string build_id;  // lower-case hex, empty when there is none
  // The file's own address of `start`, as nm prints it: what the linker chose, not the loader.
  uint64_t vaddr = no_vaddr;
  auto operator<=>(const Mapping&) const = default;
};

enum class FrameKind : uint8_t { user = 0, kernel = 1, pseudo = 2 };
[[nodiscard]] std::string_view to_string(FrameKind kind);
[[nodiscard]] std::optional<FrameKind> frame_kind_from_string(std::string_view name);

// One place in code. A pseudo frame has only a function: a source ("softirq:NET_RX",
// "syscall:recvfrom") that stands between the frames of two contexts.
struct Frame {
  FrameKind kind = FrameKind::user;
  MappingId mapping = no_mapping;
  uint64_t address = 0;   // as in memory; 0 for pseudo frames
  StringId function = 0;  // demangled name, string 0 ("") when not known
  StringId file = 0;
  uint32_t line = 0;
  auto operator<=>(const Frame&) const = default;
};

// Why a server's time is a client's. The numbers are part of the file format: append only.
enum class ClientRule : uint8_t {
  taken = 1,  // the client sent what the thread took last
  replied,    // the thread's answer went to it
  woken,      // the thread was woken by one at work for it
  asked,      // a server at work for it asked the kernel for this, to be done elsewhere
  shared,     // it is one of several whose messages the thread took before it worked on any
};
[[nodiscard]] std::string_view to_string(ClientRule rule);
[[nodiscard]] std::optional<ClientRule> client_rule_from_string(std::string_view name);
inline constexpr int client_rule_count = 6;  // 0 is none

// For whom a server worked: who had asked for it, and the servers that passed it on, in order.
struct Client {
  LabelId label = 0;
  std::vector<LabelId> via;
  ClientRule rule = ClientRule::taken;
  StackId call = 0;  // the client's own, when it took the answer; 0: not known
  bool operator==(const Client&) const = default;
};

// Who ended a wait: what it did as it woke the one who waited, and who had woken it meanwhile.
struct Wakeup {
  LabelId label = 0;
  StackId stack = 0;            // leaf first
  std::vector<LabelId> before;  // the last one first
  bool operator==(const Wakeup&) const = default;
};

// What a sample is counted under. `stack` is leaf first.
struct SampleKey {
  LabelId ran_on = 0;   // of a wait: for whom it was, or who had the CPU; of a lock: who held it
  LabelId served = 0;   // of a wait: who waited; of other resources: who used them
  StringId source = 0;  // "user", "syscall:read", "fault", "softirq:NET_RX", "irq:...", ...
  Basis basis = Basis::own;
  StackId stack = 0;    // stack 0 is the empty stack
  uint32_t thread = 0;  // thread id that ran, 0 when threads are not labelled
  // Thread id that was served; 0 when threads are not labelled, or it is not known which of the
  // process's threads it was.
  uint32_t served_thread = 0;
  ClientId client = 0;  // of whoever was served; 0: it worked for itself, or that was not asked for
  Resource resource = Resource::cpu;
  WakeupId wakeup = 0;  // of a wait; 0: not known
  auto operator<=>(const SampleKey&) const = default;
};

struct SampleValue {
  uint64_t count = 0;     // samples
  uint64_t ns = 0;        // CPU time these samples stand for; of other resources see Resource
  uint64_t exact_ns = 0;  // time measured by entry and exit, where it was
  uint64_t calls = 0;     // calls counted, where they were
  SampleValue& operator+=(const SampleValue& o);
  auto operator<=>(const SampleValue&) const = default;
};

// What is true of the whole recording.
struct Meta {
  std::string kernel;   // uname -r
  std::string host;     // nodename; of several machines a list
  std::string command;  // of `record -- CMD`, empty otherwise
  uint32_t cpus = 0;
  uint64_t start_unix_ns = 0;  // wall-clock time of the start
  uint64_t duration_ns = 0;
  // All CPU time, where it is not cpus x duration_ns: machines that were recorded for different
  // times. 0 where it is.
  uint64_t all_cpu_ns = 0;
  uint64_t paused_ns = 0;     // not in it: time between its pieces, where it was paused
  uint64_t frequency_hz = 0;  // of the sampling clock
  uint64_t samples_taken = 0;
  uint64_t samples_lost = 0;
  uint64_t cost_kernel_ns = 0;  // what pkprof itself took, measured
  uint64_t cost_user_ns = 0;
  bool measured = false;           // by entry and exit; samples only divide what was measured
  uint64_t counted_functions = 0;  // whose calls were counted
  std::string counted_by;          // means of the kernel's
  // Of duration_ns, the time that was not watched, to keep to the budget. What was watched stands
  // for it in proportion.
  uint64_t unwatched_ns = 0;
  uint64_t slot_ns = 0;                      // of the timeline; 0: there is none
  std::vector<std::string> degraded;         // capabilities that were missing, a sentence each
  std::map<std::string, uint64_t> counters;  // every "nothing is lost silently" counter, by name
  // Samples by how their stacks of user code ended: whole_stack, or why they were cut. None where
  // that was not recorded.
  std::map<std::string, uint64_t> user_stacks;
  [[nodiscard]] uint64_t cpu_ns() const { return all_cpu_ns ? all_cpu_ns : cpus * duration_ns; }
  bool operator==(const Meta&) const = default;
};
inline constexpr const char* whole_stack = "whole";

// The share of the recording's time that was watched: 1 unless a budget kept it lower.
[[nodiscard]] double watched_share(const Meta& meta);

// Time by who ran, who was served and by what, in one slot of the recording: slot 0 is its first
// Meta::slot_ns.
struct TimelineCell {
  uint32_t slot = 0;
  LabelId ran_on = 0;
  LabelId served = 0;
  StringId source = 0;
  uint64_t ns = 0;
  auto operator<=>(const TimelineCell&) const = default;
};

class Profile {
 public:
  // Holds label 0 (KERNEL), client 0 and wakeup 0 (none), string 0 ("") and stack 0 (empty) from
  // the start.
  Profile();

  Meta meta;
  // By slot, and within one by who ran, who was served and by what; each of these once. What it
  // adds up to is what the samples do, but for idle time, which is what is left of a slot, and time
  // that was charged to no slot.
  std::vector<TimelineCell> timeline;
  // How many requests servers took of clients, by server and client. Where not all of the time was
  // watched, in proportion.
  using Requests = std::map<std::pair<LabelId, ClientId>, uint64_t>;
  Requests requests;

  // Interned by (kind, host, pid, start_ns, reason). The rest of a label is as first given, but
  // what was empty then is filled in when it comes later.
  LabelId label(const Label& label);
  ClientId client(const Client& client);
  WakeupId wakeup(const Wakeup& wakeup);
  StringId string(std::string_view text);
  MappingId mapping(const Mapping& mapping);
  FrameId frame(const Frame& frame);
  StackId stack(std::span<const FrameId> leaf_first);
  void add(const SampleKey& key, const SampleValue& value);
  // What a thread is called. A thread is known by its process and its id; the first name stays.
  void name_thread(LabelId process, uint32_t thread, std::string_view comm);
  // Makes room for so many samples in all; only saves time.
  void reserve(size_t samples);

  [[nodiscard]] const std::vector<Label>& labels() const { return labels_; }
  // By ClientId; the first means none.
  [[nodiscard]] const std::vector<Client>& clients() const { return clients_; }
  // By WakeupId; the first means none.
  [[nodiscard]] const std::vector<Wakeup>& wakeups() const { return wakeups_; }
  [[nodiscard]] const std::string& text(StringId id) const { return strings_[id]; }
  [[nodiscard]] const std::vector<Mapping>& mappings() const { return mappings_; }
  [[nodiscard]] const std::vector<Frame>& frames() const { return frames_; }
  [[nodiscard]] std::span<const FrameId> frames_of(StackId id) const;  // leaf first
  [[nodiscard]] size_t stack_count() const { return stack_bounds_.size() - 1; }

  struct Sample {
    SampleKey key;
    SampleValue value;
    bool operator==(const Sample&) const = default;
  };
  [[nodiscard]] const std::vector<Sample>& samples() const { return samples_; }

  using ThreadNames = std::map<std::pair<LabelId, uint32_t>, std::string>;
  [[nodiscard]] const ThreadNames& thread_names() const { return thread_names_; }

  // cpus x duration: what rule 1 (the ledger sums) is checked against.
  [[nodiscard]] uint64_t cpu_ns() const { return meta.cpu_ns(); }

 private:
  std::vector<Label> labels_;
  std::vector<Client> clients_;
  std::vector<Wakeup> wakeups_;
  std::deque<std::string> strings_;  // a deque, so that text() stays valid while it grows
  std::vector<Mapping> mappings_;
  std::vector<Frame> frames_;
  std::vector<FrameId> stack_frames_;
  std::vector<uint64_t> stack_bounds_;  // stack i is stack_frames_[bounds[i] .. bounds[i+1])
  std::vector<Sample> samples_;
  ThreadNames thread_names_;
  // Who is where in the tables above; positions only, so a Profile can be copied.
  IndexTable label_index_;
  IndexTable client_index_;
  IndexTable wakeup_index_;
  IndexTable string_index_;
  IndexTable mapping_index_;
  IndexTable frame_index_;
  IndexTable stack_index_;
  IndexTable sample_index_;
};

}  // namespace pkprof
