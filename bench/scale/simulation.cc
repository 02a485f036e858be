// SPDX-License-Identifier: Apache-2.0
#include "simulation.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>

#include "attribution/recorder.h"
#include "model/pprof/pprof.h"
#include "process.h"

namespace pkprof::scale {
namespace {

constexpr uint32_t first_pid = 5'000'000;  // above every pid there is
constexpr uint64_t second_ns = 1'000'000'000;
constexpr uint64_t sample_ns = 1'003'009;
constexpr uint64_t kernel_text = 0xffff'ffff'8100'0000;
constexpr uint64_t kernel_places = 20'000;  // distinct addresses in stacks
constexpr uint64_t user_places = 4'000;     // the same of a program
constexpr uint32_t programs = 40;           // that the short-lived processes run

// The files that this program has mapped stand for those of all programs: they are there, and have
// symbols.
std::vector<UserMap> own_files() {
  std::vector<UserMap> maps;
  std::ifstream in("/proc/self/maps");
  for (std::string line; std::getline(in, line) && maps.size() < 4;) {
    std::istringstream fields(line);
    std::string range;
    std::string flags;
    std::string device;
    UserMap map;
    fields >> range >> flags >> std::hex >> map.offset >> device >> std::dec >> map.inode >>
        map.file;
    if (flags != "r-xp" || !map.file.starts_with('/')) continue;
    map.start = std::stoull(range, nullptr, 16);
    map.end = std::stoull(range.substr(range.find('-') + 1), nullptr, 16);
    map.device_major = static_cast<uint32_t>(std::stoul(device, nullptr, 16));
    map.device_minor =
        static_cast<uint32_t>(std::stoul(device.substr(device.find(':') + 1), nullptr, 16));
    maps.push_back(map);
  }
  return maps;
}

class Simulation {
 public:
  explicit Simulation(const Scenario& scenario)
      : scenario_(scenario),
        files_(own_files()),
        processes_(symbols_, false, scenario.bounded ? Processes::most_labels : SIZE_MAX / 2),
        recorder_(std::in_place, kernel_ ? &*kernel_ : nullptr, symbols_, processes_, limits()) {}
  Result<Json> run();

