// SPDX-License-Identifier: Apache-2.0
// Whom objects are for. The kernel side tells who has a part in a file, a journal's transaction, a
// CPU's put-off work (bpf/who/party.bpf.h); here the votes are added up, and what was charged to an
// object is split by them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pkprof/user_abi.h"

namespace pkprof {

class Parties {
 public:
  struct Share {
    uint64_t label;  // 0: nobody is known for this part
    double part;     // of 1
  };
  // Gives a label for an object that has one owner, or 0.
  using Owner = std::function<uint64_t(uint64_t)>;
  // As of() does.
  using Of = std::function<std::vector<Share>(uint64_t object)>;

  // Remembers up to so many objects; those voted for least recently are forgotten first.
  explicit Parties(size_t most = 262144) : most_(most) {}

  // The votes since the last call, so many seconds ago. What fades counts a tenth as much each
  // second, and what does not, half as much after thirty.
  void add(std::span<const std::pair<pk_vote_key, pk_vote>> votes, double seconds = 1);
  // The parts add up to 1. Empty: nobody is known for any of it. `finally`: nobody else will be, so
  // that what counts only in the end counts.
  [[nodiscard]] std::vector<Share> of(uint64_t object, const Owner& owner,
                                      bool finally = false) const;
  // Nobody watched for a while. What says who was there just now, or is left for the end, holds no
  // more: at the same address may be another object.
  void forget_fading();
  [[nodiscard]] uint64_t forgotten() const { return forgotten_; }

 private:
  struct Party {
    uint64_t party;  // a label, or another object
    double weight;
  };
  struct Object {
    std::vector<Party> parties;
    double voted = 0;      // when it was last, by now_
    uint64_t instead = 0;  // whom it is for if there are none in the end
    uint64_t round = 0;    // in which it was voted for last
    bool fades = false;    // its votes say who was there just now
  };
  struct Asked {
    const Owner& owner;
    bool finally;
    std::vector<Share> shares;
    std::unordered_map<uint64_t, size_t> places;  // of labels, in shares
  };
  void resolve(uint64_t party, double part, int depth, Asked& asked) const;
  void forget();

  size_t most_;
  uint64_t round_ = 0;
  double now_ = 0;  // seconds
  uint64_t forgotten_ = 0;
  std::unordered_map<uint64_t, Object> objects_;
};

// What is charged to an object, under those whom it is for, and for how much of it; where they are
// not known, and what is for a label, as it is.
[[nodiscard]] std::vector<std::pair<pk_key, double>> by_party(const pk_key& key,
                                                              const Parties::Of& parties_of);

// Parts of a whole number, as near to the shares as can be, that add up to it.
[[nodiscard]] std::vector<uint64_t> split(uint64_t whole, std::span<const Parties::Share> shares);

// Up to so many have their part of each of several numbers.
inline constexpr size_t few_parties = 64;

// For which of a thousand a sample was nobody knows. So the numbers are laid end to end, and cut
// where one party's part of all of it ends and the next one's begins: numbers and parties have what
// they would have otherwise, in as many pieces as there are of both, and not of one times the
// other. `give` has the number's place, the party's, and the piece; each number has one piece at
// least.
void lay_out(std::span<const uint64_t> numbers, std::span<const Parties::Share> shares,
             const std::function<void(size_t, size_t, uint64_t)>& give);

}  // namespace pkprof
