// SPDX-License-Identifier: Apache-2.0
// The listing of a profile: see listing.h. Samples are brought into the order of their stacks
// first, so that each stack is walked once, for all processes it was for; apart, once for each
// process.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <ranges>

#include "model/source.h"
#include "report/clients/served_by.h"
#include "report/groups.h"
#include "report/listing/listing.h"

namespace pkprof {

namespace {

bool may_be_group(const Label& label) {
  return label.kind == LabelKind::process || label.kind == LabelKind::remote;
}

// What a sample that is not shown is in the ledger.
std::string rest_name(const Label& label) {
  return may_be_group(label) ? "OTHER" : label.name();
}

// The code of a server at work for a client's group.
struct ServerScope {
  GroupId client = 0;
  LabelId server = 0;
  auto operator<=>(const ServerScope&) const = default;
};

// Roots are numbered as the labels are, and then as the groups are. Scope 0 is what is of no
// process, or of all; the others are groups, from 1, and then servers, each for each client.
struct Weight {
  uint32_t scope = 0;
  StackId stack = 0;
  uint32_t root = 0;
  uint64_t ns = 0;
  uint64_t calls = 0;
  bool counted = false;  // calls that were counted, and no time
  uint32_t server = 0;   // of ServerScopes, from 1; 0: none
};

class ProfileListing {
 public:
  ProfileListing(const Profile& profile, const ReportOptions& options)
      : profile_(profile),
        options_(options),
        apart_(options.apart || !options.pids.empty()),
        table_(functions_of(profile)),
        busy_(busy_time(profile, options)),
        groups_(profile, options_.by, options_.pids),
        served_by_(profile) {}

  ListingData run(ListingKind kind);

 private:
  [[nodiscard]] std::vector<bool> with_calls(const std::vector<Weight>& weights) const;
  void sort(std::vector<Weight>& weights) const;
  [[nodiscard]] std::vector<bool> worth_walking(const std::vector<Weight>& weights,
                                                ListingKind kind) const;  // by scope
  void add_stacks(const std::vector<Weight>& weights, const std::vector<bool>& worth,
                  CallGraphBuilder builder);
  void add_rest(const std::vector<uint64_t>& ns_of_label);
  void add_names();
  void name_marks();
  [[nodiscard]] std::string whose(const Group& group) const;
  [[nodiscard]] std::string whose(const ServerScope& scope) const;
  [[nodiscard]] uint32_t server_scope(GroupId client, LabelId server);
  [[nodiscard]] size_t scopes() const { return first_server_scope() + servers_.size(); }
  [[nodiscard]] size_t first_server_scope() const { return 1 + groups_.all().size(); }

