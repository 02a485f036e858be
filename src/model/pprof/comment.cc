// SPDX-License-Identifier: Apache-2.0
// The JSON object in the comment. Keys are append-only; what is empty or zero is left out, and
// unknown keys are ignored, so files outlive versions of pkprof in both directions.
#include <array>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "model/bounded_json.h"
#include "model/escape.h"
#include "model/pprof/format.h"

namespace pkprof::pprof {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view schema_prefix = R"({"schema":"pkprof.meta/)";
constexpr std::string_view schema = "pkprof.meta/1";
constexpr size_t max_nesting = 4;  // object, "labels", label, value

// Of a label; not an object of their own, which would nest deeper.
constexpr std::array<std::pair<const char*, std::string Container::*>, 7> container_keys = {
    {{"container_id", &Container::id},
     {"runtime", &Container::runtime},
     {"container", &Container::name},
     {"image", &Container::image},
     {"pod", &Container::pod},
     {"pod_namespace", &Container::pod_namespace},
     {"pod_uid", &Container::pod_uid}}};

// Raised by the readers below, turned into an Error by decode_comment.
struct BadComment {
  std::string what;
};

void put(Json& to, const char* key, const std::string& value) {
  if (!value.empty()) to[key] = escape_text(value);
}

void put(Json& to, const char* key, uint64_t value) {
  if (value != 0) to[key] = value;
}

std::string text_of(const Json& value, const char* key) {
  if (!value.is_string()) throw BadComment{std::string(key) + " is not a string"};
  return unescape_text(value.get_ref<const std::string&>());
}

std::string get_text(const Json& from, const char* key) {
  const auto it = from.find(key);
  return it == from.end() ? std::string() : text_of(*it, key);
}

uint64_t number_of(const Json& value, const char* key, uint64_t max) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > max)
    throw BadComment{std::string(key) + " is not a number in range"};
  return value.get<uint64_t>();
}

uint64_t get_number(const Json& from, const char* key, uint64_t max = UINT64_MAX) {
  const auto it = from.find(key);
  return it == from.end() ? 0 : number_of(*it, key, max);
}

Json label_to_json(const Label& label, const std::string& name) {
  Json to = {{"name", name}, {"kind", to_string(label.kind)}};
  put(to, "pid", label.pid);
  put(to, "start_ns", label.start_ns);
  put(to, "parent", label.parent_pid);
  if (label.kthread) to["kthread"] = true;
  if (label.without_pid) to["without_pid"] = true;
  put(to, "comm", label.comm);
  if (label.first_comm != label.comm) put(to, "first_comm", label.first_comm);
  put(to, "exe", label.exe);
  put(to, "cgroup", label.cgroup);
  put(to, "host", label.host);
  for (const auto& [key, member] : container_keys) put(to, key, label.container.*member);
  put(to, "reason", label.reason);
  return to;
}

bool is_set(const Json& from, const char* key) {
  const auto it = from.find(key);
  return it != from.end() && it->is_boolean() && it->get<bool>();
}

Label label_from_json(const Json& from) {
  const auto kind = label_kind_from_string(get_text(from, "kind"));
  if (!kind) throw BadComment{"a label of unknown kind; use a newer pkprof"};
  Container container;
  for (const auto& [key, member] : container_keys) container.*member = get_text(from, key);
  return Label{.kind = *kind,
               .pid = static_cast<uint32_t>(get_number(from, "pid", UINT32_MAX)),
               .start_ns = get_number(from, "start_ns"),
               .kthread = is_set(from, "kthread"),
               .without_pid = is_set(from, "without_pid"),
               .parent_pid = static_cast<uint32_t>(get_number(from, "parent", UINT32_MAX)),
               .comm = get_text(from, "comm"),
               .first_comm = get_text(from, "first_comm"),
               .exe = get_text(from, "exe"),
               .cgroup = get_text(from, "cgroup"),
               .container = std::move(container),
               .host = get_text(from, "host"),
               .reason = get_text(from, "reason")};
}

