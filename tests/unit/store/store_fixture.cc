// SPDX-License-Identifier: Apache-2.0
#include "store/store_fixture.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "random_profile.h"

namespace pkprof::test {
namespace fs = std::filesystem;

namespace {

fs::path new_directory() {
  std::string name = fs::path(testing::TempDir()) / "pkprof-store-XXXXXX";
  if (!mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
  return name;
}

}  // namespace

StoreTest::StoreTest() : directory_(new_directory()) {}

StoreTest::~StoreTest() {
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

std::unique_ptr<Store> StoreTest::opened(Store::Mode mode) const {
  auto store = Store::open("sqlite:" + path(), mode);
  if (!store) throw std::runtime_error(store.error().message);
  return std::move(*store);
}

std::unique_ptr<Store> StoreTest::made() {
  auto store = opened(Store::Mode::create);
  if (const auto done = store->init(); !done) throw std::runtime_error(done.error().message);
  return store;
}

std::string StoreTest::why_not(Store::Mode mode) const {
  const auto store = Store::open(path(), mode);
  return store ? "" : store.error().message;
}

std::string StoreTest::asked_of_sqlite3(const std::string& sql) const {
  std::ofstream(directory_ / "sql") << sql;
  const std::string command =
      "sqlite3 -readonly '" + path() + "' <'" + (directory_ / "sql").string() + "' 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  if (!pipe) return "popen";
  std::string text;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) text += static_cast<char>(c);
  pclose(pipe);
  return text;
}

Profile storable_profile(uint64_t seed, size_t samples) {
  Profile random = random_profile(seed, samples, false);
  Meta& meta = random.meta;
  meta.samples_taken >>= 8;
  meta.samples_lost >>= 8;
  meta.counted_functions >>= 8;
  meta.duration_ns >>= 16;
  meta.cpus = 4;
  if (meta.all_cpu_ns) meta.all_cpu_ns >>= 8;
  meta.paused_ns >>= 8;
  meta.unwatched_ns >>= 8;
  meta.measured = false;
  for (auto& [name, value] : meta.counters) value >>= 8;
  for (auto& [pair, count] : random.requests) count >>= 8;
  // Labels that no sample names do not come back; this one stands for "none" in described().
  random.add({.source = random.string("kernel")}, {.count = 1, .ns = 1});
  // What a store leaves out, as merge() does.
  random.timeline.clear();
  meta.slot_ns = 0;
  return random;
}

Profile web_machine() {
  Profile profile;
  profile.meta = {.kernel = "6.1.0",
                  .host = "here",
                  .cpus = 2,
                  .start_unix_ns = 1,
                  .duration_ns = 1'000'000'000,
                  .frequency_hz = 997,
                  .samples_taken = 2000};
  const std::string id(64, 'a');
  const LabelId nginx = profile.label(
      {.kind = LabelKind::process,
       .pid = 812,
       .start_ns = 5,
       .comm = "nginx",
       .exe = "/usr/sbin/nginx",
       .cgroup = "/system.slice/web.service",
       .container = {.id = id, .runtime = "docker", .name = "front", .image = "nginx:1.27"}});
  const LabelId batch = profile.label({.kind = LabelKind::process,
                                       .pid = 900,
                                       .start_ns = 6,
                                       .comm = "batch",
                                       .exe = "/opt/batch",
                                       .cgroup = "/system.slice/batch.service"});
  const LabelId idle = profile.label({.kind = LabelKind::idle});
  const FrameId frames[] = {
      profile.frame({.kind = FrameKind::kernel,
                     .address = 0xffffffff81000000,
                     .function = profile.string("tcp_v4_rcv")}),
      profile.frame({.kind = FrameKind::pseudo, .function = profile.string("softirq:NET_RX")})};
  const StackId stack = profile.stack(frames);
  const StringId user = profile.string("user");
  const StringId net = profile.string("softirq:NET_RX");
  profile.add({.ran_on = nginx, .served = nginx, .source = user},
              {.count = 200, .ns = 200'000'000});
  profile.add({.ran_on = batch,
               .served = nginx,
               .source = net,
               .basis = Basis::consumed,
               .stack = stack,
               .thread = 901,
               .served_thread = 813},
              {.count = 300, .ns = 300'000'001, .exact_ns = 77, .calls = 3});
  profile.add({.ran_on = batch, .served = batch, .source = user, .stack = stack},
              {.count = 500, .ns = 499'999'999});
  profile.add({.ran_on = idle, .served = idle, .source = profile.string("idle")},
              {.count = 1000, .ns = 1'000'000'000});
  profile.name_thread(nginx, 813, "nginx worker");
  return profile;
}

Cut cut_of(const std::string& host, uint64_t start_unix_ns, Profile profile) {
  profile.meta.host = host;
  profile.meta.start_unix_ns = start_unix_ns;
  return {.host = host,
          .boot_id = "b3a0",
          .start_unix_ns = start_unix_ns,
          .labels = {},
          .profile = std::move(profile)};
}

std::string served_name(const Profile& profile, const Profile::Sample& sample) {
  return profile.labels()[sample.key.served].name();
}

}  // namespace pkprof::test
