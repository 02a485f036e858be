// SPDX-License-Identifier: Apache-2.0
#include "attribution/stacks.h"

#include <algorithm>

namespace pkprof {
namespace {

// Stacks of user code that are not resolved anew while they come again. Twice as many are
// remembered at most.
constexpr size_t most_resolved = 32768;

// Where its innermost frame is. Farther out in user code without frame pointers, anything may be.
bool is_kernel_stack(const std::vector<uint64_t>& stack) {
  return stack.front() >> 63;
}

// Code of a file is the same wherever it is mapped; what is in no file is another thing in each
// process.
bool is_of_file(const std::string& file) {
  return file.starts_with('/') || file == "[vdso]";
}

// A return address may lie behind the function it returns to.
uint64_t place_of(std::span<const uint64_t> stack, size_t i) {
  return i ? stack[i] - 1 : stack[i];
}

}  // namespace

Stacks::Stacks(const KernelSymbols* kernel, UserSymbols& user)
    : kernel_symbols_(kernel), user_symbols_(user) {}

void Stacks::hand_over(std::span<const RawStack> stacks) {
  ++round_;
  raw_before_ = std::move(raw_);
  raw_.clear();
  for (const auto& [number, stack] : stacks) {
    if (stack.empty()) continue;
    if (!is_kernel_stack(stack)) {
      raw_.emplace(number, stack);
      continue;
    }
    const auto [it, fresh] = kernel_.try_emplace(number);
    it->second.round = round_;
    if (fresh) it->second.stack = intern_kernel(stack);
  }
}

void Stacks::meet(uint64_t number) {
  if (!number) return;
  const auto it = kernel_.find(number);
  if (it != kernel_.end()) {
    it->second.round = round_;
    return;
  }
  if (!fetch_) return;
  const CountedStack stack = fetch_(number);
  if (!stack.ip.empty()) kernel_[number] = {intern_kernel(stack.ip), round_};
}

StackId Stacks::intern_kernel(const std::vector<uint64_t>& stack) {
  std::vector<FrameId> frames;
  frames.reserve(stack.size());
  for (size_t i = 0; i < stack.size(); ++i) frames.push_back(kernel_frame(place_of(stack, i)));
  return intern(frames);
}

StackId Stacks::intern(Frames frames) {
  const size_t before = tables_.stack_count();
  const StackId stack = tables_.stack(frames);
  if (tables_.stack_count() > before) length_ += frames.size();
  return stack;
}

Stacks::User Stacks::resolve(uint64_t raw, uint64_t image) {
  const UserKey key{raw, image};
  if (const auto it = resolved_.find(key); it != resolved_.end()) return it->second;
  if (resolved_.size() >= most_resolved) {
    resolved_before_ = std::move(resolved_);
    resolved_.clear();
  }
  if (const auto it = resolved_before_.find(key); it != resolved_before_.end()) {
    resolved_.insert(*it);
    return it->second;
  }
  for (const Raw* stacks : {&raw_, &raw_before_}) {
    const auto it = stacks->find(raw);
    if (it == stacks->end()) continue;
    return resolved_[key] = {number_of(it->second, image)};
  }
  const CountedStack stack = fetch_ ? fetch_(raw) : CountedStack();
  // There was no room for it among those that wait for a table.
  if (stack.ip.empty()) return {0, raw & PK_STACK_UNFINISHED ? PK_STACK_NO_TABLE : PK_STACK_ASIDE};
  return resolved_[key] = {number_of(stack.ip, image), stack.end};
}

uint64_t Stacks::number_of(const std::vector<uint64_t>& raw, uint64_t image) {
  std::vector<FrameId> frames;
  frames.reserve(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) add_user_frames(image, place_of(raw, i), frames);
  const auto [it, fresh] = number_of_.try_emplace(intern(frames), next_number_);
  if (fresh) user_[next_number_++].stack = it->first;
  return it->second;
}

// The function's that was called, and before it those of what is inlined there.
void Stacks::add_user_frames(uint64_t image, uint64_t place, std::vector<FrameId>& to) {
  const bool in_file = place >> 62 == PK_FRAME_IN_FILE >> 62;
  const uint64_t file_number = in_file ? place >> PK_FRAME_FILE_SHIFT & PK_FRAME_FILE_MASK : 0;
  const uint64_t address = in_file ? place & ((1ULL << PK_FRAME_FILE_SHIFT) - 1) : place;
  const UserFrame found = user_symbols_.find(image, address, file_number);
  const UserMap& map = found.map;
  Frame frame;
  frame.kind = FrameKind::user;
  frame.address = address;
  frame.function = tables_.string(found.function);
  frame.file = tables_.string(found.source_file);
  frame.line = found.line;
  if (map.end <= map.start) return to.push_back(tables_.frame(frame));
  const uint64_t vaddr = found.vaddr ? *found.vaddr - (address - map.start) : no_vaddr;
  const Mapping mapping{map.start, map.end, map.offset, map.file, found.build_id, vaddr};
  if (is_of_file(map.file)) {
    const auto [it, fresh] = first_met_.try_emplace(
        Part{map.file, found.build_id, map.offset, map.end - map.start, vaddr}, no_mapping);
    if (fresh) it->second = tables_.mapping(mapping);
    frame.mapping = it->second;
    frame.address += tables_.mappings()[frame.mapping].start - map.start;
  } else {
    frame.mapping = tables_.mapping(mapping);
  }
  for (const InlinedFrame& call : found.inlined) {
    Frame inlined = frame;
    inlined.function = tables_.string(call.function);
    inlined.file = tables_.string(call.source_file);
    inlined.line = call.line;
    to.push_back(tables_.frame(inlined));
  }
  to.push_back(tables_.frame(frame));
}

uint64_t Stacks::outermost(uint64_t number, size_t frames) {
  const Frames all = kernel(number);
  if (all.size() <= frames) return number;
  const std::vector<FrameId> outer(all.end() - static_cast<ptrdiff_t>(frames), all.end());
  uint64_t hash = 1;
  for (const FrameId f : outer)
    hash = (hash ^ tables_.frames()[f].address) * 0xff51afd7ed558ccdULL, hash ^= hash >> 32;
  const auto [it, fresh] = kernel_.try_emplace(hash);
  it->second.round = round_;
  if (fresh) it->second.stack = intern(outer);
  return hash;
}

FrameId Stacks::kernel_frame(uint64_t address) {
  Frame frame;
  frame.kind = FrameKind::kernel;
  frame.address = address;
  return tables_.frame(frame);
}

uint64_t Stacks::first_address(uint64_t number) const {
  const Frames frames = kernel(number);
  return frames.empty() ? 0 : tables_.frames()[frames.front()].address;
}

Stacks::Frames Stacks::frames_of(const ByNumber& stacks, uint64_t number) const {
  const auto it = stacks.find(number);
  if (it == stacks.end()) return {};
  return tables_.frames_of(it->second.stack);
}

const KernelSymbol* Stacks::symbol_of(const Frame& frame) const {
  const KernelSymbol* symbol = kernel_symbols_ ? kernel_symbols_->find(frame.address) : nullptr;
  if (symbol || !later_kernel_) return symbol;
  const KernelSymbols* later = later_kernel_();
  return later ? later->find(frame.address) : nullptr;
}

std::string_view Stacks::function(FrameId id) const {
  const Frame& frame = tables_.frames()[id];
  if (frame.kind != FrameKind::kernel) return tables_.text(frame.function);
  const KernelSymbol* symbol = symbol_of(frame);
  return symbol ? symbol->name : std::string_view();
}

void Stacks::keep(const Numbers& kernel, const Numbers& user, uint32_t rounds) {
  const Profile old = std::exchange(tables_, Profile());
  std::erase_if(kernel_, [&](const auto& entry) {
    return !kernel.contains(entry.first) && entry.second.round + rounds < round_;
  });
  std::erase_if(user_, [&](const auto& entry) { return !user.contains(entry.first); });
  length_ = 0;
  first_met_.clear();
  number_of_.clear();
  resolved_.clear();
  resolved_before_.clear();
  std::unordered_map<FrameId, FrameId> moved;
  std::vector<FrameId> frames;
  const auto carry_over = [&](Kept& kept) {
    frames.clear();
    for (const FrameId id : old.frames_of(kept.stack)) {
      const auto [it, fresh] = moved.try_emplace(id);
      if (fresh) {
        Frame f = old.frames()[id];
        f.function = tables_.string(old.text(f.function));
        f.file = tables_.string(old.text(f.file));
        if (f.mapping != no_mapping) {
          const Mapping& m = old.mappings()[f.mapping];
          f.mapping = tables_.mapping(m);
          if (is_of_file(m.file))
            first_met_.try_emplace(Part{m.file, m.build_id, m.offset, m.limit - m.start, m.vaddr},
                                   f.mapping);
        }
        it->second = tables_.frame(f);
      }
      frames.push_back(it->second);
    }
    kept.stack = intern(frames);
  };
  for (auto& [number, kept] : kernel_) carry_over(kept);
  for (auto& [number, kept] : user_) {
    carry_over(kept);
    number_of_[kept.stack] = number;
  }
}

FrameId Stacks::Mover::operator()(FrameId id) {
  const auto [it, fresh] = moved_.try_emplace(id);
  if (!fresh) return it->second;
  const Profile& tables = from_.tables_;
  Frame frame = tables.frames()[id];
  if (frame.kind == FrameKind::kernel) {
    Mapping mapping;
    mapping.file = "[kernel.kallsyms]";
    if (const KernelSymbol* symbol = from_.symbol_of(frame)) {
      frame.function = to_.string(symbol->name);
      if (!symbol->module.empty()) mapping.file = "[" + std::string(symbol->module) + "]";
    }
    frame.mapping = to_.mapping(mapping);
  } else {
    frame.function = to_.string(tables.text(frame.function));
    frame.file = to_.string(tables.text(frame.file));
    if (frame.mapping != no_mapping) frame.mapping = to_.mapping(tables.mappings()[frame.mapping]);
  }
  return it->second = to_.frame(frame);
}

}  // namespace pkprof
