// SPDX-License-Identifier: Apache-2.0
#include "kernel/pins.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "probe/libbpf_log.h"

namespace pkprof {
namespace {

using Json = nlohmann::json;

constexpr const char* bpffs = "/sys/fs/bpf";
constexpr const char* about_name = "about";
constexpr uint32_t about_bytes = 65536;

const std::string about_path = std::string(Pins::directory) + "/" + about_name;

// Mounted where it is not, and left so: others use it, too.
Result<> mount_bpffs() {
  struct statfs fs{};
  if (statfs(bpffs, &fs) == 0 && static_cast<uint64_t>(fs.f_type) == BPF_FS_MAGIC) return {};
  if (mount("bpf", bpffs, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") == 0) return {};
  return fail_errno(
      std::string("mounting the file system for BPF objects, which what goes on by itself needs, "
                  "at ") +
      bpffs + " (mount -t bpf bpf " + bpffs + ")");
}

Fd open_directory() {
  return Fd(open(Pins::directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Where others may make directories, as with a mode of 1777, anyone's can be under our name. It is
// left alone: whose it is, and how it goes, is all that can be said.
std::unexpected<Error> fail_not_ours(int err) {
  struct stat there{};
  if (lstat(Pins::directory, &there))
    return fail(LibbpfLog().explain(std::string("opening ") + Pins::directory, err));
  const std::string path = Pins::directory;
  const std::string remove = "; to remove it: rm -r " + path;
  const bool is_directory = S_ISDIR(there.st_mode);
  if (err == EACCES)
    return fail(path + " is of user " + std::to_string(there.st_uid) +
                ": what is recorded there only that user, or root, can read and end");
  if (there.st_uid != geteuid())
    return fail(path + " is not of pkprof's making, but a " +
                (is_directory ? "directory" : "file or link") + " of user " +
                std::to_string(there.st_uid) + remove);
  if (!is_directory)
    return fail(path + " is not of pkprof's making, but a file or a link" + remove);
  if (there.st_mode & 077)
    return fail(path + " is not of pkprof's making: others may enter it" + remove);
  return fail(LibbpfLog().explain("opening " + path, err));
}

// The directory that is there now, locked: one that was removed while we waited is not meant.
Result<Fd> lock_directory(bool wait) {
  for (;;) {
    Fd fd = open_directory();
    if (!fd.valid()) return fail_not_ours(errno);
    struct stat ours{};
    if (fstat(fd.get(), &ours)) return fail_errno(std::string("looking at ") + Pins::directory);
    if (ours.st_uid != geteuid() || (ours.st_mode & 077)) return fail_not_ours(0);
    if (flock(fd.get(), LOCK_EX | (wait ? 0 : LOCK_NB)))
      return fail(std::string("another pkprof is at work on ") + Pins::directory);
    struct stat there{};
    if (stat(Pins::directory, &there) == 0 && there.st_ino == ours.st_ino) return fd;
  }
}

std::vector<std::string> names_in(int directory) {
  std::vector<std::string> names;
  Fd copy(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(copy.valid() ? fdopendir(copy.get()) : nullptr,
                                                closedir);
  if (!dir) return names;
  static_cast<void>(copy.release());
  while (const dirent* entry = readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

// Those whose names begin so.
Result<> remove_from(int directory, std::string_view start) {
  for (const std::string& name : names_in(directory))
    if (name.starts_with(start) && unlinkat(directory, name.c_str(), 0))
      return fail_errno("removing " + std::string(Pins::directory) + "/" + name);
  return {};
}

Json to_json(const pk_stats& stats) {
  Json out = Json::array();
  const auto* from = reinterpret_cast<const uint64_t*>(&stats);
  for (size_t i = 0; i < sizeof(stats) / sizeof(uint64_t); ++i) out.push_back(from[i]);
  return out;
}

pk_stats stats_from(const Json& in) {
  pk_stats stats{};
  auto* to = reinterpret_cast<uint64_t*>(&stats);
  for (size_t i = 0; i < sizeof(stats) / sizeof(uint64_t); ++i) to[i] = in.at(i).get<uint64_t>();
  return stats;
}

std::string encode(const About& a) {
  Json capabilities = Json::array();
  for (const Capability& c : a.capabilities)
    capabilities.push_back(Json::array({c.name, c.works, c.how, c.costs}));
  return Json{{"version", a.version},
              {"code", a.code},
              {"started_at", a.started_at},
              {"frequency_hz", a.frequency_hz},
              {"threads", a.threads},
              {"hooks", a.hooks},
              {"sampled", a.sampled},
              {"capabilities", std::move(capabilities)},
              {"dispatch_ns", a.overhead.dispatch_ns},
              {"timing_ns", a.overhead.timing_ns},
              {"stats", to_json(a.stats)},
              {"hook_runs", a.hook_runs}}
      .dump();
}

// Of another version it may have anything but the version itself.
About decode(const Json& in) {
  About a;
  a.version = in.at("version").get<std::string>();
  a.code = in.at("code").get<uint64_t>();
  a.started_at = in.at("started_at").get<uint64_t>();
  a.frequency_hz = in.at("frequency_hz").get<uint64_t>();
  a.threads = in.at("threads").get<bool>();
  a.hooks = in.at("hooks").get<bool>();
  a.sampled = in.at("sampled").get<std::vector<uint32_t>>();
  for (const Json& c : in.at("capabilities"))
    a.capabilities.push_back({c.at(0).get<std::string>(), c.at(1).get<bool>(),
                              c.at(2).get<std::string>(), c.at(3).get<std::string>()});
  a.overhead.dispatch_ns = in.at("dispatch_ns").get<uint64_t>();
  a.overhead.timing_ns = in.at("timing_ns").get<uint64_t>();
  a.stats = stats_from(in.at("stats"));
  a.hook_runs = in.at("hook_runs").get<std::array<uint64_t, hook_groups>>();
  return a;
}

}  // namespace

bool Pins::exist() {
  struct stat there{};
  return lstat(directory, &there) == 0 || errno != ENOENT;
}

Result<Pins> Pins::create() {
  if (auto r = mount_bpffs(); !r) return std::unexpected(r.error());
  const bool made = mkdir(directory, 0700) == 0;
  if (!made && errno != EEXIST)
    return fail(LibbpfLog().explain(std::string("making ") + directory, errno));
  auto lock = lock_directory(false);
  if (!lock) return std::unexpected(lock.error());
  Pins pins(std::move(*lock));
  if (made) return pins;
  if (access(about_path.c_str(), F_OK) == 0)
    return fail("a recording goes on already: `pkprof status` tells of it, `pkprof stop` ends it");
  if (auto r = remove_from(pins.lock_.get(), ""); !r) return std::unexpected(r.error());
  return pins;
}

Result<Pins> Pins::open() {
  if (!exist()) return fail("nothing is being recorded: `pkprof start` begins");
  auto lock = lock_directory(true);
  if (!lock) return std::unexpected(lock.error());
  return Pins(std::move(*lock));
}

Result<> Pins::write(const About& about) {
  std::string text = encode(about);
  if (text.size() > about_bytes) return fail("there is too much to note of the recording");
  text.resize(about_bytes);
  Fd map(bpf_obj_get(about_path.c_str()));
  const bool fresh = !map.valid();
  if (fresh)
    map = Fd(
        bpf_map_create(BPF_MAP_TYPE_ARRAY, "pk_about", sizeof(uint32_t), about_bytes, 1, nullptr));
  const uint32_t zero = 0;
  if (!map.valid() || bpf_map_update_elem(map.get(), &zero, text.data(), BPF_ANY) ||
      (fresh && bpf_obj_pin(map.get(), about_path.c_str())))
    return fail(LibbpfLog().explain("noting what is recorded", errno));
  return {};
}

Result<std::optional<About>> Pins::read() const {
  const Fd map(bpf_obj_get(about_path.c_str()));
  if (!map.valid() && errno == ENOENT) return std::nullopt;
  std::string text(about_bytes, '\0');
  const uint32_t zero = 0;
  bpf_map_info info{};
  uint32_t size = sizeof(info);
  if (!map.valid() || bpf_obj_get_info_by_fd(map.get(), &info, &size))
    return fail(LibbpfLog().explain("opening " + about_path, errno));
  if (info.value_size != about_bytes) return std::nullopt;
  if (bpf_map_lookup_elem(map.get(), &zero, text.data()))
    return fail(LibbpfLog().explain("reading " + about_path, errno));
  text.resize(std::min(text.size(), text.find('\0')));
  try {
    return decode(Json::parse(text));
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

Result<> Pins::remove_links() {
  return remove_from(lock_.get(), "link_");
}

// The note goes first: without it the rest is what a killed start leaves.
Result<> Pins::remove() {
  for (const char* start : {about_name, "link_", ""})
    if (auto r = remove_from(lock_.get(), start); !r) return r;
  if (rmdir(directory)) return fail_errno(std::string("removing ") + directory);
  return {};
}

}  // namespace pkprof
