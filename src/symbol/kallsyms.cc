// SPDX-License-Identifier: Apache-2.0
// The kernel's symbols, from the text of /proc/kallsyms or from a BPF iterator.
//
// kallsyms knows where symbols begin, not where they end: a symbol ends where the next begins, but
// the last one before a gap (the end of the text, of a module, of a BPF program) must not swallow
// what follows, so no symbol is longer than `max_size`, and the markers of a section's end cover
// nothing. All names live in one buffer; a symbol is 48 bytes, a lookup one binary search over an
// array of starting addresses.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>

#include "symbol/elf/file_access.h"
#include "symbol/symbolizer.h"

namespace pkprof {
namespace {

constexpr uint64_t max_size = uint64_t{1} << 20;
constexpr size_t max_text = size_t{256} << 20;  // of /proc/kallsyms; 20 times what it has

constexpr const char* hidden_message =
    "kernel symbols: all addresses are hidden (kernel.kptr_restrict); run as root with CAP_SYSLOG, "
    "or `sysctl kernel.kptr_restrict=0`";

bool is_of_kind(char type, KernelSymbols::Kind kind) {
  const std::string_view of_kind = kind == KernelSymbols::Kind::text ? "tTwW" : "bBdDrR";
  return of_kind.contains(type);
}

// The linker's, at the begin and end of a table.
bool is_mark(const KernelEntry& entry) {
  return entry.module.empty() &&
         (entry.name.starts_with("__start_") || entry.name.starts_with("__stop_"));
}

bool is_end_marker(std::string_view name) {
  return name == "_etext" || name == "_einittext" || name == "_end" || name.ends_with("_text_end");
}

bool is_marker(std::string_view name) {
  return is_end_marker(name) || name == "_text" || name == "_stext" || name == "_sinittext" ||
         name == "startup_64" || name.ends_with("_text_start");
}

// Smaller is better. Prefixes and section markers name a place that has a better name; parts and
// clones that the compiler made have a dot. A system call without arguments is one function for all
// programs, those of 32 bits too.
int alias_rank(std::string_view name, char type) {
  int rank = type == 'T' ? 0 : type == 'W' ? 1 : type == 't' ? 2 : 3;
  if (name.find('.') != std::string_view::npos) rank += 4;
  if (is_marker(name)) rank += 8;
  if (name.starts_with("__pfx_") || name.starts_with("__cfi_")) rank += 16;
  return 2 * rank + (name.starts_with("__ia32_") ? 1 : 0);
}

constexpr std::array<int8_t, 256> hex_values = [] {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (int i = 0; i < 10; ++i) values['0' + i] = static_cast<int8_t>(i);
  for (int i = 0; i < 6; ++i) {
    values['a' + i] = static_cast<int8_t>(10 + i);
    values['A' + i] = static_cast<int8_t>(10 + i);
  }
  return values;
}();

// "ffffffff81000000 T _stext\t[module]"; false when the line is not of this form.
bool parse_line(std::string_view line, KernelEntry& entry) {
  uint64_t address = 0;
  size_t i = 0;
  for (; i < line.size(); ++i) {
    const int8_t digit = hex_values[static_cast<unsigned char>(line[i])];
    if (digit < 0) break;
    address = address << 4 | static_cast<uint8_t>(digit);
  }
  if (i == 0 || i > 16 || line.size() < i + 4 || line[i] != ' ' || line[i + 2] != ' ') return false;
  entry.address = address;
  entry.type = line[i + 1];
  std::string_view name = line.substr(i + 3);
  entry.module = {};
  const size_t tab = name.find('\t');
  if (tab != std::string_view::npos) {
    const std::string_view rest = name.substr(tab);
    const size_t open = rest.find('[');
    const size_t close = rest.rfind(']');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
      return false;
    }
    entry.module = rest.substr(open + 1, close - open - 1);
    name = name.substr(0, tab);
  }
  entry.name = name;
  return !name.empty();
}

struct Key {
  uint64_t address;
  uint32_t index;  // of the entry
};

// All but modules and BPF programs come in order.
void sort_by_address(std::vector<Key>& keys) {
  const auto before = [](const Key& a, const Key& b) {
    return std::tie(a.address, a.index) < std::tie(b.address, b.index);
  };
  const auto unsorted = std::is_sorted_until(keys.begin(), keys.end(), before);
  std::sort(unsorted, keys.end(), before);
  std::inplace_merge(keys.begin(), unsorted, keys.end(), before);
}

// Puts the best of those at one address first.
void rank_aliases(std::vector<Key>& keys, std::span<const KernelEntry> entries) {
  const auto rank = [&](const Key& key) {
    return alias_rank(entries[key.index].name, entries[key.index].type);
  };
  for (auto first = keys.begin(); first != keys.end();) {
    auto last = first + 1;
    while (last != keys.end() && last->address == first->address) ++last;
    if (last - first > 1) {
      std::stable_sort(first, last, [&](const Key& a, const Key& b) { return rank(a) < rank(b); });
    }
    first = last;
  }
}

}  // namespace

