// SPDX-License-Identifier: Apache-2.0
#include "kernel/object/client_table.h"

#include <sys/mman.h>

#include <utility>

namespace pkprof {
namespace {

constexpr size_t table_bytes = PK_CLIENTS * sizeof(pk_client);

}  // namespace

Result<ClientTable> ClientTable::of(int map) {
  void* memory = ::mmap(nullptr, table_bytes, PROT_READ, MAP_SHARED, map, 0);
  if (memory == MAP_FAILED) return fail_errno("mapping the table of clients");
  ClientTable table;
  table.all_ = {static_cast<const pk_client*>(memory), PK_CLIENTS};
  return table;
}

ClientTable::ClientTable(ClientTable&& other) noexcept : all_(std::exchange(other.all_, {})) {}

ClientTable& ClientTable::operator=(ClientTable&& other) noexcept {
  std::swap(all_, other.all_);
  return *this;
}

ClientTable::~ClientTable() {
  if (!all_.empty()) ::munmap(const_cast<pk_client*>(all_.data()), table_bytes);
}

}  // namespace pkprof