void meta_to_json(const Meta& meta, Json& to) {
  put(to, "kernel", meta.kernel);
  put(to, "host", meta.host);
  put(to, "command", meta.command);
  put(to, "cpus", meta.cpus);
  put(to, "all_cpu_ns", meta.all_cpu_ns);
  put(to, "paused_ns", meta.paused_ns);
  put(to, "frequency_hz", meta.frequency_hz);
  put(to, "samples_taken", meta.samples_taken);
  put(to, "samples_lost", meta.samples_lost);
  put(to, "cost_kernel_ns", meta.cost_kernel_ns);
  put(to, "cost_user_ns", meta.cost_user_ns);
  put(to, "not_watched_ns", meta.unwatched_ns);  // "unwatched_ns" was of another kind of pause
  put(to, "slot_ns", meta.slot_ns);
  put(to, "counted_functions", meta.counted_functions);
  put(to, "counted_by", meta.counted_by);
  Json& degraded = to["degraded"] = Json::array();
  for (const std::string& sentence : meta.degraded) degraded.push_back(escape_text(sentence));
  Json& counters = to["counters"] = Json::object();
  for (const auto& [name, value] : meta.counters) counters[escape_text(name)] = value;
  for (const auto& [end, samples] : meta.user_stacks) to["user_stacks"][escape_text(end)] = samples;
}

void read_figures(const Json& from, const char* key, std::map<std::string, uint64_t>& to) {
  const auto figures = from.find(key);
  if (figures == from.end()) return;
  if (!figures->is_object()) throw BadComment{std::string(key) + " is not an object"};
  for (const auto& [name, value] : figures->items())
    to[unescape_text(name)] = number_of(value, key, UINT64_MAX);
}

const Json& get_array(const Json& from, const char* key) {
  static const Json empty = Json::array();
  const auto it = from.find(key);
  if (it == from.end()) return empty;
  if (!it->is_array()) throw BadComment{std::string(key) + " is not a list"};
  return *it;
}

Meta meta_from_json(const Json& from) {
  Meta meta{.kernel = get_text(from, "kernel"),
            .host = get_text(from, "host"),
            .command = get_text(from, "command"),
            .cpus = static_cast<uint32_t>(get_number(from, "cpus", max_cpus)),
            .all_cpu_ns = get_number(from, "all_cpu_ns", INT64_MAX),
            .paused_ns = get_number(from, "paused_ns"),
            .frequency_hz = get_number(from, "frequency_hz"),
            .samples_taken = get_number(from, "samples_taken"),
            .samples_lost = get_number(from, "samples_lost"),
            .cost_kernel_ns = get_number(from, "cost_kernel_ns"),
            .cost_user_ns = get_number(from, "cost_user_ns"),
            .counted_functions = get_number(from, "counted_functions"),
            .counted_by = get_text(from, "counted_by"),
            .unwatched_ns = get_number(from, "not_watched_ns"),
            .slot_ns = get_number(from, "slot_ns")};
  for (const Json& sentence : get_array(from, "degraded"))
    meta.degraded.push_back(text_of(sentence, "degraded"));
  read_figures(from, "counters", meta.counters);
  read_figures(from, "user_stacks", meta.user_stacks);
  return meta;
}

// Indexes must lead somewhere, and the sum stay a number.
void timeline_from_json(const Json& from, MetaComment& to) {
  for (const Json& source : get_array(from, "timeline_sources"))
    to.timeline_sources.push_back(text_of(source, "a source of the timeline"));
  uint64_t sum = 0;
  for (const Json& cell : get_array(from, "timeline")) {
    if (!cell.is_array() || cell.size() != 5) throw BadComment{"timeline is not made of cells"};
    const auto index = [&](size_t i, size_t size) {
      const uint64_t n = number_of(cell[i], "a cell of the timeline", UINT32_MAX);
      if (n >= size) throw BadComment{"a cell of the timeline leads nowhere"};
      return static_cast<uint32_t>(n);
    };
    to.timeline.push_back({index(0, size_t{1} << 24), index(1, to.labels.size()),
                           index(2, to.labels.size()), index(3, to.timeline_sources.size()),
                           number_of(cell[4], "a time", INT64_MAX)});
    if (__builtin_add_overflow(sum, to.timeline.back().ns, &sum) ||
        sum > static_cast<uint64_t>(INT64_MAX))
      throw BadComment{"the timeline adds up to too much"};
  }
}

Json client_to_json(const Client& client, const std::vector<uint64_t>& call) {
  Json to = Json::array({client.label, to_string(client.rule), client.via});
  if (!call.empty()) to.push_back(call);
  return to;
}

