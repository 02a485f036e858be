// SPDX-License-Identifier: Apache-2.0
// The history of processes and the names in them. A process is a table of mappings, which a child
// shares until one of the two changes it, and what is known of where it lives. A mapping's file is
// looked for when the first address in it is asked for, while the process may still be there to
// ask; from then on a lookup is three binary searches and no system call.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <optional>
#include <unordered_map>

#include "symbol/elf/at_offset.h"
#include "symbol/elf/demangle.h"
#include "symbol/elf_cache.h"
#include "symbol/maps.h"
#include "symbol/perf_maps.h"
#include "symbol/process_info.h"
#include "symbol/symbolizer.h"

namespace pkprof {
namespace {

// A function that has no name is one nonetheless: "redis-server+0x4f210".
std::string name_by_place(std::string_view file, uint64_t start) {
  constexpr std::string_view deleted = " (deleted)";
  if (file.ends_with(deleted)) file.remove_suffix(deleted.size());
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  return at_offset(std::string(file), start);
}

constexpr size_t max_maps_text = size_t{64} << 20;
using Clock = std::chrono::steady_clock;

// Where a process's JIT names are. A compiler may still be writing, so the file is looked at again
// after a miss, but not more than once a second.
struct Jit {
  uint32_t pid = 0;
  uint32_t inner_pid = 0;
  std::optional<uint32_t> uid;
  std::shared_ptr<RootDir> root;  // nullptr: the system's
  std::shared_ptr<const PerfMaps::File> file;
  Clock::time_point checked;
  bool tried = false;

  std::string_view find(uint64_t address, const std::shared_ptr<RootDir>& system_root,
                        PerfMaps& maps);
  // The same process with nothing read yet.
  [[nodiscard]] Jit fresh() const {
    Jit jit;
    jit.pid = pid;
    jit.inner_pid = inner_pid;
    jit.uid = uid;
    jit.root = root;
    return jit;
  }

 private:
  void look(const std::shared_ptr<RootDir>& system_root, PerfMaps& maps);
};

// Anybody may write to /tmp: only files of the process's own user, of root and ours are believed.
void Jit::look(const std::shared_ptr<RootDir>& system_root, PerfMaps& maps) {
  tried = true;
  checked = Clock::now();
  PerfMaps::Place place{root ? root : system_root, {}, {0, ::geteuid(), uid.value_or(0)}};
  if (!place.root) return;
  place.paths.push_back("/tmp/perf-" + std::to_string(inner_pid) + ".map");
  if (pid != inner_pid) place.paths.push_back("/tmp/perf-" + std::to_string(pid) + ".map");
  if (auto found = maps.look(place)) file = std::move(found);
}

std::string_view Jit::find(uint64_t address, const std::shared_ptr<RootDir>& system_root,
                           PerfMaps& maps) {
  const std::string_view name = file ? file->map.find(address) : std::string_view();
  if (!name.empty()) return name;
  if (tried && Clock::now() - checked < std::chrono::seconds(1)) return {};
  look(system_root, maps);
  return file ? file->map.find(address) : std::string_view();
}

struct Process {
  std::shared_ptr<MapTable> maps = std::make_shared<MapTable>();
  uint32_t pid = 0;
  uint64_t start_time = 0;
  std::shared_ptr<RootDir> root;
  std::shared_ptr<Jit> jit;
  std::shared_ptr<Jit> inherited_jit;  // its parent's code, if it was forked without exec
};

}  // namespace

struct UserSymbols::Impl {
  explicit Impl(UserSymbolsOptions o) : options(std::move(o)) {
    const std::string path = options.root.empty() ? "/" : options.root;
    if (auto root = RootDir::open(path)) {
      system_root = *root;
    } else {
      warnings.add(root.error().in("symbols").message);
    }
    cache = std::make_unique<ElfCache>(options, system_root, reader, warnings);
    perf_maps = std::make_unique<PerfMaps>(options.perf_map_limit, reader, warnings);
  }

  MapTable& own_maps(Process& process) {
    if (process.maps.use_count() > 1) process.maps = std::make_shared<MapTable>(*process.maps);
    return *process.maps;
  }

