// SPDX-License-Identifier: Apache-2.0
// A store in one file, by SQLite: for one host, or for some that write to the same file in turn.
// Writers append to a log beside the file (WAL), so readers see the last whole cut meanwhile.
#pragma once

#include <memory>
#include <string>

#include "store/sqlite/database.h"
#include "store/store.h"

namespace pkprof::store {

class SqliteStore : public Store {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(const std::string& path, Mode mode);

  SqliteStore(std::string path, Mode mode);  // throws a Failure

  [[nodiscard]] Result<> init() override;
  [[nodiscard]] Result<bool> put(const Cut& cut) override;
  [[nodiscard]] Result<Profile> query(const StoreQuery& query) override;
  [[nodiscard]] Result<StoreInfo> info() override;
  [[nodiscard]] Result<uint64_t> retain(const Retention& keep) override;

 private:
  [[nodiscard]] uint64_t bytes_in_use() const;
  uint64_t delete_cuts(const std::string& which, uint64_t bound);
  void delete_unused();

  const std::string path_;
  Database database_;
};

}  // namespace pkprof::store
