// SPDX-License-Identifier: Apache-2.0
// See listing.h.
#include "report/listing/listing.h"

#include <algorithm>

#include "report/clean.h"

namespace pkprof {

const Function* Listing::function(CallNodeId id) const {
  const FunctionId function = graph().nodes[id].function;
  return function == no_function ? nullptr : &data_.functions[function];
}

bool Listing::is_pseudo(CallNodeId id) const {
  const Function* const known = function(id);
  return known != nullptr && known->kind == FrameKind::pseudo;
}

std::string Listing::prefix(CallNodeId id) const {
  const Function* const known = function(id);
  if (known == nullptr) return "";
  return data_.whose[graph().nodes[id].scope] + (known->kind == FrameKind::user ? "u:" : "k:");
}

const std::string& Listing::title(CallNodeId id) const {
  return data_.titles[graph().nodes[id].scope];
}

std::string Listing::raw_name(CallNodeId id) const {
  const Function* const known = function(id);
  return known == nullptr ? title(id) : prefix(id) + known->name;
}

std::string Listing::name_alone(CallNodeId id) const {
  const Function* const known = function(id);
  if (known != nullptr && !known->named && !known->where.empty())
    return "[unknown in " + clean(known->where, unicode_) + "]";
  if (known != nullptr) return function_title(*known, unicode_);
  return clean(title(id), unicode_);
}

std::string Listing::name(CallNodeId id) const {
  return clean(prefix(id), unicode_) + name_alone(id);
}

// Of a group's name the end is worth most: "…ystem.slice/nginx.service u:main".
std::string Listing::name(CallNodeId id, size_t width) const {
  const std::string whose = clean(prefix(id), unicode_);
  const std::string what = name_alone(id);
  const size_t wanted = display_width(what);
  const size_t left = std::max(width / 2, wanted < width ? width - wanted : 0);
  return fit(fit_tail(whose, left, unicode_) + what, width, unicode_);
}

}  // namespace pkprof
