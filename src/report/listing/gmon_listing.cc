// SPDX-License-Identifier: Apache-2.0
// See gmon_listing.h.
#include "report/listing/gmon_listing.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "report/listing/divided_graph.h"

namespace pkprof {

namespace {

constexpr size_t no_place = SIZE_MAX;
constexpr double most_seconds = 1e8;  // of one function: some years

// Where the "k:" is in "137k:vfs_read", "-k:schedule", "sh[ended] k:vfs_read".
size_t side_of(std::string_view name, const char* side) {
  size_t at = name.find(side);
  while (at != std::string_view::npos) {
    const char before = at == 0 ? 'x' : name[at - 1];
    if ((before >= '0' && before <= '9') || before == '-' || before == ' ') return at;
    at = name.find(side, at + 1);
  }
  return at;
}

class GmonListing {
 public:
  Result<> add(const GmonSource& source);
  Result<ListingData> run();

 private:
  struct Name {
    std::string whose;
    Function function;
    bool root = false;
    bool counted = true;
  };

  // Histograms of one range.
  struct Counters {
    uint64_t low = 0;
    uint64_t high = 0;
    std::vector<double> seconds;
  };

  Result<> check_recording(const GmonSource& source);
  [[nodiscard]] static Name name_of(const GmonSource& source, size_t place);
  [[nodiscard]] static size_t place_of(const GmonSource& source, uint64_t address);
  static Result<std::vector<Counters>> add_up(const GmonSource& source);
  Result<> add_times(const GmonSource& source);
  static void add_time(const GmonSource& source, const Counters& counters,
                       std::vector<double>& seconds);
  void add_arcs(const GmonSource& source);
  CallNodeId node_of(const GmonSource& source, size_t place);
  uint32_t scope_of(const std::string& whose);
  void add_rest();

