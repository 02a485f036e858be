// SPDX-License-Identifier: Apache-2.0
#include "agent/store_sink.h"

#include <algorithm>

#include "base/clock.h"
#include "model/pprof/pprof.h"

namespace pkprof {
namespace {

// What is too old or too much goes once an hour: all charges are read for it.
constexpr auto between_retains = std::chrono::hours(1);

}  // namespace

Result<> StoreSink::open() {
  auto store = Store::open(url_, Store::Mode::create);
  if (!store) return std::unexpected(store.error());
  if (auto r = (*store)->init(); !r) return r;
  store_ = std::move(*store);
  return {};
}

Result<> StoreSink::put_into(const CutFile& file) {
  auto profile = read_profile(file.path);
  if (!profile) return std::unexpected(profile.error());
  const Cut cut{.host = file.host,
                .boot_id = file.boot,
                .start_unix_ns = file.start_unix_ns,
                .labels = file.labels,
                .profile = std::move(*profile)};
  if (auto r = store_->put(cut); !r) return std::unexpected(r.error());
  return retain();
}

Result<> StoreSink::retain() {
  const auto now = std::chrono::steady_clock::now();
  if ((!keep_.age_ns && !keep_.bytes) || now < next_retain_) return {};
  next_retain_ = now + between_retains;
  const uint64_t oldest = keep_.age_ns ? unix_ns() - std::min(unix_ns(), keep_.age_ns) : 0;
  const auto gone = store_->retain({.oldest_unix_ns = oldest, .max_bytes = keep_.bytes});
  if (!gone) return std::unexpected(gone.error());
  return {};
}

// A store that has failed is opened anew the next time.
Result<> StoreSink::put(const CutFile& file) {
  if (!store_)
    if (auto r = open(); !r) return r;
  Result<> done = put_into(file);
  if (!done) store_.reset();
  return done;
}

}  // namespace pkprof
