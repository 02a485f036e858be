// SPDX-License-Identifier: Apache-2.0
// A store keeps cuts of one host or of many, and gives a profile back for any time, hosts and
// processes. The sums are made in the store: a query reads what a profile holds, not each cut.
//
// What stays true of a profile out of a store: CPU time is that of all its cuts together, to the
// nanosecond, and the ledger sums to it. Processes that a query leaves out are OTHER.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/profile.h"
#include "store/cut.h"

namespace pkprof {

// Which processes a query is of; "" is any. All that are given must be true of a process.
struct ProcessFilter {
  std::string container;  // its title in reports, its name or its id
  std::string unit;
  std::string exe;
  std::string image;  // of the container
  std::string comm;
  [[nodiscard]] bool is_any() const {
    return container.empty() && unit.empty() && exe.empty() && image.empty() && comm.empty();
  }
};

struct StoreQuery {
  // Cuts that start in [since, until).
  uint64_t since_unix_ns = 0;
  uint64_t until_unix_ns = UINT64_MAX;
  std::vector<std::string> hosts;             // none: all
  std::map<std::string, std::string> labels;  // a cut must have all of them
  ProcessFilter served;
};

struct StoreInfo {
  struct Host {
    std::string name;
    uint64_t cuts = 0;
    uint64_t first_unix_ns = 0;  // start of the first cut
    uint64_t last_unix_ns = 0;   // end of the last one
    uint64_t cpu_ns = 0;
  };
  std::vector<Host> hosts;  // by name
  uint64_t cuts = 0;
  uint64_t bytes = 0;  // in use
  uint64_t schema = 0;
};

// What retain() keeps to; 0 is without limit.
struct Retention {
  uint64_t oldest_unix_ns = 0;  // cuts that start before it go
  uint64_t max_bytes = 0;       // then the oldest, until that is all there is
};

// For one thread at a time.
class Store {
 public:
  // `create` is for init(): there may be no store yet.
  enum class Mode : uint8_t { read, write, create };

  // "sqlite:PATH", or a path that ends in .db or .sqlite.
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(const std::string& url, Mode mode);

  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  // Makes the tables, or brings those of an older pkprof up to date. A store that is there stays.
  [[nodiscard]] virtual Result<> init() = 0;

  // All of the cut or nothing. False: a cut with this identity is there already, and stays.
  [[nodiscard]] virtual Result<bool> put(const Cut& cut) = 0;

  // Fails where no cut is in it.
  [[nodiscard]] virtual Result<Profile> query(const StoreQuery& query) = 0;

  [[nodiscard]] virtual Result<StoreInfo> info() = 0;

  // Deletes whole cuts, the oldest first, and what no other cut needs; gives the space back. The
  // number of cuts that went.
  [[nodiscard]] virtual Result<uint64_t> retain(const Retention& keep) = 0;
};

}  // namespace pkprof
