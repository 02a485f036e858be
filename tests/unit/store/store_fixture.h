// SPDX-License-Identifier: Apache-2.0
// A store in a file of its own, and cuts to put into it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "store/store.h"

namespace pkprof::test {

inline constexpr uint64_t second_ns = 1'000'000'000;

class StoreTest : public testing::Test {
 protected:
  StoreTest();
  ~StoreTest() override;

  // Another connection to the same store each time.
  [[nodiscard]] std::unique_ptr<Store> opened(Store::Mode mode = Store::Mode::write) const;
  // Of a new one in `path()`.
  std::unique_ptr<Store> made();
  [[nodiscard]] std::string path() const { return directory_ / "store.db"; }
  // The sentence of the failure to open it; "" if there is none.
  [[nodiscard]] std::string why_not(Store::Mode mode = Store::Mode::write) const;
  // What the sqlite3 command prints: a judge that shares no code with us.
  [[nodiscard]] std::string asked_of_sqlite3(const std::string& sql) const;

  const std::filesystem::path directory_;
};

// Any profile that a store takes: of one host, with figures that fit.
[[nodiscard]] Profile storable_profile(uint64_t seed, size_t samples);

// Two CPUs for a second: nginx in a container of unit "web.service" with 300 ms of it served on
// "batch", batch with the rest. All processes have the same ids on each host.
[[nodiscard]] Profile web_machine();

[[nodiscard]] Cut cut_of(const std::string& host, uint64_t start_unix_ns, Profile profile);

// Sum of samples' time, by what `name` makes of a sample.
template <typename Name>
[[nodiscard]] std::map<std::string, uint64_t> times_by(const Profile& profile, Name name) {
  std::map<std::string, uint64_t> times;
  for (const Profile::Sample& sample : profile.samples())
    times[name(profile, sample)] += sample.value.ns;
  return times;
}

[[nodiscard]] std::string served_name(const Profile& profile, const Profile::Sample& sample);

}  // namespace pkprof::test
