// SPDX-License-Identifier: Apache-2.0
// Interning. Every table is a vector in order of appearance with an IndexTable beside it: look
// for an equal entry, append when there is none. The order, and with it the file that is written,
// depends only on what was added, never on a hash.
#include "model/profile.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "model/hash.h"

namespace pkprof {

namespace {

constexpr std::array<std::string_view, basis_count> basis_names = {
    "own", "consumed", "owner", "submitter", "dirtier", "queuer", "voted", "provisional"};
constexpr std::array<std::string_view, label_kind_count> label_kind_names = {
    "process", "kernel", "idle", "other", "unclaimed", "steal", "remote"};
constexpr std::array<std::string_view, client_rule_count> client_rule_names = {
    "none", "taken", "replied", "woken", "asked", "shared"};
constexpr std::array<std::string_view, every_resource.size()> resource_names = {
    "cpu", "wait", "lock", "disk", "net", "memory"};
constexpr std::array<std::string_view, 3> frame_kind_names = {"user", "kernel", "pseudo"};

template <typename Enum, size_t n>
std::optional<Enum> enum_from(const std::array<std::string_view, n>& names, std::string_view name) {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) return std::nullopt;
  return static_cast<Enum>(it - names.begin());
}

template <typename Enum, size_t n>
std::string_view enum_name(const std::array<std::string_view, n>& names, Enum value) {
  const auto i = static_cast<size_t>(value);
  return i < n ? names[i] : std::string_view("?");
}

// The position of `value` in `table`, appended when it is not there.
template <typename Table, typename Value>
uint32_t intern(Table& table, IndexTable& index, uint64_t hash, const Value& value) {
  const uint32_t found = index.find(hash, [&](uint32_t i) { return table[i] == value; });
  if (found != IndexTable::none) return found;
  const auto position = static_cast<uint32_t>(table.size());
  table.emplace_back(value);
  index.insert(hash, position);
  return position;
}

void fill_in(std::string& have, const std::string& given) {
  if (have.empty()) have = given;
}

}  // namespace

uint64_t hash_seed() {
  static const uint64_t seed = [] {
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
      random = reinterpret_cast<uintptr_t>(&random);  // early boot: the stack's address will do
    return random | 1;
  }();
  return seed;
}

std::string_view to_string(Basis basis) {
  return enum_name(basis_names, basis);
}
std::string_view to_string(LabelKind kind) {
  return enum_name(label_kind_names, kind);
}
std::string_view to_string(ClientRule rule) {
  return enum_name(client_rule_names, rule);
}
std::string_view to_string(Resource resource) {
  return enum_name(resource_names, resource);
}
std::string_view to_string(FrameKind kind) {
  return enum_name(frame_kind_names, kind);
}

std::optional<Basis> basis_from_string(std::string_view name) {
  return enum_from<Basis>(basis_names, name);
}
std::optional<LabelKind> label_kind_from_string(std::string_view name) {
  return enum_from<LabelKind>(label_kind_names, name);
}
std::optional<ClientRule> client_rule_from_string(std::string_view name) {
  return enum_from<ClientRule>(client_rule_names, name);
}
std::optional<Resource> resource_from_string(std::string_view name) {
  return enum_from<Resource>(resource_names, name);
}
std::optional<FrameKind> frame_kind_from_string(std::string_view name) {
  return enum_from<FrameKind>(frame_kind_names, name);
}

bool is_working(LabelKind kind) {
  return kind != LabelKind::idle && kind != LabelKind::steal;
}

std::string Label::name() const {
  switch (kind) {
    case LabelKind::process:
      return host_prefix() + comm + ":" + pid_text();
    case LabelKind::kernel:
      return "KERNEL";
    case LabelKind::idle:
      return "IDLE";
    case LabelKind::other:
      return "OTHER";
    case LabelKind::unclaimed:
      return "UNCLAIMED:" + (reason.empty() ? std::string("unknown") : reason);
    case LabelKind::steal:
      return "STEAL";
    case LabelKind::remote:
      return reason.empty() ? "REMOTE" : reason;
  }
  return "?";
}

std::string Label::host_prefix() const {
  return host.empty() ? "" : host + "/";
}

std::string number_text(uint32_t number) {
  if (number & outside_pid) return "host:" + std::to_string(number & ~outside_pid);
  return std::to_string(number);
}

std::string Label::pid_text() const {
  if (pid == 0) return without_pid ? "-" : "ended";
  return number_text(pid);
}

Container container_of(const Label& label) {
  return label.container.id.empty() ? container_of_cgroup(label.cgroup) : label.container;
}

double watched_share(const Meta& meta) {
  if (meta.unwatched_ns == 0 || meta.duration_ns == 0) return 1;
  const uint64_t watched_ns = meta.duration_ns - std::min(meta.unwatched_ns, meta.duration_ns);
  return static_cast<double>(watched_ns) / static_cast<double>(meta.duration_ns);
}

SampleValue& SampleValue::operator+=(const SampleValue& o) {
  count += o.count;
  ns += o.ns;
  exact_ns += o.exact_ns;
  calls += o.calls;
  return *this;
}

Profile::Profile() {
  label(Label{.kind = LabelKind::kernel});
  client({});
  wakeup({});
  string("");
  stack_bounds_.push_back(0);
  stack({});
}