  const Profile& profile_;
  const ReportOptions& options_;
  const bool apart_;
  FunctionTable table_;
  const Busy busy_;
  Groups groups_;
  const ServedBy served_by_;
  std::map<ServerScope, uint32_t> place_of_server_;
  std::vector<ServerScope> servers_;
  ListingData data_;
};

ListingData ProfileListing::run(ListingKind kind) {
  std::vector<Weight> weights;
  weights.reserve(profile_.samples().size());
  const auto labels = static_cast<uint32_t>(profile_.labels().size());
  std::vector<uint64_t> rest(labels);
  for (const auto& [key, value] : profile_.samples()) {
    if (!is_busy(profile_, key, options_)) {
      rest[key.served] += value.ns;
      continue;
    }
    Weight weight{.stack = key.stack, .root = key.served, .ns = value.ns, .calls = value.calls};
    weight.counted = profile_.text(key.source) == counted_calls;
    if (may_be_group(profile_.labels()[key.served])) {
      const GroupId group = groups_.of(key.served, key.served_thread);
      weight.root = labels + group;
      if (apart_) weight.scope = 1 + group;
      if (const auto server = served_by_.server_of(key.stack); apart_ && server)
        weight.server = server_scope(group, *server);
    }
    weights.push_back(weight);
  }
  for (Weight& weight : weights)
    if (weight.server)
      weight.scope = static_cast<uint32_t>(first_server_scope()) + weight.server - 1;
  sort(weights);
  add_stacks(weights, worth_walking(weights, kind),
             kind == ListingKind::graph ? CallGraphBuilder(table_)
                                        : CallGraphBuilder(table_, with_calls(weights)));
  add_rest(rest);
  add_names();
  return std::move(data_);
}

uint32_t ProfileListing::server_scope(GroupId client, LabelId server) {
  const auto next = static_cast<uint32_t>(servers_.size() + 1);
  const auto [it, fresh] = place_of_server_.try_emplace({client, server}, next);
  if (fresh) servers_.push_back({client, server});
  return it->second;
}

void ProfileListing::add_rest(const std::vector<uint64_t>& ns_of_label) {
  std::map<std::string, uint64_t> ns_of;
  for (size_t i = 0; i < ns_of_label.size(); ++i) {
    if (ns_of_label[i] != 0) ns_of[rest_name(profile_.labels()[i])] += ns_of_label[i];
  }
  if (busy_.unsampled_ns != 0) ns_of["UNCLAIMED:unsampled"] += busy_.unsampled_ns;
  for (const auto& [name, ns] : ns_of) data_.rest.push_back({name, ns});
  std::ranges::stable_sort(data_.rest, std::greater(), &ListingData::Rest::ns);
}

// Those whose calls may have been counted.
std::vector<bool> ProfileListing::with_calls(const std::vector<Weight>& weights) const {
  std::vector<bool> found(table_.functions.size());
  for (const Weight& weight : weights) {
    const auto frames = profile_.frames_of(weight.stack);
    if (weight.calls == 0) continue;
    for (const FrameId frame :
         frames.first(std::min<size_t>(weight.counted ? 1 : 2, frames.size())))
      found[table_.of_frame[frame]] = true;
  }
  return found;
}

// By scope, stack and root, counted calls behind the rest: of the last first, in as many passes,
// since numbers that are indices are sorted by counting them.
void ProfileListing::sort(std::vector<Weight>& weights) const {
  std::vector<Weight> sorted(weights.size());
  const auto pass = [&](size_t keys, auto key_of) {
    std::vector<size_t> next(keys + 1);
    for (const Weight& weight : weights) ++next[key_of(weight) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (const Weight& weight : weights) sorted[next[key_of(weight)]++] = weight;
    weights.swap(sorted);
  };
  const size_t groups = groups_.all().size();
  pass(profile_.labels().size() + groups, [](const Weight& weight) { return weight.root; });
  pass(profile_.stack_count(), [](const Weight& weight) { return weight.stack; });
  pass(2, [](const Weight& weight) { return weight.counted ? 1U : 0U; });
  if (apart_) pass(scopes(), [](const Weight& weight) { return weight.scope; });
}

// Of a process with less time than is shown of anything, no function is: its root will do, or what
// says that it was served.
std::vector<bool> ProfileListing::worth_walking(const std::vector<Weight>& weights,
                                                ListingKind kind) const {
  std::vector<uint64_t> ns(scopes());
  for (const Weight& weight : weights) ns[weight.scope] += weight.ns;
  std::vector<bool> worth;
  worth.reserve(ns.size());
  for (const uint64_t one : ns)
    worth.push_back(kind == ListingKind::flat ||
                    static_cast<double>(one) * 100 >=
                        options_.threshold * static_cast<double>(busy_.busy_ns));
  return worth;
}

void ProfileListing::add_stacks(const std::vector<Weight>& weights, const std::vector<bool>& worth,
                                CallGraphBuilder builder) {
  std::vector<CallNodeId> roots(profile_.labels().size() + groups_.all().size(), no_call_node);
  std::vector<CallGraphBuilder::Share> shares;
  std::vector<FunctionId> path;
  for (size_t i = 0; i < weights.size();) {
    const Weight& first = weights[i];
    shares.clear();
    uint64_t counted = 0;
    for (; i < weights.size(); ++i) {
      const Weight& weight = weights[i];
      if (weight.scope != first.scope || weight.stack != first.stack ||
          weight.counted != first.counted)
        break;
      if (weight.counted) {
        counted += weight.calls;
        continue;
      }
      CallNodeId& root = roots[weight.root];
      if (root == no_call_node) root = builder.add_root(weight.root);
      if (shares.empty() || shares.back().root != root) shares.push_back({.root = root});
      shares.back().ns += weight.ns;
      shares.back().calls += weight.calls;
    }
    path.clear();
    const auto frames = apart_ ? served_by_.code_of(first.stack) : profile_.frames_of(first.stack);
    const size_t shown = worth[first.scope] ? frames.size()
                         : apart_           ? served_by_.marks_of(first.stack)
                                            : 0;
    for (const FrameId frame : frames.last(shown) | std::views::reverse)
      path.push_back(table_.of_frame[frame]);
    if (first.counted)
      builder.add_calls(first.scope, path, counted);
    else
      builder.add(first.scope, path, shares);
  }
  data_.graph = std::move(builder).finish();
}

void ProfileListing::add_names() {
  data_.busy = busy_;
  data_.functions = std::move(table_.functions);
  data_.whose.emplace_back(apart_ ? "-" : "");
  for (const Label& label : profile_.labels()) data_.titles.push_back(label.name());
  for (const Group& group : groups_.all()) {
    data_.whose.push_back(whose(group));
    data_.titles.push_back(group_title(profile_, options_.by, group));
  }
  for (const ServerScope& scope : servers_) data_.whose.push_back(whose(scope));
  name_marks();
}

// That somebody was served is said of the client: "100k:served by nginx:200".
void ProfileListing::name_marks() {
  std::vector<bool> is_mark(data_.functions.size());
  for (FrameId frame = 0; frame < profile_.frames().size(); ++frame)
    if (served_by_.is_mark(frame)) is_mark[table_.of_frame[frame]] = true;
  for (CallNode& node : data_.graph.nodes)
    if (node.function != no_function && is_mark[node.function] &&
        node.scope >= first_server_scope())
      node.scope = 1 + servers_[node.scope - first_server_scope()].client;
}

// As far as a number tells them, by number; else by name, with a space behind it.
std::string ProfileListing::whose(const Group& group) const {
  if (group.kind == GroupKind::special) return "";
  const Label& label = profile_.labels()[group.label];
  const bool by_pid = options_.by == By::pid || options_.by == By::thread;
  if (!by_pid || label.pid == 0) return group_title(profile_, options_.by, group) + " ";
  return label.host_prefix() + id_text(profile_, options_.by, group);
}

// The server's, for the client: "100>200u:main".
std::string ProfileListing::whose(const ServerScope& scope) const {
  std::string client = whose(groups_.all()[scope.client]);
  while (client.ends_with(' ')) client.pop_back();
  const Group server{.kind = GroupKind::member, .label = scope.server};
  const Label& label = profile_.labels()[scope.server];
  return client + ">" +
         (label.pid ? label.host_prefix() + label.pid_text()
                    : group_title(profile_, By::pid, server) + " ");
}

}  // namespace

ListingData listing_data_of(const Profile& profile, const ReportOptions& options,
                            ListingKind kind) {
  return ProfileListing(profile, options).run(kind);
}

Listing listing_of(const Profile& profile, const ReportOptions& options, ListingKind kind) {
  return {listing_data_of(profile, options, kind), options.unicode};
}

}  // namespace pkprof
