// SPDX-License-Identifier: Apache-2.0
#include "unwind/unfinished_stacks.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "symbol/elf/file_access.h"
#include "symbol/maps.h"
#include "unwind/stack_walk.h"

namespace pkprof {
namespace {

constexpr size_t head_bytes = offsetof(pk_unfinished, top);
constexpr size_t most_stacks = 4096;  // 64 MiB
constexpr size_t most_maps_text = 8 << 20;

bool are_the_same(const UserMap& a, const UserMap& b) {
  return a.start == b.start && a.end == b.end && a.offset == b.offset && a.inode == b.inode &&
         a.file == b.file;
}

}  // namespace

struct UnfinishedStacks::Code {
  std::vector<UserMap> maps;              // by address
  std::vector<TableMaker::Table> tables;  // of these
  std::vector<bool> asked;                // whether it is known if there is one
  std::vector<bool> wanted;               // a stack may lead there

  // The number of the one that holds the address; maps.size(): there is none.
  [[nodiscard]] size_t find(uint64_t address) const {
    const auto after = std::ranges::upper_bound(maps, address, {}, &UserMap::start);
    if (after == maps.begin() || address >= (after - 1)->end) return maps.size();
    return static_cast<size_t>(after - maps.begin()) - 1;
  }
};

void UnfinishedStacks::Free::operator()(ring_buffer* ring) const {
  ring_buffer__free(ring);
}

UnfinishedStacks::~UnfinishedStacks() = default;

Result<std::unique_ptr<UnfinishedStacks>> UnfinishedStacks::open(int ring, TableMaker& tables) {
  std::unique_ptr<UnfinishedStacks> stacks(new UnfinishedStacks(tables));
  const auto take = [](void* self, void* data, size_t size) {
    static_cast<UnfinishedStacks*>(self)->take(*static_cast<const pk_unfinished*>(data), size);
    return 0;
  };
  stacks->ring_.reset(ring_buffer__new(ring, take, stacks.get(), nullptr));
  if (!stacks->ring_) return fail_errno("following unfinished stacks");
  return stacks;
}

void UnfinishedStacks::collect() {
  ring_buffer__consume(ring_.get());
}

int UnfinishedStacks::poll_fd() const {
  return ring_buffer__epoll_fd(ring_.get());
}

void UnfinishedStacks::take(const pk_unfinished& record, size_t size) {
  if (size < sizeof(record) || stacks_.size() >= most_stacks) return;
  Stack stack;
  std::memcpy(static_cast<void*>(&stack.head), &record, head_bytes);
  stack.top.assign(reinterpret_cast<const char*>(record.top),
                   std::min<size_t>(record.bytes, sizeof(record.top)));
  stack.code = code_of(record.pid);
  if (stack.code) want_tables(*stack.code, record.pid, stack.top);
  stacks_.insert_or_assign(record.number, std::move(stack));
}

// Read anew each time: a program that begins maps its libraries one after the other. Of a process
// that is gone, as it was.
std::shared_ptr<UnfinishedStacks::Code> UnfinishedStacks::code_of(uint32_t pid) {
  std::shared_ptr<Code>& known = codes_[pid];
  const auto text = read_proc_file("/proc/" + std::to_string(pid) + "/maps", most_maps_text);
  if (!text || text->empty()) return known;
  std::vector<UserMap> maps = parse_maps(*text).executable;
  if (known && std::ranges::equal(known->maps, maps, are_the_same)) return known;
  known = std::make_shared<Code>();
  known->maps = std::move(maps);
  known->tables.resize(known->maps.size());
  known->asked.resize(known->maps.size());
  known->wanted.resize(known->maps.size());
  const uint64_t now = monotonic_ns();
  for (const UserMap& map : known->maps) mapped_.push_back({now, pid, map});
  return known;
}

// Of the files that the stack may lead to, so that they have tables soon: the kernel side comes to
// one after the other. A process has many more mapped.
void UnfinishedStacks::want_tables(Code& code, uint32_t pid, std::string_view top) {
  for (; top.size() >= sizeof(uint64_t); top.remove_prefix(sizeof(uint64_t))) {
    uint64_t word = 0;
    std::memcpy(&word, top.data(), sizeof(word));
    const size_t found = code.find(word);
    if (found == code.maps.size() || code.wanted[found]) continue;
    code.wanted[found] = true;
    const UserMap& map = code.maps[found];
    if (map.inode) tables_.want({0, pid, map.start, map.end, map.inode, map.file});
  }
}

std::optional<uint32_t> UnfinishedStacks::rule_at(Code& code, uint32_t pid, uint64_t address) {
  const size_t found = code.find(address);
  if (found == code.maps.size()) return std::nullopt;
  const UserMap& map = code.maps[found];
  if (!code.asked[found]) {
    code.asked[found] = true;
    if (map.inode || map.file == "[vdso]")
      code.tables[found] = tables_.get({0, pid, map.start, map.end, map.inode, map.file});
  }
  const TableMaker::Table& table = code.tables[found];
  if (!table) return PK_RULE(PK_BY_NOTHING, 0, 0);
  return table->rule_at(address - map.start + map.offset);
}

UnfinishedStacks::Finished UnfinishedStacks::finish(uint64_t number) {
  for (Stacks* some : {&stacks_, &before_}) {
    const auto it = some->find(number);
    if (it == some->end()) continue;
    const Stack& stack = it->second;
    const pk_unfinished& head = stack.head;
    const size_t depth = std::min<size_t>(static_cast<uint32_t>(head.stack.depth), PK_MAX_DEPTH);
    Finished out{.ip = {head.stack.ip, head.stack.ip + depth}};
    if (stack.code)
      out.end = walk_on(
          {head.ip, head.sp, head.fp, head.exact != 0, stack.top},
          [&](uint64_t address) { return rule_at(*stack.code, head.pid, address); }, PK_MAX_DEPTH,
          out.ip);
    return out;
  }
  return {};
}

std::vector<UnfinishedStacks::Mapped> UnfinishedStacks::take_mapped() {
  return std::exchange(mapped_, {});
}

void UnfinishedStacks::forget_old() {
  before_ = std::exchange(stacks_, {});
  codes_.clear();
}

}  // namespace pkprof
