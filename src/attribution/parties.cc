// SPDX-License-Identifier: Apache-2.0
#include "attribution/parties.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attribution/row.h"

namespace pkprof {
namespace {

// A file on a loop device on a file on a loop device ...; and an end to circles.
constexpr int deepest = 6;

// Of a vote's weight, what is left a second later: where it says who was there just now, and where
// it says who made a page dirty, which the kernel writes within half a minute or so.
constexpr double fading = 0.1;
constexpr double fading_of_pages = 0.977;

// Whose votes have faded to less is forgotten: of weights that are numbers, and that are times.
constexpr double least_weight = 0.01;
constexpr double least_part = 1e-5;

bool is_object(uint64_t party) {
  return (party & PK_OBJECT) != 0;
}

}  // namespace

void Parties::add(std::span<const std::pair<pk_vote_key, pk_vote>> votes, double seconds) {
  ++round_;
  now_ += seconds;
  for (const auto& [key, vote] : votes)
    if (vote.anew) objects_[key.object].parties.clear();
  for (const auto& [key, vote] : votes) {
    Object& object = objects_[key.object];
    if (vote.fallback) {
      object.instead = key.party;
      object.round = round_;
      continue;
    }
    if (object.voted < now_) {
      const double left = std::pow(vote.fades ? fading : fading_of_pages, now_ - object.voted);
      double all = 0;
      for (Party& p : object.parties) all += p.weight *= left;
      const double least = std::max(least_weight, all * least_part);
      std::erase_if(object.parties, [=](const Party& p) { return p.weight < least; });
    }
    object.voted = now_;
    object.round = round_;
    object.fades = vote.fades;
    const auto it = std::ranges::find(object.parties, key.party, &Party::party);
    if (it == object.parties.end())
      object.parties.push_back({key.party, static_cast<double>(vote.weight)});
    else
      it->weight += static_cast<double>(vote.weight);
  }
  if (objects_.size() > most_) forget();
}

void Parties::forget_fading() {
  std::erase_if(objects_, [](const auto& o) { return o.second.fades || o.second.instead; });
}

void Parties::forget() {
  std::vector<uint64_t> rounds;
  rounds.reserve(objects_.size());
  for (const auto& [number, object] : objects_) rounds.push_back(object.round);
  const auto middle = rounds.begin() + static_cast<ptrdiff_t>(rounds.size() / 2);
  std::nth_element(rounds.begin(), middle, rounds.end());
  const uint64_t limit = std::min(*middle, round_ - 1);  // never what was voted for just now
  forgotten_ += std::erase_if(objects_, [&](const auto& o) { return o.second.round <= limit; });
}

void Parties::resolve(uint64_t party, double part, int depth, Asked& asked) const {
  const auto give = [&](uint64_t label) {
    const auto [it, fresh] = asked.places.try_emplace(label, asked.shares.size());
    if (fresh) asked.shares.push_back({label, 0});
    asked.shares[it->second].part += part;
  };
  if (!is_object(party)) return give(party);
  const auto it = objects_.find(party);
  double all = 0;
  if (it != objects_.end())
    for (const Party& p : it->second.parties) all += p.weight;
  // Of an owner that votes, they say for which of its clients.
  if (all <= 0)
    if (const uint64_t label = asked.owner(party)) return give(label);
  if (depth == deepest) return give(0);
  if (all <= 0 && asked.finally && it != objects_.end() && it->second.instead)
    return resolve(it->second.instead, part, depth + 1, asked);
  if (all <= 0) return give(0);
  for (const Party& p : it->second.parties)
    resolve(p.party, part * p.weight / all, depth + 1, asked);
}

std::vector<Parties::Share> Parties::of(uint64_t object, const Owner& owner, bool finally) const {
  Asked asked{owner, finally, {}, {}};
  resolve(object, 1, 0, asked);
  std::vector<Share>& shares = asked.shares;
  if (shares.size() == 1 && shares[0].label == 0) shares.clear();
  return std::move(shares);
}

std::vector<std::pair<pk_key, double>> by_party(const pk_key& key, const Parties::Of& parties_of) {
  if (key.served_kind != PK_SERVED_OBJECT) return {{key, 1}};
  const std::vector<Parties::Share> shares = parties_of(key.served);
  if (shares.empty()) return {{key, 1}};
  std::vector<std::pair<pk_key, double>> keys;
  keys.reserve(shares.size());
  for (const auto& [label, part] : shares)
    keys.emplace_back(charged_to(key, label, shares.size() > 1), part);
  return keys;
}

std::vector<uint64_t> split(uint64_t whole, std::span<const Parties::Share> shares) {
  std::vector<uint64_t> parts;
  parts.reserve(shares.size());
  double up_to = 0;
  uint64_t given = 0;
  for (const Parties::Share& s : shares) {
    up_to += s.part;
    const bool last = parts.size() + 1 == shares.size();
    const auto until =
        last ? whole
             : std::min(whole,
                        static_cast<uint64_t>(std::llround(up_to * static_cast<double>(whole))));
    parts.push_back(until - std::min(given, until));
    given = std::max(given, until);
  }
  return parts;
}

void lay_out(std::span<const uint64_t> numbers, std::span<const Parties::Share> shares,
             const std::function<void(size_t, size_t, uint64_t)>& give) {
  std::vector<uint64_t> left =
      split(std::accumulate(numbers.begin(), numbers.end(), uint64_t{0}), shares);
  size_t at = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    uint64_t rest = numbers[i];
    do {
      while (!left[at] && at + 1 < left.size()) ++at;
      const uint64_t piece = std::min(rest, left[at]);
      give(i, at, piece);
      left[at] -= piece;
      rest -= piece;
    } while (rest);
  }
}

}  // namespace pkprof
