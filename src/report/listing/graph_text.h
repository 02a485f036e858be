// SPDX-License-Identifier: Apache-2.0
// The call graph in gprof's layout: an entry a function, with its callers above it and what it
// called below, the time of each call behind it; cycles; an index by name. See call_graph.h for
// what the times are, listing.h for the names.
//
// Two things differ from gprof's, since stacks tell what it cannot know: calls within a cycle have
// their times (which overlap), and the total of a cycle's member is that of all stacks it is in.
// In the cycle's own entry the members' times add up, as gprof's do.
#pragma once

#include <string>

#include "report/listing/listing.h"
#include "report/options.h"

namespace pkprof {

// With options.pids, only what was served to them. Functions are those of all processes together
// unless there are pids or options.apart is set. options.limit is the number of entries.
[[nodiscard]] std::string graph_text(const Profile& profile, const ReportOptions& options = {});
[[nodiscard]] std::string graph_text_of(const Listing& listing, const ReportOptions& options);

}  // namespace pkprof