// The first is none, which the file does not have.
void clients_from_json(const Json& from, MetaComment& to) {
  constexpr size_t max_way = 64;
  const auto label = [&](const Json& of) {
    const uint64_t n = number_of(of, "a client", UINT32_MAX);
    if (n >= to.labels.size()) throw BadComment{"a client leads nowhere"};
    return static_cast<LabelId>(n);
  };
  to.clients.emplace_back();
  to.calls.emplace_back();
  size_t frames = 0;
  for (const Json& entry : get_array(from, "clients")) {
    if (!entry.is_array() || entry.size() < 3 || entry.size() > 4 || !entry[2].is_array() ||
        entry[2].size() > max_way || !entry.back().is_array())
      throw BadComment{"clients is not made of label, rule, way and call"};
    const auto rule = client_rule_from_string(text_of(entry[1], "a client's rule"));
    if (!rule) throw BadComment{"a client by an unknown rule; use a newer pkprof"};
    Client client{.label = label(entry[0]), .rule = *rule};
    for (const Json& via : entry[2]) client.via.push_back(label(via));
    to.clients.push_back(std::move(client));
    std::vector<uint64_t>& call = to.calls.emplace_back();
    if (entry.size() < 4) continue;
    frames += entry[3].size();
    if (frames > max_stack_frames) throw BadComment{"the calls of clients are too many"};
    for (const Json& location : entry[3])
      call.push_back(number_of(location, "a location of a call", UINT64_MAX));
  }
}

void requests_from_json(const Json& from, MetaComment& to) {
  for (const Json& entry : get_array(from, "requests")) {
    if (!entry.is_array() || entry.size() != 3)
      throw BadComment{"requests is not made of server, client and number"};
    const uint64_t server = number_of(entry[0], "a server", UINT32_MAX);
    const uint64_t client = number_of(entry[1], "a client", UINT32_MAX);
    if (server >= to.labels.size() || client >= to.clients.size())
      throw BadComment{"requests lead nowhere"};
    to.requests.push_back({static_cast<uint32_t>(server), static_cast<uint32_t>(client),
                           number_of(entry[2], "a number of requests", INT64_MAX)});
  }
}

void wakeups_from_json(const Json& from, MetaComment& to) {
  const auto label = [&](const Json& of) {
    const uint64_t n = number_of(of, "a wakeup", UINT32_MAX);
    if (n >= to.labels.size()) throw BadComment{"a wakeup leads nowhere"};
    return static_cast<uint32_t>(n);
  };
  size_t frames = 0;
  for (const Json& entry : get_array(from, "wakeups")) {
    if (!entry.is_array() || entry.size() != 3 || !entry[1].is_array() || !entry[2].is_array())
      throw BadComment{"wakeups is not made of label, wakeups and stack"};
    MetaComment::WakeupOf& wakeup = to.wakeups.emplace_back(label(entry[0]));
    for (const Json& before : entry[1]) wakeup.before.push_back(label(before));
    frames += entry[1].size() + entry[2].size();
    if (frames > max_stack_frames) throw BadComment{"the stacks of wakeups are too many"};
    for (const Json& location : entry[2])
      wakeup.locations.push_back(number_of(location, "a location of a wakeup", UINT64_MAX));
  }
}

MetaComment from_json(const Json& from) {
  if (!from.is_object()) throw BadComment{"not an object"};
  const std::string version = get_text(from, "schema");
  if (version != schema)
    throw BadComment{"it is in format " + escape_text(version) + ", this pkprof reads " +
                     std::string(schema) + "; use a newer pkprof"};
  MetaComment comment{.meta = meta_from_json(from)};
  for (const Json& label : get_array(from, "labels")) {
    if (!label.is_object()) throw BadComment{"a label is not an object"};
    comment.labels.push_back(label_from_json(label));
    const auto name = label.find("name");
    if (name == label.end() || !name->is_string()) throw BadComment{"a label without a name"};
    comment.names.push_back(name->get<std::string>());
  }
  timeline_from_json(from, comment);
  clients_from_json(from, comment);
  requests_from_json(from, comment);
  wakeups_from_json(from, comment);
  for (const Json& entry : get_array(from, "frame_kinds")) {
    if (!entry.is_array() || entry.size() != 2)
      throw BadComment{"frame_kinds is not made of pairs"};
    const auto kind = frame_kind_from_string(text_of(entry[1], "a frame kind"));
    if (!kind) throw BadComment{"a frame of unknown kind"};
    comment.kinds.push_back({number_of(entry[0], "a location id", UINT64_MAX), *kind});
  }
  for (const Json& entry : get_array(from, "threads")) {
    if (!entry.is_array() || entry.size() != 3 || !entry[0].is_string())
      throw BadComment{"threads is not made of label, id and name"};
    comment.threads.push_back({entry[0].get<std::string>(),
                               static_cast<uint32_t>(number_of(entry[1], "a thread", UINT32_MAX)),
                               text_of(entry[2], "a thread's name")});
  }
  for (const Json& entry : get_array(from, "vaddrs")) {
    if (!entry.is_array() || entry.size() != 2) throw BadComment{"vaddrs is not made of pairs"};
    comment.vaddrs.push_back({number_of(entry[0], "a mapping id", UINT64_MAX),
                              number_of(entry[1], "an address", UINT64_MAX)});
  }
  return comment;
}

}  // namespace