  void note_process(Process& process, uint32_t pid, bool gone);
  void apply(Process& process, const ProcessInfo& info);
  std::shared_ptr<RootDir> shared(std::shared_ptr<RootDir> root);
  ProcessView view_of(Process& process);
  void name_jit(Process& process, uint64_t address, UserFrame& frame);
  ElfFile* elf_of(Process& process, const MapPiece& piece);

  UserSymbolsOptions options;
  Warnings warnings;
  std::shared_ptr<RootDir> system_root;
  ReaderThread reader;
  std::unique_ptr<ElfCache> cache;
  std::unique_ptr<PerfMaps> perf_maps;
  std::unordered_map<uint64_t, Process> processes;
  // One descriptor for each root directory in use, not one for each process.
  std::map<RootDir::Identity, std::weak_ptr<RootDir>> roots;
};

std::shared_ptr<RootDir> UserSymbols::Impl::shared(std::shared_ptr<RootDir> root) {
  if (!root) return nullptr;
  std::erase_if(roots, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<RootDir>& known = roots[root->identity()];
  if (auto same = known.lock()) return same;
  known = root;
  return root;
}

void UserSymbols::Impl::note_process(Process& process, uint32_t pid, bool gone) {
  process.pid = pid;
  process.jit = std::make_shared<Jit>();
  process.jit->pid = process.jit->inner_pid = pid;
  process.jit->root = process.root;
  process.start_time = 0;
  if (gone) return;
  const auto info = read_process_info(pid);
  if (!info) return;
  process.start_time = info->start_time;
  apply(process, *info);
}

void UserSymbols::Impl::apply(Process& process, const ProcessInfo& info) {
  process.root = shared(info.root);
  process.jit->inner_pid = info.inner_pid;
  process.jit->uid = info.uid;
  process.jit->root = process.root;
}

// A process may have moved to another root since it was noted (a container's first steps), and its
// pid may have become somebody else's.
ProcessView UserSymbols::Impl::view_of(Process& process) {
  if (process.pid == 0 || process.start_time == 0) return {0, process.root};
  const auto info = read_process_info(process.pid);
  if (!info || info->start_time != process.start_time) return {0, process.root};
  apply(process, *info);
  return {process.pid, process.root};
}

void UserSymbols::Impl::name_jit(Process& process, uint64_t address, UserFrame& frame) {
  if (process.jit && !process.jit->tried) (void)view_of(process);
  for (const auto& jit : {process.jit, process.inherited_jit}) {
    if (!jit || !frame.function.empty()) continue;
    frame.function = demangle(jit->find(address, system_root, *perf_maps));
  }
}

// The file behind a mapping, looked for once; nullptr when there is none.
ElfFile* UserSymbols::Impl::elf_of(Process& process, const MapPiece& piece) {
  MapOrigin& origin = *piece.origin;
  if (!origin.resolved) {
    origin.resolved = true;
    origin.elf = cache->find(piece.as_map(), view_of(process));
  }
  return origin.elf.get();
}

UserSymbols::UserSymbols(UserSymbolsOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
UserSymbols::~UserSymbols() = default;
UserSymbols::UserSymbols(UserSymbols&&) noexcept = default;
UserSymbols& UserSymbols::operator=(UserSymbols&&) noexcept = default;

void UserSymbols::add_map(uint64_t process, const UserMap& map) {
  Process& p = impl_->processes[process];
  if (!impl_->own_maps(p).add(map))
    impl_->warnings.add(
        "a process loaded and unloaded more code than is remembered: some of its frames lack "
        "names");
}

void UserSymbols::fork(uint64_t parent, uint64_t child) {
  if (parent == child) return;
  Process copy;
  if (const auto it = impl_->processes.find(parent); it != impl_->processes.end()) {
    copy.maps = it->second.maps;
    copy.root = it->second.root;
    copy.inherited_jit = it->second.jit ? it->second.jit : it->second.inherited_jit;
  }
  impl_->processes[child] = std::move(copy);
}

void UserSymbols::exec(uint64_t process) {
  Process& p = impl_->processes[process];
  p.maps = std::make_shared<MapTable>();
  p.inherited_jit.reset();
  // What /proc tells is asked again when it is needed.
  if (p.jit) p.jit = std::make_shared<Jit>(p.jit->fresh());
}

void UserSymbols::exit(uint64_t process) {
  impl_->processes.erase(process);
}

void UserSymbols::set_pid(uint64_t process, uint32_t pid, bool gone) {
  impl_->note_process(impl_->processes[process], pid, gone);
}

Result<> UserSymbols::read_proc(uint64_t process, uint32_t pid) {
  set_pid(process, pid);
  const auto path = "/proc/" + std::to_string(pid) + "/maps";
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT || errno == ESRCH) return {};
    return fail_errno(path);
  }
  const auto text = read_up_to(fd.get(), max_maps_text);
  if (!text) return {};  // gone since it was opened
  const ParsedMaps parsed = parse_maps(*text);
  MapTable& maps = impl_->own_maps(impl_->processes[process]);
  for (const UserMap& map : parsed.executable) maps.add(map);
  return {};
}

UserFrame UserSymbols::find(uint64_t process, uint64_t address, uint64_t file_number) {
  UserFrame frame;
  const auto it = impl_->processes.find(process);
  if (it == impl_->processes.end()) return frame;
  Process& p = it->second;
  const MapPiece* piece = p.maps->find(address, file_number);
  if (piece == nullptr) {
    impl_->name_jit(p, address, frame);
    return frame;
  }
  frame.map = piece->as_map();
  frame.build_id = frame.map.build_id;
  ElfFile* elf = impl_->elf_of(p, *piece);
  if (elf == nullptr) {
    if (is_anonymous(frame.map.file)) impl_->name_jit(p, address, frame);
    return frame;
  }
  frame.build_id = elf->build_id();
  // The vDSO has no file: its offset is from where it begins in memory.
  const bool vdso = frame.map.file == "[vdso]";
  frame.vaddr =
      elf->vaddr_of(vdso ? address - piece->origin->map.start : piece->file_offset(address));
  if (!frame.vaddr) return frame;
  frame.function = elf->function_at(*frame.vaddr);
  SourceLine line = elf->line_at(*frame.vaddr);
  if (impl_->options.inlines) {
    std::vector<InlinedCall> calls = elf->inlined_at(*frame.vaddr);
    if (!calls.empty()) {
      line = std::move(calls.back().at);
      if (frame.function.empty()) frame.function = std::move(calls.back().function);
      calls.pop_back();
    }
    for (InlinedCall& call : calls)
      frame.inlined.push_back({std::move(call.function), std::move(call.at.file), call.at.line});
  }
  if (frame.function.empty())
    if (const auto start = elf->unnamed_function_at(*frame.vaddr))
      frame.function = name_by_place(frame.map.file, *start);
  frame.source_file = std::move(line.file);
  frame.line = line.line;
  return frame;
}

// Data has no mapping here. It lies where its file's code does, as far away as the linker put it.
std::string UserSymbols::data_name(uint64_t process, uint64_t address) {
  const auto it = impl_->processes.find(process);
  if (it == impl_->processes.end()) return "";
  for (const MapPiece& piece : it->second.maps->pieces()) {
    const ElfFile* elf = impl_->elf_of(it->second, piece);
    const auto vaddr = elf ? elf->vaddr_of(piece.origin->map.offset) : std::nullopt;
    if (!vaddr) continue;
    if (std::string name = elf->data_at(*vaddr + (address - piece.origin->map.start));
        !name.empty())
      return name;
  }
  return "";
}

std::optional<FileCode> UserSymbols::code_of(uint64_t process, const std::string& file) {
  const auto it = impl_->processes.find(process);
  if (it == impl_->processes.end()) return {};
  for (const MapPiece& piece : it->second.maps->pieces()) {
    if (piece.origin->map.file != file) continue;
    const ElfFile* elf = impl_->elf_of(it->second, piece);
    if (elf == nullptr) continue;
    FileCode code = elf->code();
    code.file = file;
    return code;
  }
  return {};
}

std::vector<std::string> UserSymbols::warnings() const {
  return impl_->warnings.list();
}

}  // namespace pkprof
