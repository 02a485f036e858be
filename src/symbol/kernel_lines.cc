// SPDX-License-Identifier: Apache-2.0
// The kernel lies elsewhere in memory than its file says (KASLR), all of it by the same distance:
// that of any function whose name only one has.
#include "symbol/kernel_lines.h"

#include <fcntl.h>
#include <sys/utsname.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "symbol/elf/elf_file.h"

namespace pkprof {
namespace {

// Functions that every kernel has, under names that no other function has.
constexpr const char* landmarks[] = {"vfs_read", "vfs_write", "do_exit", "wake_up_process"};

// The notes of the running kernel: name size, contents' size, type, name, contents, each padded to
// four bytes.
std::string running_build_id(const std::string& root) {
  std::ifstream in(root + "/sys/kernel/notes", std::ios::binary);
  const std::string notes((std::istreambuf_iterator<char>(in)), {});
  const auto word = [&notes](size_t at) {
    uint32_t value = 0;
    std::memcpy(&value, notes.data() + at, sizeof value);
    return size_t{value};
  };
  const auto padded = [](size_t n) { return (n + 3) & ~size_t{3}; };
  for (size_t at = 0; at + 12 <= notes.size();) {
    const size_t name = at + 12;
    const size_t name_size = word(at);
    const size_t size = word(at + 4);
    const size_t contents = name + padded(name_size);
    if (name_size > notes.size() || size > notes.size() || contents + size > notes.size()) break;
    constexpr size_t type_build_id = 3;
    if (word(at + 8) == type_build_id &&
        notes.compare(name, name_size, std::string("GNU\0", 4)) == 0) {
      std::string hex;
      for (size_t i = 0; i < size; ++i) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x",
                      static_cast<unsigned>(static_cast<unsigned char>(notes[contents + i])));
        hex += digits;
      }
      return hex;
    }
    at = contents + padded(size);
  }
  return "";
}

std::vector<std::string> places(const std::string& release, const std::string& build_id) {
  std::vector<std::string> paths;
  if (build_id.size() > 2)
    paths.push_back("/usr/lib/debug/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) +
                    ".debug");
  for (const char* directory : {"/usr/lib/debug/boot/vmlinux-", "/boot/vmlinux-"})
    paths.push_back(directory + release);
  for (const char* directory :
       {"/usr/lib/debug/lib/modules/", "/usr/lib/debug/usr/lib/modules/", "/lib/modules/"})
    paths.push_back(directory + release + "/vmlinux");
  paths.push_back("/lib/modules/" + release + "/build/vmlinux");
  return paths;
}

std::optional<uint64_t> distance(const KernelSymbols& symbols, const FileCode& code) {
  for (const char* landmark : landmarks) {
    const auto there = symbols.by_name(landmark);
    if (there.size() != 1) continue;
    for (const FileCode::Function& function : code.names)
      if (function.name == landmark) return there.front().start - function.start;
  }
  return {};
}

// "/build/linux-6.1.176/fs/pipe.c" is "fs/pipe.c": where it was built says nothing.
std::string within_tree(const std::string& path) {
  for (const char* directory :
       {"arch/", "block/", "crypto/", "drivers/", "fs/", "include/", "init/", "io_uring/", "ipc/",
        "kernel/", "lib/", "mm/", "net/", "rust/", "security/", "sound/", "virt/"}) {
    const std::string within = std::string("/linux");
    const size_t tree = path.find(within);
    if (tree == std::string::npos) break;
    const size_t slash = path.find('/', tree + 1);
    if (slash != std::string::npos &&
        path.compare(slash + 1, std::strlen(directory), directory) == 0)
      return path.substr(slash + 1);
  }
  const size_t here = path.rfind("/./");
  return here == std::string::npos ? path : path.substr(here + 3);
}

}  // namespace

struct KernelLines::Impl {
  std::shared_ptr<ElfFile> file;
  uint64_t distance = 0;
};

Result<KernelLines> KernelLines::open(const KernelSymbols& symbols, const Options& options) {
  std::string release = options.release;
  if (release.empty()) {
    utsname name{};
    uname(&name);
    release = name.release;
  }
  const std::string build_id =
      options.build_id.empty() ? running_build_id(options.root) : options.build_id;
  std::string others;
  for (const std::string& path : places(release, build_id)) {
    Fd fd(::open((options.root + path).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) continue;
    auto file = ElfFile::open(std::move(fd), path, {.debug = {}, .lines = true, .names = true});
    if (!file) {
      others += ", " + path + ": " + file.error().message;
      continue;
    }
    if (!build_id.empty() && (*file)->build_id() != build_id) {
      others += ", " + path + " is of another kernel";
      continue;
    }
    const auto moved = distance(symbols, (*file)->code());
    if (!moved) {
      others += ", " + path + " has no symbols";
      continue;
    }
    auto impl = std::make_unique<Impl>();
    impl->file = std::move(*file);
    impl->distance = *moved;
    return KernelLines(std::move(impl));
  }
  return fail("there is no debug information of kernel " + release + " (vmlinux)" + others);
}

SourceLine KernelLines::find(uint64_t address) {
  SourceLine line = impl_->file->line_at(address - impl_->distance);
  line.file = within_tree(line.file);
  return line;
}

KernelLines::KernelLines(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KernelLines::KernelLines(KernelLines&&) noexcept = default;
KernelLines& KernelLines::operator=(KernelLines&&) noexcept = default;
KernelLines::~KernelLines() = default;

}  // namespace pkprof
