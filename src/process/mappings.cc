// SPDX-License-Identifier: Apache-2.0
#include "process/mappings.h"

#include <bpf/libbpf.h>

#include <cstddef>
#include <cstring>
#include <utility>

namespace pkprof {
namespace {

constexpr size_t head_of_names = offsetof(pk_file_name, names);

// Files that are remembered at least; twice as many at most.
constexpr size_t most_files = 32768;

constexpr uint32_t minor_bits = 20;

// The head of a record of names, and the names; none if it is malformed.
std::string_view names_in(std::string_view record, pk_file_name& head) {
  if (record.size() < head_of_names) return {};
  std::memcpy(&head, record.data(), head_of_names);
  const std::string_view names = record.substr(head_of_names);
  return head.length <= names.size() ? names.substr(0, head.length) : std::string_view();
}

struct File {
  std::string path;
  uint64_t inode = 0;
  uint32_t device = 0;
};

}  // namespace

std::string path_in(std::string_view record) {
  pk_file_name head{};
  std::string_view names = names_in(record, head);
  if (names.empty() || names.back() != '\0') return "";
  std::string path;
  while (!names.empty()) {
    const size_t end = names.find('\0');
    path.insert(0, std::string("/").append(names.substr(0, end)));
    names.remove_prefix(end + 1);
  }
  if (head.flags & PK_PATH_CUT) path.insert(0, "...");
  if (head.flags & PK_PATH_DELETED) path += " (deleted)";
  return path;
}

struct Mappings::Impl {
  struct Free {
    void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
  };
  std::unique_ptr<ring_buffer, Free> ring;
  std::vector<pk_mapped> taken;
  using Files = std::unordered_map<uint64_t, File>;
  Files files, files_before;  // of late, and before that
  std::function<void(const Code&)> told;

  void take(std::string_view record);
  void add_file(uint64_t number, File file);
  const File* find(uint64_t number) const;
};

void Mappings::Impl::take(std::string_view record) {
  uint32_t kind = 0;
  if (record.size() < sizeof(kind)) return;
  std::memcpy(&kind, record.data(), sizeof(kind));
  if (kind == PK_FILE_NAME) {
    pk_file_name head{};
    names_in(record, head);
    add_file(head.file, {path_in(record), head.inode, head.device});
  } else if (pk_mapped m{}; kind == PK_MAPPED && record.size() >= sizeof(m)) {
    std::memcpy(&m, record.data(), sizeof(m));
    taken.push_back(m);
    if (told && m.file != PK_FILE_NONE) {
      const File* file = find(m.file);
      told({m.file, m.pid, m.start, m.end, file ? file->inode : 0, file ? file->path : ""});
    }
  }
}

void Mappings::Impl::add_file(uint64_t number, File file) {
  if (files.size() >= most_files) files_before = std::exchange(files, {});
  files[number] = std::move(file);
}

const File* Mappings::Impl::find(uint64_t number) const {
  for (const Files* some : {&files, &files_before})
    if (const auto it = some->find(number); it != some->end()) return &it->second;
  return nullptr;
}

Result<Mappings> Mappings::open(int ring) {
  auto impl = std::make_unique<Impl>();
  const auto take = [](void* self, void* data, size_t size) {
    static_cast<Impl*>(self)->take({static_cast<const char*>(data), size});
    return 0;
  };
  impl->ring.reset(ring_buffer__new(ring, take, impl.get(), nullptr));
  if (!impl->ring) return fail_errno("following what processes have mapped");
  return Mappings(std::move(impl));
}

void Mappings::tell(std::function<void(const Code&)> told) {
  impl_->told = std::move(told);
}

void Mappings::collect() {
  ring_buffer__consume(impl_->ring.get());
}

std::vector<ProcessEvent> Mappings::take() {
  collect();
  std::vector<ProcessEvent> events;
  for (const pk_mapped& m : std::exchange(impl_->taken, {})) {
    const File* file = m.file >= PK_FILE_FIRST ? impl_->find(m.file) : nullptr;
    ProcessEvent e;
    e.kind = ProcessEvent::Kind::code;
    e.time = m.seen;
    e.pid = m.pid;
    e.map.start = m.start;
    e.map.end = m.end;
    e.map.offset = m.offset;
    e.map.file_number = m.file & PK_FRAME_FILE_MASK;
    if (file) {
      e.map.file = file->path;
      e.map.inode = file->inode;
      e.map.device_major = file->device >> minor_bits;
      e.map.device_minor = file->device & ((1U << minor_bits) - 1);
    } else {
      e.map.file = m.file == PK_FILE_VDSO ? "[vdso]" : "//anon";
    }
    events.push_back(std::move(e));
  }
  return events;
}

std::string Mappings::path_of(uint64_t file) const {
  const File* found = impl_->find(file);
  return found ? found->path : "";
}

int Mappings::poll_fd() const {
  return ring_buffer__epoll_fd(impl_->ring.get());
}

Mappings::Mappings(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Mappings::Mappings(Mappings&&) noexcept = default;
Mappings& Mappings::operator=(Mappings&&) noexcept = default;
Mappings::~Mappings() = default;

}  // namespace pkprof
