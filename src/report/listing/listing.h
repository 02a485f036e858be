// SPDX-License-Identifier: Apache-2.0
// What gprof's two listings are made of: a call graph and the names of its nodes.
//
// The listing is seamless: user code, the system calls and page faults it made, and the kernel's
// work for it elsewhere are one graph. Roots are those whom the time was for: processes (or
// threads, groups), KERNEL, UNCLAIMED with its reason. A function is named as in the pkprof paper:
// "137k:vfs_read" is the kernel's, for process 137; "137u:main" is the process's own. Where
// functions of all processes are one: "k:vfs_read", "u:main". In a listing of processes apart,
// what was for none is "-k:vfs_read". In a profile that is charged to clients a server's functions
// are below «served by NAME», and named by both: "100>200u:main" is the server's, 200, for 100.
#pragma once

#include <string>
#include <vector>

#include "model/profile.h"
#include "report/format.h"
#include "report/functions.h"
#include "report/listing/call_graph.h"
#include "report/options.h"

namespace pkprof {

// Names are not cleaned.
struct ListingData {
  // Time of which the listing has no functions.
  struct Rest {
    std::string name;  // "IDLE", "STEAL", "OTHER", "UNCLAIMED:unsampled", ...
    uint64_t ns = 0;
  };

  CallGraph graph;
  std::vector<Function> functions;  // by FunctionId
  std::vector<std::string> whose;   // by scope: what stands before "k:" and "u:"
  std::vector<std::string> titles;  // of roots, by their numbers
  Busy busy;                        // the nodes' own times add up to busy.busy_ns
  std::vector<Rest> rest;           // with busy.busy_ns it is the ledger's sum
};

class Listing {
 public:
  Listing(ListingData data, bool unicode) : data_(std::move(data)), unicode_(unicode) {}

  using Rest = ListingData::Rest;
  [[nodiscard]] const CallGraph& graph() const { return data_.graph; }
  // What percentages are of.
  [[nodiscard]] const Busy& busy() const { return data_.busy; }
  [[nodiscard]] const std::vector<Rest>& rest() const { return data_.rest; }

  // What a node is called, cleaned: "137k:«softirq:NET_RX»".
  [[nodiscard]] std::string name(CallNodeId id) const;
  // The same in so many columns: of the two parts each gives way to the other down to a half.
  [[nodiscard]] std::string name(CallNodeId id, size_t width) const;
  [[nodiscard]] std::string name_alone(CallNodeId id) const;  // without the "137k:"
  // Not cleaned: "137k:softirq:NET_RX".
  [[nodiscard]] std::string raw_name(CallNodeId id) const;
  // Null for a root.
  [[nodiscard]] const Function* function(CallNodeId id) const;
  [[nodiscard]] bool is_pseudo(CallNodeId id) const;

 private:
  [[nodiscard]] std::string prefix(CallNodeId id) const;  // not cleaned
  [[nodiscard]] const std::string& title(CallNodeId id) const;

  ListingData data_;
  bool unicode_;
};

enum class ListingKind : uint8_t { flat, graph };

// Of a flat one see the second constructor of CallGraphBuilder; of a graph, processes apart that
// are below options.threshold are roots without functions.
[[nodiscard]] ListingData listing_data_of(const Profile& profile, const ReportOptions& options,
                                          ListingKind kind);
[[nodiscard]] Listing listing_of(const Profile& profile, const ReportOptions& options,
                                 ListingKind kind);

}  // namespace pkprof