LabelId Profile::label(const Label& label) {
  const uint64_t hash = hash_words(
      hash_seed(), {static_cast<uint64_t>(label.kind), label.pid, label.start_ns,
                    hash_bytes(hash_seed(), label.reason), hash_bytes(hash_seed(), label.host)});
  const uint32_t found = label_index_.find(hash, [&](uint32_t i) {
    const Label& have = labels_[i];
    return have.kind == label.kind && have.pid == label.pid && have.start_ns == label.start_ns &&
           have.reason == label.reason && have.host == label.host;
  });
  if (found == IndexTable::none) {
    labels_.push_back(label);
    label_index_.insert(hash, static_cast<uint32_t>(labels_.size() - 1));
    return static_cast<LabelId>(labels_.size() - 1);
  }
  Label& have = labels_[found];
  fill_in(have.comm, label.comm);
  fill_in(have.first_comm, label.first_comm);
  fill_in(have.exe, label.exe);
  fill_in(have.cgroup, label.cgroup);
  if (have.container.id.empty()) have.container = label.container;
  if (have.parent_pid == 0) have.parent_pid = label.parent_pid;
  have.kthread = have.kthread || label.kthread;
  return found;
}

ClientId Profile::client(const Client& client) {
  assert(client.label < labels_.size());
  const std::string_view via(reinterpret_cast<const char*>(client.via.data()),
                             client.via.size() * sizeof(LabelId));
  const uint64_t hash = hash_words(
      hash_seed(), {static_cast<uint64_t>(client.label) << 8 | static_cast<uint64_t>(client.rule),
                    hash_bytes(hash_seed(), via), client.call});
  return intern(clients_, client_index_, hash, client);
}

WakeupId Profile::wakeup(const Wakeup& wakeup) {
  assert(wakeup.label < labels_.size());
  const std::string_view before(reinterpret_cast<const char*>(wakeup.before.data()),
                                wakeup.before.size() * sizeof(LabelId));
  const uint64_t hash = hash_words(
      hash_seed(),
      {static_cast<uint64_t>(wakeup.label) << 32 | wakeup.stack, hash_bytes(hash_seed(), before)});
  return intern(wakeups_, wakeup_index_, hash, wakeup);
}

StringId Profile::string(std::string_view text) {
  return intern(strings_, string_index_, hash_bytes(hash_seed(), text), text);
}

MappingId Profile::mapping(const Mapping& mapping) {
  const uint64_t seed = hash_seed();
  const uint64_t hash = hash_words(
      seed, {mapping.start, mapping.limit, mapping.offset, hash_bytes(seed, mapping.file),
             hash_bytes(seed, mapping.build_id), mapping.vaddr});
  return intern(mappings_, mapping_index_, hash, mapping);
}

FrameId Profile::frame(const Frame& frame) {
  assert(frame.mapping == no_mapping || frame.mapping < mappings_.size());
  assert(frame.function < strings_.size() && frame.file < strings_.size());
  const uint64_t hash = hash_words(
      hash_seed(), {static_cast<uint64_t>(frame.kind) << 32 | frame.mapping, frame.address,
                    static_cast<uint64_t>(frame.function) << 32 | frame.file, frame.line});
  return intern(frames_, frame_index_, hash, frame);
}

std::span<const FrameId> Profile::frames_of(StackId id) const {
  return {stack_frames_.data() + stack_bounds_[id], stack_frames_.data() + stack_bounds_[id + 1]};
}

StackId Profile::stack(std::span<const FrameId> leaf_first) {
  const std::string_view bytes(reinterpret_cast<const char*>(leaf_first.data()),
                               leaf_first.size_bytes());
  const uint64_t hash = hash_bytes(hash_seed(), bytes);
  const uint32_t found = stack_index_.find(
      hash, [&](uint32_t i) { return std::ranges::equal(frames_of(i), leaf_first); });
  if (found != IndexTable::none) return found;
  const auto id = static_cast<StackId>(stack_count());
  stack_frames_.insert(stack_frames_.end(), leaf_first.begin(), leaf_first.end());
  stack_bounds_.push_back(stack_frames_.size());
  stack_index_.insert(hash, id);
  return id;
}

void Profile::reserve(size_t samples) {
  samples_.reserve(samples);
  sample_index_.reserve(samples);
}

void Profile::add(const SampleKey& key, const SampleValue& value) {
  assert(key.ran_on < labels_.size() && key.served < labels_.size());
  assert(key.source < strings_.size() && key.stack < stack_count());
  assert(key.client < clients_.size() && key.wakeup < wakeups_.size());
  const uint64_t hash =
      hash_words(hash_seed(), {static_cast<uint64_t>(key.ran_on) << 32 | key.served,
                               static_cast<uint64_t>(key.source) << 32 | key.stack,
                               static_cast<uint64_t>(key.basis) << 32 | key.thread,
                               static_cast<uint64_t>(key.client) << 32 | key.served_thread,
                               static_cast<uint64_t>(key.resource) << 32 | key.wakeup});
  const uint32_t found =
      sample_index_.find(hash, [&](uint32_t i) { return samples_[i].key == key; });
  if (found != IndexTable::none) {
    samples_[found].value += value;
    return;
  }
  samples_.push_back({key, value});
  sample_index_.insert(hash, static_cast<uint32_t>(samples_.size() - 1));
}

void Profile::name_thread(LabelId process, uint32_t thread, std::string_view comm) {
  assert(process < labels_.size());
  if (thread != 0 && !comm.empty()) thread_names_.try_emplace({process, thread}, comm);
}

}  // namespace pkprof
