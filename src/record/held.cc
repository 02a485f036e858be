// SPDX-License-Identifier: Apache-2.0
#include "record/held.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "attribution/parties.h"
#include "attribution/recorder.h"
#include "base/clock.h"
#include "cost/cost.h"
#include "kernel/kernel_side.h"
#include "kernel/kernel_stats.h"
#include "kernel/kernel_symbols.h"
#include "kernel/pins.h"
#include "model/merge.h"
#include "model/pprof/pprof.h"
#include "probe/facts.h"
#include "process/callers_limits.h"
#include "process/processes.h"

namespace pkprof {
namespace {

// What was counted up to a stop: for root alone, and no longer than the machine runs.
constexpr const char* kept_directory = "/run/pkprof";
constexpr const char* kept_file = "/run/pkprof/stopped.pb.gz";
constexpr const char* resumed_file = "/run/pkprof/resumed.pb.gz";  // what counts on meanwhile

KernelSideOptions side_options(uint64_t frequency_hz, bool threads, bool hooks) {
  KernelSideOptions side;
  side.frequency_hz = frequency_hz;
  side.threads = threads;
  side.hooks = hooks;
  side.held = true;
  return side;
}

uint64_t sum(const std::vector<uint64_t>& runs) {
  uint64_t all = 0;
  for (const uint64_t n : runs) all += n;
  return all;
}

// The recording that there is, as one of these commands meets it.
class Held {
 public:
  static Result<Held> open();
  static Result<Held> open(Pins pins, About about);

  [[nodiscard]] pk_stats stats() const;  // since the start or the last reset
  // What the kernel side took since then, ns. Takes a tenth of a second where it goes on.
  [[nodiscard]] double cost_ns();
  Result<Profile> read();
  Result<> reset();

  [[nodiscard]] std::vector<std::string> degraded(uint64_t until) const;

  [[nodiscard]] KernelSide& kernel() { return kernel_; }
  [[nodiscard]] const About& about() const { return about_; }
  [[nodiscard]] Pins& pins() { return pins_; }

 private:
  Held(Pins pins, About about, KernelSide kernel)
      : pins_(std::move(pins)), about_(std::move(about)), kernel_(std::move(kernel)) {}
  Meta meta(uint64_t until);

