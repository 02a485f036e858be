// SPDX-License-Identifier: Apache-2.0
// Stacks that the kernel side handed over because a file's table was not there yet, finished here
// when they are asked for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "pkprof/user_abi.h"
#include "symbol/symbolizer.h"
#include "unwind/table_maker.h"

struct ring_buffer;

namespace pkprof {

class UnfinishedStacks {
 public:
  // The kernel side's ring and the maker outlive this.
  static Result<std::unique_ptr<UnfinishedStacks>> open(int ring, TableMaker& tables);
  ~UnfinishedStacks();

  // Empties the ring. What their processes have mapped is read at once: they may end soon.
  void collect();
  [[nodiscard]] int poll_fd() const;  // becomes readable when there is one

  struct Finished {
    std::vector<uint64_t> ip;
    pk_stack_end end = PK_STACK_NO_TABLE;
  };
  // The stack of that number; none if it is not known any more. Waits for the tables that it needs.
  [[nodiscard]] Finished finish(uint64_t number);
  // Mappings of code that were read since the last time, and of which process.
  struct Mapped {
    uint64_t time = 0;  // CLOCK_MONOTONIC, ns
    uint32_t pid = 0;
    UserMap map;
  };
  [[nodiscard]] std::vector<Mapped> take_mapped();
  // A reading of the tables is over: stacks of the one before the last are forgotten.
  void forget_old();

 private:
  struct Code;  // what a process has mapped
  struct Stack {
    pk_unfinished head;  // without the top
    std::string top;
    std::shared_ptr<Code> code;
  };
  using Stacks = std::unordered_map<uint64_t, Stack>;

  explicit UnfinishedStacks(TableMaker& tables) : tables_(tables) {}
  void take(const pk_unfinished& record, size_t size);
  std::shared_ptr<Code> code_of(uint32_t pid);
  void want_tables(Code& code, uint32_t pid, std::string_view top);
  std::optional<uint32_t> rule_at(Code& code, uint32_t pid, uint64_t address);

  TableMaker& tables_;
  struct Free {
    void operator()(ring_buffer* ring) const;
  };
  std::unique_ptr<ring_buffer, Free> ring_;
  Stacks stacks_, before_;
  std::map<uint32_t, std::shared_ptr<Code>> codes_;  // as read last
  std::vector<Mapped> mapped_;
};

}  // namespace pkprof
