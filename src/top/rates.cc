// SPDX-License-Identifier: Apache-2.0
#include "top/rates.h"

#include <optional>
#include <string_view>

#include "report/format.h"
#include "report/waits/waits.h"
#include "top/screen.h"

namespace pkprof::top {
namespace {

size_t place_of(Column column) {
  return static_cast<size_t>(column) - static_cast<size_t>(first_rate);
}

// Where a sample counts. Idle waits and what was freed for want of memory do nowhere.
std::optional<Column> column_of(Resource resource, std::string_view source) {
  const std::string_view way = wait_kind(source);
  switch (resource) {
    case Resource::cpu:
      return {};
    case Resource::wait:
      return is_idle_wait(way) ? std::nullopt : std::optional(Column::wait);
    case Resource::lock:
      return Column::lock;
    case Resource::memory:
      return way == "reclaimed" ? std::nullopt : std::optional(Column::memory);
    case Resource::disk:
      if (way == "read") return Column::read;
      return way == "write" ? std::optional(Column::write) : std::nullopt;
    case Resource::net:
      if (way == "received") return Column::received;
      return way == "sent" ? std::optional(Column::sent) : std::nullopt;
  }
  return {};
}

}  // namespace

std::string key_of(const Profile& profile, By by, const Group& group) {
  if (by == By::pid || by == By::thread)
    return id_text(profile, by, group) + "/" +
           std::to_string(profile.labels()[group.label].start_ns);
  return std::string(to_string(group.kind)) + "/" + group.name;
}

Rates::Rates(const Profile& profile, By by) {
  Groups groups(profile, by, {});
  std::map<GroupId, User> found;
  for (const auto& [key, value] : profile.samples()) {
    const auto column = column_of(key.resource, profile.text(key.source));
    if (!column || !value.ns) continue;
    const size_t place = place_of(*column);
    total_[place] += value.ns;
    User& user = found[groups.of(key.served, key.served_thread)];
    user.amounts[place] += value.ns;
  }
  for (auto& [id, user] : found) {
    const Group& group = groups.all()[id];
    if (group.kind == GroupKind::special) continue;
    user.label = profile.labels()[group.label];
    user.thread = group.thread;
    users_[key_of(profile, by, group)] = std::move(user);
  }
}

uint64_t Rates::amount(const std::string& key, Column column) const {
  const auto it = users_.find(key);
  return it == users_.end() ? 0 : it->second.amounts[place_of(column)];
}

uint64_t Rates::total(Column column) const {
  return total_[place_of(column)];
}

void Rates::add_rows(Profile& cpu) const {
  const StringId user_code = cpu.string("user");
  for (const auto& [key, user] : users_) {
    const LabelId id = cpu.label(user.label);
    cpu.add({.ran_on = id,
             .served = id,
             .source = user_code,
             .thread = user.thread,
             .served_thread = user.thread},
            {});
  }
}

std::string bytes_a_second(uint64_t bytes, uint64_t ns) {
  if (!bytes || !ns) return "-";
  constexpr double kilo = 1024;
  constexpr double three_digits = 99.95;
  double value = static_cast<double>(bytes) * 1e9 / static_cast<double>(ns);
  std::string unit;
  for (const char* const larger : {"K", "M", "G", "T"}) {
    if (value < kilo - 0.5) break;
    value /= kilo;
    unit = larger;
  }
  if (unit.empty()) return value < 1 ? "<1" : decimal(value, 0);
  return decimal(value, value < three_digits ? 1 : 0) + unit;
}

std::string rate_text(Column column, uint64_t amount, uint64_t ns) {
  if (is_in_bytes(resource_of(column))) return bytes_a_second(amount, ns);
  std::string text = percent_or_dash(amount, ns);
  // Of hundreds of threads that wait, whole numbers.
  if (text.size() >= number_width) text.resize(text.find('.'));
  return text;
}

}  // namespace pkprof::top
