// SPDX-License-Identifier: Apache-2.0
// Which database a URL names.
#include "store/sqlite/sqlite_store.h"
#include "store/store.h"

namespace pkprof {

Result<std::unique_ptr<Store>> Store::open(const std::string& url, Mode mode) {
  constexpr std::string_view sqlite = "sqlite:";
  if (url.starts_with(sqlite) && url.size() > sqlite.size())
    return store::SqliteStore::open(url.substr(sqlite.size()), mode);
  if (url.ends_with(".db") || url.ends_with(".sqlite")) return store::SqliteStore::open(url, mode);
  return fail(url + " names no store: give sqlite:FILE, or a file that ends in .db or .sqlite");
}

}  // namespace pkprof