  ListingData data_;
  std::map<std::string, uint32_t> scopes_;
  std::vector<CallNodeId> node_of_place_;  // of the source at hand
  std::vector<bool> counted_;              // by node: arcs into it are calls
  std::map<std::pair<CallNodeId, CallNodeId>, uint64_t> counts_;
  const GmonSource* first_ = nullptr;  // that pkprof wrote
};

Result<> GmonListing::add(const GmonSource& source) {
  if (source.about) {
    if (auto same = check_recording(source); !same) return same;
    // One more is behind them.
    if (source.functions.size() < source.about->functions.size())
      return fail(source.path + ": its symbols are not those that pkprof wrote for it");
  }
  node_of_place_.assign(source.functions.size(), no_call_node);
  if (auto times = add_times(source); !times) return times;
  add_arcs(source);
  return {};
}

Result<> GmonListing::check_recording(const GmonSource& source) {
  if (first_ == nullptr) first_ = &source;
  const GmonAbout& one = *first_->about;
  const GmonAbout& other = *source.about;
  if (one.start_unix_ns == other.start_unix_ns && one.host == other.host) return {};
  return fail(first_->path + " and " + source.path + " are of different recordings");
}

// A root is named as a whole.
GmonListing::Name GmonListing::name_of(const GmonSource& source, size_t place) {
  const std::string& full = source.functions[place].name;
  if (!source.about) {
    return {.whose = source.whose,
            .function = {.name = full, .where = source.where, .kind = FrameKind::user}};
  }
  if (place >= source.about->functions.size()) return {.function = {.name = full, .where = ""}};
  const GmonAbout::FunctionAbout& about = source.about->functions[place];
  if (about.root) return {.function = {.name = full, .where = ""}, .root = true};
  const size_t side = side_of(full, about.kind == FrameKind::user ? "u:" : "k:");
  const bool named = side != std::string::npos;
  return {
      .whose = named ? full.substr(0, side) : "",
      .function = {.name = named ? full.substr(side + 2) : full,
                   .where =
                       about.file < 0 ? "" : source.about->files[static_cast<size_t>(about.file)],
                   .kind = about.kind},
      .counted = about.counted};
}

uint32_t GmonListing::scope_of(const std::string& whose) {
  const auto [it, fresh] = scopes_.try_emplace(whose, static_cast<uint32_t>(scopes_.size()));
  if (fresh) data_.whose.push_back(whose);
  return it->second;
}

CallNodeId GmonListing::node_of(const GmonSource& source, size_t place) {
  CallNodeId& id = node_of_place_[place];
  if (id != no_call_node) return id;
  Name name = name_of(source, place);
  CallNode node;
  if (name.root) {
    node.scope = static_cast<uint32_t>(data_.titles.size());
    data_.titles.push_back(std::move(name.function.name));
  } else {
    node.scope = scope_of(name.whose);
    node.function = static_cast<FunctionId>(data_.functions.size());
    data_.functions.push_back(std::move(name.function));
  }
  id = static_cast<CallNodeId>(data_.graph.nodes.size());
  data_.graph.nodes.push_back(node);
  counted_.push_back(name.counted);
  return id;
}

// The function that an address is in.
size_t GmonListing::place_of(const GmonSource& source, uint64_t address) {
  const auto it =
      std::ranges::upper_bound(source.functions, address, {}, &FileCode::Function::start);
  if (it == source.functions.begin() || address >= std::prev(it)->end) return no_place;
  return static_cast<size_t>(std::prev(it) - source.functions.begin());
}

// Of one range, several histograms add up; ranges that overlap otherwise gprof refuses, too.
Result<std::vector<GmonListing::Counters>> GmonListing::add_up(const GmonSource& source) {
  std::vector<const GmonHistogram*> order;
  for (const GmonHistogram& histogram : source.gmon.histograms) {
    if (histogram.dimension != "seconds") return fail(source.path + ": a histogram is not of time");
    if (!histogram.counts.empty()) order.push_back(&histogram);
  }
  std::ranges::stable_sort(order, {},
                           [](const GmonHistogram* h) { return std::pair(h->low, h->high); });
  std::vector<Counters> all;
  for (const GmonHistogram* const histogram : order) {
    const auto& [low, high, rate, dimension, abbreviation, counts] = *histogram;
    const bool again = !all.empty() && all.back().low == low && all.back().high == high &&
                       all.back().seconds.size() == counts.size();
    if (!again && !all.empty() && low < all.back().high)
      return fail(source.path + ": two histograms overlap");
    if (!again)
      all.push_back({.low = low, .high = high, .seconds = std::vector<double>(counts.size())});
    for (size_t i = 0; i < counts.size(); ++i)
      all.back().seconds[i] += static_cast<double>(counts[i]) / static_cast<double>(rate);
  }
  return all;
}

Result<> GmonListing::add_times(const GmonSource& source) {
  const Result<std::vector<Counters>> all = add_up(source);
  if (!all) return std::unexpected(all.error());
  std::vector<double> seconds(source.functions.size());
  for (const Counters& counters : *all) add_time(source, counters, seconds);
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (seconds[i] > most_seconds) return fail(source.path + ": more time than there can be");
    const auto ns = static_cast<uint64_t>(std::llround(seconds[i] * 1e9));
    if (ns != 0) data_.graph.nodes[node_of(source, i)].self_ns += ns;
  }
  return {};
}

// A counter's addresses may be of several functions, each of which gets its part, as gprof does.
void GmonListing::add_time(const GmonSource& source, const Counters& counters,
                           std::vector<double>& seconds) {
  const size_t size = counters.seconds.size();
  const auto address = [&](size_t i) {
    return counters.low +
           static_cast<uint64_t>(static_cast<unsigned __int128>(counters.high - counters.low) * i /
                                 size);
  };
  size_t place = 0;
  for (size_t i = 0; i < size; ++i) {
    if (counters.seconds[i] == 0) continue;
    const uint64_t low = address(i);
    const uint64_t high = address(i + 1);
    while (place < source.functions.size() && source.functions[place].end <= low) ++place;
    for (size_t at = place; at < source.functions.size(); ++at) {
      const FileCode::Function& function = source.functions[at];
      if (function.start >= high) break;
      const uint64_t common = std::min(high, function.end) - std::max(low, function.start);
      seconds[at] +=
          counters.seconds[i] * static_cast<double>(common) / static_cast<double>(high - low);
    }
  }
}

void GmonListing::add_arcs(const GmonSource& source) {
  for (const GmonArc& arc : source.gmon.arcs) {
    const size_t from = place_of(source, arc.from);
    const size_t to = place_of(source, arc.to);
    if (from == no_place || to == no_place || arc.count == 0) continue;
    counts_[{node_of(source, from), node_of(source, to)}] += arc.count;
  }
}

Result<ListingData> GmonListing::run() {
  std::vector<uint64_t> counts;
  for (const auto& [arc, count] : counts_) {
    data_.graph.arcs.push_back(
        {.caller = arc.first, .callee = arc.second, .calls = counted_[arc.second] ? count : 0});
    counts.push_back(count);
  }
  divide_by_counts(data_.graph, counts);
  for (const CallNode& node : data_.graph.nodes) data_.busy.busy_ns += node.self_ns;
  add_rest();
  return std::move(data_);
}

// The rest is in files that are not among these.
void GmonListing::add_rest() {
  if (first_ == nullptr) return;
  const GmonAbout& about = *first_->about;
  Busy& busy = data_.busy;
  busy.cpus = about.cpus;
  busy.duration_ns = about.duration_ns;
  busy.cpu_ns = static_cast<uint64_t>(std::min<unsigned __int128>(
      static_cast<unsigned __int128>(about.cpus) * about.duration_ns, UINT64_MAX / 2));
  busy.watched =
      watched_share({.duration_ns = about.duration_ns, .unwatched_ns = about.unwatched_ns});
  busy.idle_ns = about.idle_ns;
  busy.steal_ns = about.steal_ns;
  busy.unsampled_ns = about.unsampled_ns;
  const uint64_t known = busy.busy_ns + busy.idle_ns + busy.steal_ns + busy.unsampled_ns;
  if (known < busy.cpu_ns) busy.left_out_ns = busy.cpu_ns - known;
  const auto add = [&](const char* name, uint64_t ns) {
    if (ns != 0) data_.rest.push_back({name, ns});
  };
  add("(in other files)", busy.left_out_ns);
  add("IDLE", busy.idle_ns);
  add("STEAL", busy.steal_ns);
  add("UNCLAIMED:unsampled", busy.unsampled_ns);
  std::ranges::stable_sort(data_.rest, std::greater(), &ListingData::Rest::ns);
}

}  // namespace

Result<ListingData> gmon_listing(std::span<const GmonSource> sources) {
  GmonListing listing;
  for (const GmonSource& source : sources) {
    if (auto added = listing.add(source); !added) return std::unexpected(added.error());
  }
  return listing.run();
}

}  // namespace pkprof