struct KernelSymbols::Impl {
  std::unique_ptr<char[]> names;
  std::vector<KernelSymbol> symbols;  // by address, at one address the best name first
  std::vector<uint64_t> starts;       // the different addresses
  std::vector<uint32_t> firsts;       // the first symbol at each
  std::vector<uint32_t> by_name;      // made when first needed
  std::once_flag by_name_made;
  std::map<std::string, uint64_t, std::less<>> marks;
  size_t malformed = 0;

  void store(std::span<const KernelEntry> entries, Kind kind);
  void set_ends();
  void sort_names();
};

// Copies the symbols of the kind that have an address, in order of address.
void KernelSymbols::Impl::store(std::span<const KernelEntry> entries, Kind kind) {
  std::vector<Key> keys;
  keys.reserve(entries.size());
  size_t bytes = 0;
  std::string_view last_module;
  for (uint32_t i = 0; i < entries.size(); ++i) {
    const KernelEntry& e = entries[i];
    if (!is_of_kind(e.type, kind) || e.address == 0) continue;
    keys.push_back({e.address, i});
    bytes += e.name.size() + e.module.size();
  }
  sort_by_address(keys);
  rank_aliases(keys, entries);

  names = std::make_unique<char[]>(bytes + 1);
  char* next = names.get();
  const auto copy = [&](std::string_view text) {
    if (text.empty()) return std::string_view();
    std::memcpy(next, text.data(), text.size());
    const std::string_view stored(next, text.size());
    next += text.size();
    return stored;
  };
  symbols.reserve(keys.size());
  for (const Key& key : keys) {
    const KernelEntry& e = entries[key.index];
    if (e.module != last_module) last_module = copy(e.module);
    symbols.push_back({copy(e.name), last_module, e.address, 0});
  }
  set_ends();
}

void KernelSymbols::Impl::set_ends() {
  for (size_t i = 0; i < symbols.size();) {
    size_t next = i + 1;
    while (next < symbols.size() && symbols[next].start == symbols[i].start) ++next;
    const uint64_t start = symbols[i].start;
    uint64_t end = start > UINT64_MAX - max_size ? UINT64_MAX : start + max_size;
    if (next < symbols.size()) end = std::min(end, symbols[next].start);
    if (is_end_marker(symbols[i].name)) end = start;
    starts.push_back(start);
    firsts.push_back(static_cast<uint32_t>(i));
    for (; i < next; ++i) symbols[i].end = end;
  }
}

void KernelSymbols::Impl::sort_names() {
  by_name.resize(symbols.size());
  std::iota(by_name.begin(), by_name.end(), 0U);
  std::sort(by_name.begin(), by_name.end(), [&](uint32_t a, uint32_t b) {
    const int order = symbols[a].name.compare(symbols[b].name);
    return order != 0 ? order < 0 : a < b;
  });
}