FrameKind default_kind(const Frame& frame) {
  if (frame.address >> 63) return FrameKind::kernel;
  if (frame.mapping == no_mapping && frame.address == 0) return FrameKind::pseudo;
  return FrameKind::user;
}

std::vector<std::string> unique_names(const std::vector<Label>& labels) {
  std::vector<std::string> names;
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, int> next;  // so that many of one name are not quadratic
  for (const Label& label : labels) {
    const std::string wanted = escape_text(label.name());
    std::string name = wanted;
    while (!taken.insert(name).second) {
      const int n = next.try_emplace(wanted, 2).first->second++;
      name = wanted + "#" + std::to_string(n);
    }
    names.push_back(std::move(name));
  }
  return names;
}

bool is_meta_comment(std::string_view comment) {
  if (comment.starts_with('#')) comment.remove_prefix(1);
  return comment.starts_with(schema_prefix);
}

std::string encode_comment(const MetaComment& comment) {
  Json to;
  to["schema"] = schema;
  meta_to_json(comment.meta, to);
  Json& labels = to["labels"] = Json::array();
  for (size_t i = 0; i < comment.labels.size(); ++i)
    labels.push_back(label_to_json(comment.labels[i], comment.names[i]));
  if (!comment.kinds.empty()) {
    Json& kinds = to["frame_kinds"] = Json::array();
    for (const auto& [location, kind] : comment.kinds)
      kinds.push_back(Json::array({location, to_string(kind)}));
  }
  if (!comment.threads.empty()) {
    Json& threads = to["threads"] = Json::array();
    for (const auto& [label, id, name] : comment.threads)
      threads.push_back(Json::array({label, id, escape_text(name)}));
  }
  if (!comment.vaddrs.empty()) {
    Json& vaddrs = to["vaddrs"] = Json::array();
    for (const auto& [mapping, vaddr] : comment.vaddrs)
      vaddrs.push_back(Json::array({mapping, vaddr}));
  }
  for (size_t i = 1; i < comment.clients.size(); ++i)
    to["clients"].push_back(client_to_json(comment.clients[i], comment.calls[i]));
  for (const auto& [label, before, locations] : comment.wakeups)
    to["wakeups"].push_back(Json::array({label, before, locations}));
  for (const auto& [server, client, count] : comment.requests)
    to["requests"].push_back(Json::array({server, client, count}));
  if (!comment.timeline.empty()) {
    Json& sources = to["timeline_sources"] = Json::array();
    for (const std::string& source : comment.timeline_sources)
      sources.push_back(escape_text(source));
    Json& timeline = to["timeline"] = Json::array();
    for (const auto& [slot, ran_on, served, source, ns] : comment.timeline)
      timeline.push_back(Json::array({slot, ran_on, served, source, ns}));
  }
  return "#" + to.dump();
}

Result<MetaComment> decode_comment(std::string_view text) {
  if (text.starts_with('#')) text.remove_prefix(1);
  if (text.size() > max_comment_bytes) return fail("the pkprof comment is too large");
  try {
    return from_json(parse_bounded<BadComment>(text, {.nesting = max_nesting}));
  } catch (const BadComment& malformed) {
    return fail("bad pkprof comment: " + malformed.what);
  } catch (const nlohmann::json::exception&) {
    return fail("bad pkprof comment: not JSON");
  }
}

}  // namespace pkprof::pprof
