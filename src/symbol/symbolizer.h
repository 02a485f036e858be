// SPDX-License-Identifier: Apache-2.0
// From addresses to names, after the fact: kernel addresses through kallsyms, user addresses
// through a history of each process's mappings (recorded while it lived) and the ELF files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbol/elf/file_code.h"

namespace pkprof {

struct KernelSymbol {
  std::string_view name;    // valid as long as the KernelSymbols
  std::string_view module;  // "" for the kernel proper, "bpf" for BPF programs
  uint64_t start = 0;
  uint64_t end = 0;  // first address past it
};

// A symbol as the collector hands it in. `type` is kallsyms' letter; `module` as in KernelSymbol.
struct KernelEntry {
  uint64_t address = 0;
  std::string_view name;
  std::string_view module;
  char type = 't';
};

// The kernel's symbol table. Sources, in this order: a text in /proc/kallsyms format whose
// addresses are not hidden, or entries handed in by the collector (the BPF ksym iterator shows
// addresses that kptr_restrict hides).
class KernelSymbols {
 public:
  // Parses kallsyms text ("ffffffff81000000 T _stext\t[module]"). Fails when the text is empty or
  // every address is zero (kptr_restrict), with a message that says so. Malformed lines are
  // skipped and counted. Only text symbols (t T w W), or only data (b B d D r R), are kept, and
  // mark()s. Most kernels show little data (CONFIG_KALLSYMS_ALL).
  enum class Kind : uint8_t { text, data };
  static Result<KernelSymbols> parse(std::string_view kallsyms, Kind kind = Kind::text);
  static Result<KernelSymbols> from_proc(Kind kind = Kind::text);  // reads /proc/kallsyms
  // The same from entries in any order; they are copied. Fails as parse() does.
  static Result<KernelSymbols> from_entries(std::span<const KernelEntry> entries,
                                            Kind kind = Kind::text);

  KernelSymbols();
  ~KernelSymbols();
  KernelSymbols(KernelSymbols&&) noexcept;
  KernelSymbols& operator=(KernelSymbols&&) noexcept;

  // The symbol that covers the address; nullptr when none does. Of several at one address it is
  // the one that a reader would look for (see kallsyms.cc).
  [[nodiscard]] const KernelSymbol* find(uint64_t address) const;
  // All symbols of that exact name (static functions may share one).
  [[nodiscard]] std::vector<KernelSymbol> by_name(std::string_view name) const;
  // The address of a mark that the linker made at a table's begin or end ("__start_…", "__stop_…"),
  // which is no text; 0 when the kernel shows none.
  [[nodiscard]] uint64_t mark(std::string_view name) const;
  // Every symbol, aliases too, by address.
  [[nodiscard]] std::span<const KernelSymbol> all() const;
  [[nodiscard]] size_t size() const;  // of all()
  [[nodiscard]] size_t malformed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One mapping of a process at one time, from PERF_RECORD_MMAP2 or /proc/PID/maps.
struct UserMap {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t offset = 0;
  uint64_t inode = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  std::string file;  // as the kernel names it: a path, "//anon", "[vdso]", "/x (deleted)"
  // Lower-case hex, where the kernel told it (PERF_RECORD_MISC_MMAP_BUILD_ID; there is no inode
  // then). The file must have it to be believed.
  std::string build_id;
  // By which frames tell it from other files that were mapped there; 0: not known.
  uint64_t file_number = 0;
};

// Of an inlined function's code: see UserFrame.
struct InlinedFrame {
  std::string function;
  std::string source_file;
  uint32_t line = 0;
};

struct UserFrame {
  std::string function;     // demangled, the one that is called; "" if not known
  std::string source_file;  // "" unless line information is wanted and at hand
  uint32_t line = 0;
  UserMap map;           // start == end when no mapping covered the address
  std::string build_id;  // lower-case hex of the file, "" when none
  // The file's own address of it, as nm prints it; not known where there is no file to be had.
  std::optional<uint64_t> vaddr;
  // What the compiler inlined there, the innermost first, where that is wanted and at hand. The
  // line above is then that of the outermost of these calls.
  std::vector<InlinedFrame> inlined;
};

// Options shared by all users of a UserSymbols.
struct UserSymbolsOptions {
  std::string root;  // prefix for every path, for tests; "" is the system's root
  std::vector<std::string> debug_dirs = {"/usr/lib/debug"};
  bool lines = false;
  bool inlines = false;                           // and lines
  bool names = false;                             // keep every name of a function, for code_of()
  bool data = false;                              // and the names of data, for data_name()
  uint64_t memory_limit = uint64_t{2} << 30;      // for symbol tables; later files stay unnamed
  uint64_t perf_map_limit = uint64_t{256} << 20;  // for the names of JIT compilers, likewise
};

// The mappings of every process over time, and names for the addresses in them.
// Processes are known by the caller's key (a label); the caller feeds the history in order.
// Files are opened when the first address in them is asked for. Not for several threads at once.
class UserSymbols {
 public:
  explicit UserSymbols(UserSymbolsOptions options = {});
  ~UserSymbols();
  UserSymbols(UserSymbols&&) noexcept;
  UserSymbols& operator=(UserSymbols&&) noexcept;

  // History. Maps that overlap older ones of the process replace them from now on.
  void add_map(uint64_t process, const UserMap& map);
  void fork(uint64_t parent, uint64_t child);  // the child starts with the parent's maps
  void exec(uint64_t process);                 // forgets the maps; the next add_map starts anew
  void exit(uint64_t process);                 // forgets the process; no sample of it is to come
  // Reads /proc/PID/maps for a process that was there before the recording, and does what set_pid()
  // does. Also notes the process's root (/proc/PID/root) so that files of containers are found. A
  // process that is gone is not an error: it has no maps.
  Result<> read_proc(uint64_t process, uint32_t pid);
  // The path of JIT symbols (/tmp/perf-PID.map, in the process's own mount namespace and with its
  // own pid there) is read lazily at the first unknown address in anonymous memory. Also notes
  // the process's root, as read_proc does: call it while the process lives. Of one that is known to
  // be `gone`, /proc is not asked.
  void set_pid(uint64_t process, uint32_t pid, bool gone = false);

  // The name for an address of the process, with the maps it has now (that is, call it before
  // feeding history that came after the sample), or where that is known with the map it had of the
  // file of that number. Never fails: what is not known is empty. For a return address ask for the
  // address less one: a call may be the last thing in a function.
  [[nodiscard]] UserFrame find(uint64_t process, uint64_t address, uint64_t file_number = 0);

  // The name of what lies there of a file's data, "cache_lock"; "" when it is not known, or in no
  // file of which the process has code mapped.
  [[nodiscard]] std::string data_name(uint64_t process, uint64_t address);

  // All code of a file that the process has mapped; nothing where there is no file to be had.
  [[nodiscard]] std::optional<FileCode> code_of(uint64_t process, const std::string& file);

  // What went wrong, a sentence each, for the report's face ("/usr/bin/x changed since ...").
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pkprof