KernelSymbols::KernelSymbols() : impl_(std::make_unique<Impl>()) {}
KernelSymbols::~KernelSymbols() = default;
KernelSymbols::KernelSymbols(KernelSymbols&&) noexcept = default;
KernelSymbols& KernelSymbols::operator=(KernelSymbols&&) noexcept = default;

Result<KernelSymbols> KernelSymbols::parse(std::string_view kallsyms, Kind kind) {
  if (kallsyms.empty()) return fail("kernel symbols: the kernel shows none (CONFIG_KALLSYMS)");
  std::vector<KernelEntry> entries;
  entries.reserve(kallsyms.size() / 40);
  size_t malformed = 0;
  while (!kallsyms.empty()) {
    const size_t newline = kallsyms.find('\n');
    const std::string_view line = kallsyms.substr(0, newline);
    kallsyms.remove_prefix(newline == std::string_view::npos ? kallsyms.size() : newline + 1);
    KernelEntry entry;
    if (parse_line(line, entry)) {
      entries.push_back(entry);
    } else if (!line.empty()) {
      ++malformed;
    }
  }
  auto symbols = from_entries(entries, kind);
  if (symbols) symbols->impl_->malformed = malformed;
  return symbols;
}

Result<KernelSymbols> KernelSymbols::from_entries(std::span<const KernelEntry> entries, Kind kind) {
  bool seen = false;
  bool shown = false;
  KernelSymbols symbols;
  for (const KernelEntry& entry : entries) {
    if (is_mark(entry)) symbols.impl_->marks.emplace(entry.name, entry.address);
    if (!is_of_kind(entry.type, kind)) continue;
    seen = true;
    shown |= entry.address != 0;
  }
  if (!seen)
    return fail("kernel symbols: there are no " +
                std::string(kind == Kind::text ? "text" : "data") + " symbols");
  if (!shown) return fail(hidden_message);
  if (entries.size() > UINT32_MAX) return fail("kernel symbols: too many");
  symbols.impl_->store(entries, kind);
  return symbols;
}

Result<KernelSymbols> KernelSymbols::from_proc(Kind kind) {
  auto text = read_proc_file("/proc/kallsyms", max_text);
  if (!text) return std::unexpected(text.error().in("kernel symbols"));
  return parse(*text, kind);
}

const KernelSymbol* KernelSymbols::find(uint64_t address) const {
  const auto& starts = impl_->starts;
  const auto it = std::upper_bound(starts.begin(), starts.end(), address);
  if (it == starts.begin()) return nullptr;
  const auto index = static_cast<size_t>(it - starts.begin()) - 1;
  const KernelSymbol& symbol = impl_->symbols[impl_->firsts[index]];
  return address < symbol.end ? &symbol : nullptr;
}

std::vector<KernelSymbol> KernelSymbols::by_name(std::string_view name) const {
  std::call_once(impl_->by_name_made, [&] { impl_->sort_names(); });
  const auto& symbols = impl_->symbols;
  const auto& order = impl_->by_name;
  std::vector<KernelSymbol> found;
  auto it = std::lower_bound(order.begin(), order.end(), name,
                             [&](uint32_t i, std::string_view n) { return symbols[i].name < n; });
  for (; it != order.end() && symbols[*it].name == name; ++it) found.push_back(symbols[*it]);
  return found;
}

uint64_t KernelSymbols::mark(std::string_view name) const {
  const auto it = impl_->marks.find(name);
  return it == impl_->marks.end() ? 0 : it->second;
}

std::span<const KernelSymbol> KernelSymbols::all() const {
  return impl_->symbols;
}
size_t KernelSymbols::size() const {
  return impl_->symbols.size();
}
size_t KernelSymbols::malformed() const {
  return impl_->malformed;
}

}  // namespace pkprof