 private:
  [[nodiscard]] RecorderLimits limits() const {
    if (scenario_.bounded) return {};
    return {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX};
  }
  uint64_t shift_of(uint32_t pid) const { return uint64_t{pid % 100'000} << 24; }
  void start(uint32_t pid, uint32_t program);
  void end(uint32_t pid);
  void tell(uint32_t pid, uint32_t program);
  uint64_t kernel_stack(uint64_t seed);
  uint64_t user_stack(uint64_t seed, uint32_t pid);
  void count(uint32_t pid, uint64_t seed, uint8_t kind);
  void second();

  static std::optional<KernelSymbols> load_symbols() {
    auto symbols = KernelSymbols::from_proc();
    if (!symbols) return {};
    return std::move(*symbols);
  }

  const Scenario& scenario_;
  std::vector<UserMap> files_;
  std::optional<KernelSymbols> kernel_ = load_symbols();
  UserSymbols symbols_;
  Processes processes_;
  std::optional<Recorder> recorder_;
  Tables tables_;
  std::vector<ProcessEvent> events_;
  uint64_t now_ = second_ns;
  uint64_t fresh_ = 1'000'000;
  uint32_t next_pid_ = first_pid + 100;
  uint64_t ns_ = 0;
};

void Simulation::start(uint32_t pid, uint32_t program) {
  ProcessEvent fork;
  fork.kind = ProcessEvent::Kind::fork;
  fork.time = ++now_;
  fork.pid = pid;
  fork.parent = static_cast<uint32_t>(getpid());
  events_.push_back(fork);
  ProcessEvent exec = fork;
  exec.kind = ProcessEvent::Kind::exec;
  exec.time = ++now_;
  exec.comm = "program-" + std::to_string(program);
  events_.push_back(exec);
  for (const UserMap& file : files_) {
    ProcessEvent map = fork;
    map.kind = ProcessEvent::Kind::map;
    map.time = ++now_;
    map.map = file;
    map.map.start += shift_of(pid);
    map.map.end += shift_of(pid);
    events_.push_back(map);
  }
}

void Simulation::end(uint32_t pid) {
  ProcessEvent exit;
  exit.kind = ProcessEvent::Kind::exit;
  exit.time = ++now_;
  exit.pid = pid;
  events_.push_back(exit);
}

void Simulation::tell(uint32_t pid, uint32_t program) {
  pk_label info{};
  info.pid = pid;
  info.tid = pid;
  info.start_boottime = uint64_t{pid} << 20;
  info.seen = ++now_;
  info.exec_id = 1;
  ("program-" + std::to_string(program)).copy(info.comm, sizeof(info.comm) - 1);
  tables_.labels.emplace_back(uint64_t{pid} << 32 | 1, info);
}

// The same seed is the same stack.
uint64_t Simulation::kernel_stack(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> ips;
  ips.reserve(scenario_.depth);
  for (uint32_t i = 0; i < scenario_.depth; ++i)
    ips.push_back(kernel_text + random() % kernel_places * 512);
  tables_.stacks.emplace_back(seed, std::move(ips));
  return seed;
}

uint64_t Simulation::user_stack(uint64_t seed, uint32_t pid) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> ips;
  for (uint32_t i = 0; i < scenario_.depth; ++i) {
    const UserMap& file = files_[random() % files_.size()];
    const uint64_t size = file.end - file.start;
    ips.push_back(file.start + shift_of(pid) +
                  random() % (user_places / files_.size()) * 64 % size);
  }
  // As the kernel side's: another number at other addresses.
  const uint64_t number = seed << 32 | pid;
  tables_.stacks.emplace_back(number, std::move(ips));
  return number;
}

void Simulation::count(uint32_t pid, uint64_t seed, uint8_t kind) {
  pk_key key{};
  key.ran_on = uint64_t{pid} << 32 | 1;
  key.served = key.ran_on;
  key.ustack = user_stack(seed, pid);
  key.kind = kind;
  key.syscall = kind == PK_OWN ? 0 : PK_NO_SYSCALL;
  key.kstack = kind == PK_USER ? 0 : kernel_stack(seed);
  key.vec = kind == PK_SOFTIRQ ? PK_VEC_NET_RX : PK_VEC_NONE;
  key.exec_id = 1;
  tables_.counts.emplace_back(key, pk_count{sample_ns, 1});
  ns_ += sample_ns;
}

void Simulation::second() {
  const auto kind_of = [](uint64_t seed) {
    return static_cast<uint8_t>(seed % 3 == 0 ? PK_USER : seed % 3 == 1 ? PK_OWN : PK_SOFTIRQ);
  };
  for (uint32_t i = 0; i < scenario_.steady_stacks; ++i) {
    if (i < 100) tell(first_pid + i, i);
    count(first_pid + i % 100, 1 + i, kind_of(i));
  }
  for (uint32_t i = 0; i < scenario_.new_stacks; ++i, ++fresh_)
    count(first_pid + i % 100, fresh_, kind_of(fresh_));
  for (uint32_t i = 0; i < scenario_.processes; ++i) {
    const uint32_t pid = next_pid_++;
    const uint32_t program = pid % programs;
    start(pid, program);
    tell(pid, program);
    for (uint64_t n = 0; n < 3; ++n)
      count(pid, 100'000 + program * 100 + (pid + n) % 20, kind_of(n));
    end(pid);
  }
}

Result<Json> Simulation::run() {
  // Those that are there from the start.
  for (uint32_t i = 0; i < 100; ++i) start(first_pid + i, i);
  Json memory = Json::object();
  double drains_ms = 0;
  double slowest_ms = 0;
  for (uint32_t s = 1; s <= scenario_.seconds; ++s) {
    second();
    const double before = now_ms();
    // What Session::drain() does with them.
    processes_.add_events(events_);
    for (const auto& [label, info] : tables_.labels) processes_.add_label(label, info);
    recorder_->add(tables_);
    processes_.bury();
    recorder_->make_room();
    const double took = now_ms() - before;
    drains_ms += took;
    slowest_ms = std::max(slowest_ms, took);
    events_.clear();
    tables_ = {};
    now_ = std::max(now_, s * second_ns);
    if (std::ranges::find(scenario_.show, s) != scenario_.show.end())
      memory[std::to_string(s)] = rss_mib();
  }
  const double before = now_ms();
  Profile profile;
  recorder_->finish(profile, [](uint64_t) { return true; });
  profile.meta.cpus = 1;
  profile.meta.duration_ns = ns_;
  const double finished = now_ms();
  const double at_finish = rss_mib();
  const uint64_t without_stack = recorder_->without_stack();
  recorder_.reset();  // as a recording does: it is at its end
  char path[] = "/tmp/pkprof-scale-XXXXXX";
  close(mkstemp(path));
  const auto written = write_profile(profile, path);
  const double end = now_ms();
  struct stat file{};
  stat(path, &file);
  unlink(path);
  if (!written) return std::unexpected(written.error());
  uint64_t ns = 0;
  for (const auto& sample : profile.samples()) ns += sample.value.ns;
  return Json{
      {"memory", memory},
      {"drain, ms", drains_ms / scenario_.seconds},
      {"slowest drain, ms", slowest_ms},
      {"finish, ms", finished - before},
      {"memory after it, MiB", at_finish},
      {"writing, ms", end - finished},
      {"file, MiB", static_cast<double>(file.st_size) / (1 << 20)},
      {"rows", profile.samples().size()},
      {"stacks", profile.stack_count()},
      {"labels", profile.labels().size()},
      {"time that is missing, ns", ns_ - ns},
      {"samples without a stack, %", 100 * static_cast<double>(without_stack) *
                                         static_cast<double>(sample_ns) / static_cast<double>(ns_)},
      {"ended processes without a row of their own", processes_.folded()}};
}

void print(const std::string& name, const Json& value) {
  if (value.is_number_integer())
    std::printf("| %s | %lld |\n", name.c_str(), static_cast<long long>(value.get<int64_t>()));
  else
    std::printf("| %s | %.1f |\n", name.c_str(), value.get<double>());
}

}  // namespace

Result<> simulate(const Scenario& scenario) {
  const auto result = in_child([&]() -> Result<Json> {
    auto told = Simulation(scenario).run();
    if (told) (*told)["peak memory, MiB"] = peak_rss_mib();
    return told;
  });
  if (!result) return std::unexpected(result.error());
  std::printf("| %s | |\n|---|--:|\n", scenario.name.c_str());
  for (const uint32_t s : scenario.show)
    std::printf("| memory after %u s, MiB | %.1f |\n", s,
                (*result)["memory"][std::to_string(s)].get<double>());
  for (const auto& [name, value] : result->items())
    if (value.is_number()) print(name, value);
  std::puts("");
  return {};
}

}  // namespace pkprof::scale