  Pins pins_;
  About about_;
  KernelSide kernel_;
};

Result<Held> Held::open() {
  auto pins = Pins::open();
  if (!pins) return std::unexpected(pins.error());
  auto about = pins->read();
  if (!about) return std::unexpected(about.error());
  if (!*about)
    return fail(
        "what is recorded is not of this version of pkprof, or its start was killed; "
        "`pkprof stop` ends it");
  if ((*about)->code != KernelSide::code())
    return fail("what is recorded was started by another build of pkprof (" + (*about)->version +
                "), and only that can read it; `pkprof stop` ends it");
  return Held::open(std::move(*pins), std::move(**about));
}

Result<Held> Held::open(Pins pins, About about) {
  raise_limits();
  auto facts = KernelFacts::read();
  if (!facts) return std::unexpected(facts.error());
  auto kernel = KernelSide::open_pinned(
      Pins::directory, *facts, side_options(about.frequency_hz, about.threads, about.hooks),
      about.sampled);
  if (!kernel) return std::unexpected(kernel.error());
  return Held(std::move(pins), std::move(about), std::move(*kernel));
}

pk_stats Held::stats() const {
  pk_stats now = kernel_.stats();
  auto* of_now = reinterpret_cast<uint64_t*>(&now);
  const auto* of_then = reinterpret_cast<const uint64_t*>(&about_.stats);
  for (size_t i = 0; i < sizeof(now) / sizeof(uint64_t); ++i) of_now[i] -= of_then[i];
  return now;
}

double Held::cost_ns() {
  constexpr int windows = 5;
  CostMeter cost(kernel_.programs(), about_.overhead);
  for (int i = 0; i < windows && !kernel_.clocks().ended(); ++i) {
    const timespec window{0, 10'000'000};
    cost.open();
    nanosleep(&window, nullptr);
    cost.close();
  }
  double ns = clock_ns(stats());
  for (size_t g = 0; g < hook_groups; ++g) {
    const auto group = static_cast<HookGroup>(g);
    const uint64_t runs = sum(kernel_.hooks().runs(group)) - about_.hook_runs[g];
    ns += static_cast<double>(runs) * cost.hook_ns(group);
  }
  return ns;
}

std::vector<std::string> Held::degraded(uint64_t until) const {
  std::vector<std::string> sentences = kernel_.clocks().absences(kernel_.clocks().started(), until);
  for (const Capability& c : about_.capabilities)
    if (!c.works) sentences.push_back(c.name + ": " + c.how + "; " + c.costs);
  return sentences;
}

Meta Held::meta(uint64_t until) {
  const pk_stats counted = stats();
  Meta meta;
  meta.kernel = kernel_release();
  meta.host = host_name();
  meta.cpus = kernel_.clocks().cpus(kernel_.clocks().started());
  meta.start_unix_ns = about_.started_at;
  meta.duration_ns = until - kernel_.clocks().started();
  meta.frequency_hz = about_.frequency_hz;
  meta.samples_taken = counted.samples;
  meta.samples_lost = counted.lost_samples;
  meta.cost_kernel_ns = static_cast<uint64_t>(cost_ns());
  meta.degraded = degraded(until);
  meta.counters = kernel_counters(counted);
  return meta;
}

Result<Profile> Held::read() {
  Profile profile;
  std::vector<std::string> degraded;
  auto symbols = load_kernel_symbols();
  if (!symbols) degraded.push_back(symbols.error().message);
  auto later_symbols = load_bpf_symbols();
  UserSymbols user_symbols;
  Processes processes(user_symbols, about_.threads);
  Recorder recorder(symbols ? &*symbols : nullptr, user_symbols, processes);
  if (later_symbols) recorder.add_kernel_symbols([&] { return &*later_symbols; });
  Parties parties;

  auto tables = kernel_.tables().snapshot();
  if (!tables) return std::unexpected(tables.error());
  const Leftovers left = kernel_.tables().snapshot_leftovers();
  // At once: what goes on is counted on, and names take a while.
  profile.meta = meta(tables->taken);
  for (const auto& [label, info] : tables->labels) processes.add_label(label, info);
  parties.add(tables->votes);
  parties.add(left.votes, 0);
  recorder.add(*tables);
  recorder.add_leftovers(left);
  recorder.add_special(PK_IDLE, tables->idle_ns);
  recorder.add_special(uint64_t{PK_UNCLAIMED} + PK_LOST, stats().lost_ns);
  if (about_.hooks && !kernel_.clocks().ended()) kernel_.owners().ask();
  const auto owner = [this](uint64_t object) { return kernel_.owners().of(object); };
  recorder.resolve_owners([&](uint64_t object) { return parties.of(object, owner, true); });
  recorder.make_room();

  profile.meta.degraded.insert(profile.meta.degraded.end(), degraded.begin(), degraded.end());
  for (const std::string& w : user_symbols.warnings()) profile.meta.degraded.push_back(w);
  profile.meta.counters["shared objects forgotten"] = parties.forgotten();
  profile.meta.counters["samples of objects forgotten"] = recorder.forgotten().samples;
  profile.meta.counters["owners of sockets without room"] = kernel_.owners().without_room();
  profile.meta.counters["processes with unreadable mappings"] = processes.unreadable();
  profile.meta.counters["samples without a stack for want of memory"] =
      recorder.without_stack().samples;
  profile.meta.counters["ended processes without a row of their own"] = processes.folded();
  profile.meta.counters["ended threads without a row of their own"] = processes.folded_threads();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  profile.meta.cost_user_ns =
      static_cast<uint64_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000'000 +
      static_cast<uint64_t>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1'000;
  recorder.finish(profile, [](uint64_t) { return true; });
  return profile;
}

Result<> Held::reset() {
  if (kernel_.clocks().ended())
    return fail(
        "it was stopped, and what it counted could not be written; `pkprof stop` tries again");
  if (auto r = kernel_.tables().reset(); !r) return r;
  about_.started_at = unix_ns() - (monotonic_ns() - kernel_.clocks().started());
  about_.stats = kernel_.stats();
  for (size_t g = 0; g < hook_groups; ++g)
    about_.hook_runs[g] = sum(kernel_.hooks().runs(static_cast<HookGroup>(g)));
  return pins_.write(about_);
}

bool is_kept() {
  return access(kept_file, F_OK) == 0;
}

Result<> forget(const char* file) {
  if (unlink(file) && errno != ENOENT) return fail_errno(std::string("removing ") + file);
  rmdir(kept_directory);  // if nothing else is there
  return {};
}

Result<> forget_kept() {
  if (auto r = forget(resumed_file); !r) return r;
  return forget(kept_file);
}

// What was kept is part of what is begun now.
Result<> resume_kept() {
  if (is_kept() && rename(kept_file, resumed_file))
    return fail_errno(std::string("renaming ") + kept_file);
  return {};
}

bool is_resumed() {
  return access(resumed_file, F_OK) == 0;
}

// Of what was resumed, nothing came; or it is part of what was kept since.
Result<> keep_resumed() {
  if (is_kept()) return forget(resumed_file);
  if (is_resumed() && rename(resumed_file, kept_file))
    return fail_errno(std::string("renaming ") + resumed_file);
  return {};
}

// With what was counted before.
Result<Profile> with_resumed(Result<Profile> later) {
  if (!later || !is_resumed()) return later;
  auto profile = read_profile(resumed_file);
  if (!profile) return profile;
  if (auto r = merge(*profile, *later); !r)
    return fail("what was counted before the last halt cannot be added to: " + r.error().message +
                "; `pkprof reset` forgets it");
  return profile;
}

}  // namespace

Result<> start_held(const HeldOptions& options) {
  raise_limits();
  auto pins = Pins::create();
  if (!pins) return std::unexpected(pins.error());
  const auto start = [&]() -> Result<> {
    About about;
    about.version = PKPROF_VERSION;
    about.code = KernelSide::code();
    about.frequency_hz = options.frequency_hz;
    about.threads = options.threads;
    about.hooks = options.hooks;
    auto facts = KernelFacts::read();
    if (!facts) return std::unexpected(facts.error());
    auto loaded = LoadedKernel::load(
        *facts, side_options(options.frequency_hz, options.threads, options.hooks));
    if (!loaded) return std::unexpected(loaded.error());
    about.overhead = loaded->overhead();
    KnownFunctions functions;
    auto symbols = load_kernel_symbols();
    if (symbols) functions = find_functions(*symbols);
    auto kernel = std::move(*loaded).attach(symbols ? &functions : nullptr);
    if (!kernel) return std::unexpected(kernel.error());
    about.capabilities = kernel->hooks().capabilities();
    about.sampled = kernel->clocks().sampled();
    if (auto r = kernel->pin(Pins::directory); !r) return r;
    // Before it counts: whoever is killed after this leaves nothing that is taken for more.
    if (options.resume)
      if (auto r = resume_kept(); !r) return r;
    about.started_at = unix_ns();
    if (auto r = kernel->enable(); !r) return r;
    return pins->write(about);
  };
  auto started = start();
  if (started) return options.resume ? Result<>() : forget_kept();
  for (const Result<>& undone : {pins->remove(), options.resume ? keep_resumed() : Result<>()})
    if (!undone) return fail(started.error().message + "; and " + undone.error().message);
  return started;
}

Result<Profile> dump_held() {
  if (!Pins::exist() && is_kept()) return read_profile(kept_file);
  auto held = Held::open();
  if (!held) return std::unexpected(held.error());
  return with_resumed(held->read());
}

Result<> reset_held() {
  if (!Pins::exist() && is_kept()) return forget_kept();
  auto held = Held::open();
  if (!held) return std::unexpected(held.error());
  if (auto r = held->reset(); !r) return r;
  return forget_kept();
}

Result<bool> stop_held(const std::string& path) {
  auto pins = Pins::open();
  if (!pins) return std::unexpected(pins.error());
  auto about = pins->read();
  if (!about) return std::unexpected(about.error());
  if (!*about || (*about)->code != KernelSide::code()) {
    if (auto r = pins->remove(); !r) return std::unexpected(r.error());
    if (auto r = keep_resumed(); !r) return std::unexpected(r.error());
    return false;
  }
  auto held = Held::open(std::move(*pins), std::move(**about));
  if (!held) return std::unexpected(held.error());
  const bool stops_now = !held->kernel().clocks().ended();
  held->kernel().clocks().end();
  // Now, or not at all: a socket of later may lie where one of these did.
  if (stops_now && held->about().hooks) held->kernel().owners().ask();
  if (auto r = held->pins().remove_links(); !r) return std::unexpected(r.error());
  auto profile = with_resumed(held->read());
  if (!profile) return std::unexpected(profile.error());
  if (path.empty() && mkdir(kept_directory, 0700) && errno != EEXIST)
    return fail_errno(std::string("making ") + kept_directory);
  if (auto r = write_profile(*profile, path.empty() ? kept_file : path); !r)
    return std::unexpected(r.error());
  if (auto r = held->pins().remove(); !r) return std::unexpected(r.error());
  if (auto r = forget(resumed_file); !r) return std::unexpected(r.error());
  return true;
}

bool is_held() {
  return Pins::exist();
}

Result<HeldStatus> held_status() {
  auto held = Held::open();
  if (!held) return std::unexpected(held.error());
  HeldStatus status;
  const About& about = held->about();
  const pk_stats stats = held->stats();
  status.stopped = held->kernel().clocks().ended() != 0;
  status.resumed = is_resumed();
  status.started_at = about.started_at;
  const uint64_t stopped = held->kernel().clocks().ended();
  status.duration_ns = (stopped ? stopped : monotonic_ns()) - held->kernel().clocks().started();
  status.frequency_hz = about.frequency_hz;
  status.threads = about.threads;
  status.samples = stats.samples;
  status.cpus = held->kernel().clocks().cpus(held->kernel().clocks().started());
  status.rows = held->kernel().tables().rows();
  status.most_rows = held->kernel().tables().counts().entries();
  const double all_ns = static_cast<double>(status.duration_ns) * status.cpus;
  status.cost = all_ns > 0 ? held->cost_ns() / all_ns : 0;
  status.degraded = held->degraded(stopped ? stopped : monotonic_ns());
  status.counters = kernel_counters(stats);
  return status;
}

}  // namespace pkprof
