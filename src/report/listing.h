// SPDX-License-Identifier: Apache-2.0
// What gprof's two listings are made of: the call graph of a profile and the names of its nodes.
//
// The listing is seamless: user code, the system calls and page faults it made, and the kernel's
// work for it elsewhere are one graph. Roots are those whom the time was for: processes (or
// threads, groups), KERNEL, UNCLAIMED with its reason. A function is named as in the pkprof paper:
// "137k:vfs_read" is the kernel's, for process 137; "137u:main" is the process's own. Where
// functions of all processes are one: "k:vfs_read", "u:main". In a listing of processes apart,
// what was for none is "-k:vfs_read".
#pragma once

#include <string>
#include <vector>

#include "model/profile.h"
#include "report/call_graph.h"
#include "report/format.h"
#include "report/functions.h"
#include "report/groups.h"
#include "report/options.h"

namespace pkprof {

enum class ListingKind : uint8_t { flat, graph };

class Listing {
 public:
  // `profile` must outlive this. Of a flat one see the second constructor of CallGraphBuilder; of a
  // graph, processes apart that are below options.threshold are roots without functions.
  Listing(const Profile& profile, const ReportOptions& options, ListingKind kind);
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;

  [[nodiscard]] const CallGraph& graph() const { return graph_; }
  // Of the nodes, the sum is busy().busy_ns, which is what percentages are of.
  [[nodiscard]] const Busy& busy() const { return busy_; }

  // Time of which the listing has no functions: idle, not selected, unsampled. With busy_ns it is
  // the ledger's sum.
  struct Rest {
    std::string name;  // "IDLE", "OTHER", "UNCLAIMED:unsampled", ...; not cleaned
    uint64_t ns = 0;
  };
  [[nodiscard]] const std::vector<Rest>& rest() const { return rest_; }

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
  struct Weight;
  [[nodiscard]] std::vector<bool> with_calls(const std::vector<Weight>& weights) const;
  void sort(std::vector<Weight>& weights) const;
  [[nodiscard]] std::vector<bool> worth_walking(const std::vector<Weight>& weights,
                                                ListingKind kind) const;  // by scope
  void add_stacks(const std::vector<Weight>& weights, const std::vector<bool>& worth,
                  CallGraphBuilder builder);
  void add_rest(const std::vector<uint64_t>& ns_of_label);
  // Not cleaned.
  [[nodiscard]] std::string prefix(CallNodeId id) const;
  [[nodiscard]] std::string prefix_of_group(const Group& group) const;
  [[nodiscard]] std::string title_of_root(uint32_t root) const;

  const Profile& profile_;
  const ReportOptions options_;
  const bool apart_;
  const FunctionTable table_;
  const Busy busy_;
  Groups groups_;
  CallGraph graph_;
  std::vector<Rest> rest_;
};

}  // namespace pkprof
