// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_maker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "pkprof/user_abi.h"
#include "symbol/elf_reading.h"

namespace pkprof {
namespace {

// Of this process: every process has the same.
Result<std::string> vdso_image(uint64_t bytes) {
  constexpr uint64_t most = 64 << 10;
  std::string image(std::min(bytes, most), '\0');
  const Fd memory(::open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  const auto at = static_cast<off_t>(getauxval(AT_SYSINFO_EHDR));
  const ssize_t got = at ? ::pread(memory.get(), image.data(), image.size(), at) : -1;
  if (got <= 0) return fail("the vdso: not to be read");
  image.resize(static_cast<size_t>(got));
  return image;
}

// Through the mapping itself, while it is there: by whatever name, and of no name. Then by name, as
// the process sees it, and as we do.
std::vector<FileWay> ways_to(const CodeFile& file) {
  const std::string process = "/proc/" + std::to_string(file.pid);
  char range[64];
  std::snprintf(range, sizeof range, "/map_files/%llx-%llx",
                static_cast<unsigned long long>(file.start),
                static_cast<unsigned long long>(file.end));
  std::vector<FileWay> ways = {{nullptr, process + range}};
  if (!file.path.starts_with('/')) return ways;
  for (const std::string& root : {process + "/root", std::string("/")})
    if (auto opened = RootDir::open(root)) ways.push_back({*opened, file.path});
  return ways;
}

// Signals are for the thread that waits for them.
template <typename Work>
std::thread start_without_signals(Work work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

// Tables that were made, by file: one is mapped by many, under many numbers.
struct TableMaker::Cache {
  static constexpr uint64_t most_bytes = 32 << 20;

  Table find(const FileStamp& stamp) {
    const std::scoped_lock lock(mutex);
    const auto it = tables.find(stamp);
    return it == tables.end() ? nullptr : it->second;
  }
  void add(const FileStamp& stamp, Table table) {
    const std::scoped_lock lock(mutex);
    bytes += table->rows().size_bytes();
    if (bytes > most_bytes) {
      tables.clear();
      bytes = table->rows().size_bytes();
    }
    tables[stamp] = std::move(table);
  }
  Table read(const CodeFile& file);

  std::mutex mutex;
  std::map<FileStamp, Table> tables;
  uint64_t bytes = 0;
};

TableMaker::Table TableMaker::Cache::read(const CodeFile& file) {
  for (const FileWay& way : ways_to(file)) {
    auto fd = way.open();
    if (!fd) continue;
    const auto stamp = stamp_of(fd->get());
    if (!stamp || stamp->inode != file.inode) continue;
    if (Table known = find(*stamp)) return known;
    auto table = UnwindTable::read(std::move(*fd));
    if (!table) return nullptr;
    auto made = std::make_shared<const UnwindTable>(std::move(*table));
    add(*stamp, made);
    return made;
  }
  return nullptr;
}

TableMaker::TableMaker(Sink sink, uint64_t most_bytes)
    : sink_(std::move(sink)),
      most_bytes_(most_bytes),
      cache_(std::make_shared<Cache>()),
      thread_(start_without_signals([this] { work(); })) {}

TableMaker::~TableMaker() {
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
  puts_.clear();  // each is waited for
}

void TableMaker::want(CodeFile file) {
  {
    const std::scoped_lock lock(mutex_);
    if (met_without_number_.size() >= PK_UNWIND_FILES) met_without_number_.clear();
    const bool fresh = file.number ? met_.insert(file.number).second
                                   : met_without_number_.emplace(file.inode, file.path).second;
    if (!fresh) return;
    wanted_.push_back(std::move(file));
  }
  changed_.notify_all();
}

TableMaker::Counts TableMaker::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

// The sooner a table is there, the fewer stacks are handed over. Where we may not, it is as it is.
void TableMaker::work() {
  constexpr int ahead_of_others = -10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), ahead_of_others);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ended_ || !wanted_.empty(); });
    if (ended_) return;
    const CodeFile file = std::move(wanted_.front());
    wanted_.pop_front();
    lock.unlock();
    const bool made = make_if_it_can(file);
    lock.lock();
    counts_.unreadable += made ? 0 : 1;
  }
}

// Where memory or threads are short, code of that file has no table; the recording goes on.
bool TableMaker::make_if_it_can(const CodeFile& file) try {
  make(file);
  return true;
} catch (const std::exception&) {
  return false;
}

// Also of a file of which nothing is known there is a table, which says so.
void TableMaker::make(const CodeFile& file) {
  Table table = read(file, reader_);
  if (!file.number) return;
  bool unreadable = false;
  const auto bytes_of = [](const Table& of) { return of->blocks() * sizeof(pk_unwind_block); };
  if (!table || bytes_of(table) > most_bytes_) {  // no one file takes all others' room
    unreadable = true;
    table = std::make_shared<const UnwindTable>();
  }
  const uint64_t bytes = bytes_of(table);
  make_room(bytes);
  put(file.number, std::move(table));
  made_.push_back({file.number, bytes, monotonic_ns()});
  const std::scoped_lock lock(mutex_);
  ++counts_.files;
  counts_.bytes += bytes;
  counts_.unreadable += unreadable ? 1 : 0;
}

// Those that were searched least lately go.
void TableMaker::make_room(uint64_t bytes) {
  uint64_t all = counts().bytes + bytes;
  if (all <= most_bytes_ && made_.size() < PK_UNWIND_FILES) return;
  for (Made& table : made_) table.used = std::max(table.used, sink_.used(table.number));
  std::ranges::sort(made_, std::greater{}, &Made::used);
  for (; !made_.empty() && (all > most_bytes_ || made_.size() >= PK_UNWIND_FILES);
       made_.pop_back()) {
    const Made& table = made_.back();
    sink_.remove(table.number);
    all -= table.bytes;
    const std::scoped_lock lock(mutex_);
    met_.erase(table.number);  // it may be wanted again
    counts_.bytes -= table.bytes;
    --counts_.files;
    ++counts_.removed;
  }
}

// Programs see a table at once. That none sees the map without it takes some ten milliseconds to be
// sure of, which are waited for side by side.
void TableMaker::put(uint64_t number, Table table) {
  constexpr size_t most_puts = 16;
  if (puts_.size() >= most_puts) {
    puts_.front().wait();
    puts_.pop_front();
  }
  puts_.push_back(std::async(std::launch::async | std::launch::deferred,
                             [this, number, table = std::move(table)] {
                               if (sink_.put(number, *table)) return;
                               const std::scoped_lock lock(mutex_);
                               ++counts_.refused;
                             }));
}

TableMaker::Table TableMaker::read(const CodeFile& file, ReaderThread& reader) {
  if (file.path == "[vdso]" || file.number == PK_FILE_VDSO) {
    auto image = vdso_image(file.end - file.start);
    auto table = image ? UnwindTable::of_image(std::move(*image)) : UnwindTable();
    return table ? std::make_shared<const UnwindTable>(std::move(*table)) : nullptr;
  }
  auto table = reader.run([file, cache = cache_] { return cache->read(file); });
  return table ? std::move(*table) : nullptr;
}

}  // namespace pkprof
