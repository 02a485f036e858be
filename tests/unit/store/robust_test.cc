// SPDX-License-Identifier: Apache-2.0
// Files that are no store, stores that are damaged, writers that die, disks that are full.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>

#include "store/store_fixture.h"

namespace pkprof {
namespace {

using test::cut_of;
using test::second_ns;
using test::served_name;
using test::StoreTest;
using test::times_by;
using test::web_machine;

class StoreRobust : public StoreTest {
 protected:
  void write(std::string_view bytes) const {
    std::ofstream(path(), std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
  }

  std::string read() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void expect_refused(const char* why) const {
    for (const Store::Mode mode : {Store::Mode::read, Store::Mode::write, Store::Mode::create}) {
      const std::string error = why_not(mode);
      EXPECT_NE(error.find(why), std::string::npos) << error;
      EXPECT_NE(error.find(path()), std::string::npos) << error;
    }
  }
};

TEST_F(StoreRobust, UrlsNameAStoreOrNone) {
  for (const char* url : {"", "sqlite:", "postgres://x", "pkprof.pb.gz", "/tmp"}) {
    const auto store = Store::open(url, Store::Mode::read);
    ASSERT_FALSE(store) << url;
    EXPECT_NE(store.error().message.find("names no store"), std::string::npos);
  }
  EXPECT_NE(why_not(Store::Mode::write).find("No such file"), std::string::npos) << why_not();
  EXPECT_FALSE(std::filesystem::exists(path())) << "opening makes none";
}

TEST_F(StoreRobust, AFileThatIsNoDatabaseStaysAsItIs) {
  const std::string text(5000, 'x');
  write(text);
  expect_refused("no SQLite database");
  EXPECT_EQ(read(), text);
}

TEST_F(StoreRobust, AnothersDatabaseStaysAsItIs) {
  if (asked_of_sqlite3("select 1;").empty()) GTEST_SKIP() << "there is no sqlite3 command";
  const std::string command = "sqlite3 '" + path() + "' 'create table cuts(id);'";
  ASSERT_EQ(system(command.c_str()), 0);  // NOLINT(cert-env33-c): a path of our own
  expect_refused("no store of pkprof's");
}

TEST_F(StoreRobust, OfANewerPkprof) {
  made();
  const std::string command = "sqlite3 '" + path() + "' 'pragma user_version = 99;'";
  if (system(command.c_str()) != 0) GTEST_SKIP() << "there is no sqlite3 command";  // NOLINT
  expect_refused("newer pkprof");
}

TEST_F(StoreRobust, InitTwiceKeepsWhatIsThere) {
  auto store = made();
  ASSERT_TRUE(store->put(cut_of("web1", second_ns, web_machine())).value());
  store = made();
  EXPECT_EQ(store->info()->cuts, 1U);
  struct stat about{};
  ASSERT_EQ(stat(path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U) << "it has addresses of the kernel's";
}

TEST_F(StoreRobust, AnEmptyFileIsNoStoreYet) {
  write("");
  EXPECT_NE(why_not().find("store init"), std::string::npos) << why_not();
  EXPECT_EQ(why_not(Store::Mode::create), "");
}

// Whatever is damaged: a sentence, or a profile that holds together. Never a crash.
TEST_F(StoreRobust, DamagedFiles) {
  {
    const auto store = made();
    for (uint64_t i = 1; i < 4; ++i)
      ASSERT_TRUE(store->put(cut_of("web1", i * second_ns, test::storable_profile(i, 40))).value());
  }
  const std::string whole = read();
  ASSERT_GT(whole.size(), 20'000U);
  std::mt19937_64 random(1);
  size_t refused = 0;
  const auto try_all = [&](const std::string& bytes) {
    write(bytes);
    for (const char* log : {"-wal", "-shm"}) std::filesystem::remove(path() + log);
    auto store = Store::open(path(), Store::Mode::write);
    if (!store) {
      ++refused;
      return;
    }
    const auto found = (*store)->query({});
    const auto info = (*store)->info();
    const auto put = (*store)->put(cut_of("web2", second_ns, web_machine()));
    const auto retained = (*store)->retain({.oldest_unix_ns = 2 * second_ns});
    refused += !found || !info || !put || !retained ? 1 : 0;
  };
  for (size_t length = 0; length < whole.size(); length += 1 + whole.size() / 20)
    try_all(whole.substr(0, length));
  EXPECT_GT(refused, 18U) << "what is cut off is missed";
  for (int i = 0; i < 200; ++i) {
    std::string bytes = whole;
    for (int n = 0; n < 1 + i % 40; ++n)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    try_all(bytes);
  }
}

TEST_F(StoreRobust, RowsThatPointNowhere) {
  if (asked_of_sqlite3("select 1;").empty()) GTEST_SKIP() << "there is no sqlite3 command";
  for (const char* damage :
       {"delete from stacks", "delete from labels", "delete from strings", "delete from frames",
        "update charges set basis = 200", "update charges set resource = 77",
        "update charges set ns = -5", "update charges set ns = 9223372036854775807",
        "update stacks set frames = x'80'", "update stacks set frames = x'7f'",
        "update stacks set frames = x'ffffffffffffffffffff01'", "update labels set kind = 99",
        "update charges set thread = 4294967296", "update cuts set cpus = -1",
        "update settings set value = 0"}) {
    std::filesystem::remove(path());
    const auto store = made();
    ASSERT_TRUE(store->put(cut_of("web1", second_ns, web_machine())).value());
    const std::string command = "sqlite3 '" + path() + "' \"" + damage + "\"";
    ASSERT_EQ(system(command.c_str()), 0);  // NOLINT(cert-env33-c): a path of our own
    const bool of_put = std::string_view(damage).contains("settings");
    const auto found = store->query({});
    EXPECT_EQ(found.has_value(), of_put) << damage;
    if (!of_put) continue;
    EXPECT_FALSE(store->put(cut_of("web1", 2 * second_ns, web_machine()))) << damage;
  }
}

// As if two contents had one number: the put fails, and nothing of it stays.
TEST_F(StoreRobust, ANumberOfTwoThingsIsNoticed) {
  const auto store = made();
  ASSERT_TRUE(store->put(cut_of("web1", second_ns, web_machine())).value());
  const std::string command =
      "sqlite3 '" + path() + "' \"update strings set text = 'another' where text = 'tcp_v4_rcv'\"";
  if (system(command.c_str()) != 0) GTEST_SKIP() << "there is no sqlite3 command";  // NOLINT
  const auto put = store->put(cut_of("web1", 2 * second_ns, web_machine()));
  ASSERT_FALSE(put);
  EXPECT_NE(put.error().message.find("strings"), std::string::npos) << put.error().message;
  EXPECT_EQ(store->info()->cuts, 1U);
}

TEST_F(StoreRobust, HostileNamesComeBack) {
  const auto store = made();
  const std::string names[] = {std::string("nul\0nul", 7),
                               "'; DROP TABLE cuts;--",
                               "\xff\xfe",
                               "</script>",
                               std::string(100'000, 'x'),
                               "a/b",
                               "\n"};
  uint64_t start = 0;
  for (const std::string& name : names) {
    Cut cut = cut_of(name, ++start * second_ns, web_machine());
    cut.labels = {{name, name}};
    cut.boot_id = name;
    cut.profile.label({.kind = LabelKind::process, .pid = 812, .start_ns = 5, .comm = name});
    const LabelId id = cut.profile.label({.kind = LabelKind::process, .pid = 77, .comm = name});
    cut.profile.add({.ran_on = id, .served = id, .source = cut.profile.string(name)}, {.ns = 1});
    ASSERT_TRUE(store->put(cut).value());
    const auto found = store->query({.hosts = {name}, .labels = {{name, name}}});
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->meta.host, name);
    EXPECT_EQ(times_by(*found, served_name).at(name + ":77"), 1U);
  }
  EXPECT_EQ(store->info()->cuts, std::size(names));
}

// Killed at any moment of a put, all of a cut is there or none of it.
TEST_F(StoreRobust, AWriterThatIsKilledLeavesWholeCuts) {
  made();
  uint64_t killed_with_cuts = 0;
  for (int round = 0; round < 8; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto store = opened();
      for (uint64_t i = 0;; ++i) {
        const auto put = store->put(cut_of(
            "web1", (1 + static_cast<uint64_t>(round) * 1'000'000 + i) * second_ns, web_machine()));
        if (!put) _exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(15 + 7 * round));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
    const auto store = opened();
    const StoreInfo info = store->info().value();
    if (info.cuts == 0) continue;
    ++killed_with_cuts;
    const auto found = store->query({});
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(times_by(*found, served_name).at("nginx:812"), info.cuts * 500'000'001U);
    EXPECT_EQ(found->cpu_ns(), info.cuts * 2 * second_ns);
  }
  EXPECT_GT(killed_with_cuts, 4U);
  EXPECT_EQ(asked_of_sqlite3("pragma integrity_check;"), "ok\n");
}

// In a child, whose files may not grow: for SQLite that is a disk that is full.
TEST_F(StoreRobust, AFullDiskLosesNothing) {
  const auto store = made();
  ASSERT_TRUE(store->put(cut_of("web1", second_ns, web_machine())).value());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{256 << 10, 256 << 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto writer = opened();
    for (uint64_t i = 2; i < 200; ++i)
      if (!writer->put(cut_of("web2", i * second_ns, test::storable_profile(i, 100))))
        _exit(writer->query({.hosts = {"web1"}}) ? 0 : 2);
    _exit(3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const auto found = store->query({.hosts = {"web1"}});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->cpu_ns(), 2 * second_ns);
  EXPECT_TRUE(store->put(cut_of("web1", 5 * second_ns, web_machine())).value());
}

TEST_F(StoreRobust, ReadersSeeWholeCutsWhileOthersWrite) {
  made();
  std::atomic<bool> failed = false;
  std::vector<std::jthread> writers;
  writers.reserve(2);
  for (int w = 0; w < 2; ++w)
    writers.emplace_back([&, w] {
      const auto store = opened();
      for (uint64_t i = 1; i <= 30; ++i)
        if (!store->put(cut_of("web" + std::to_string(w), i * second_ns, web_machine())))
          failed = true;
    });
  const auto reader = opened(Store::Mode::read);
  for (uint64_t cuts = 0; cuts < 60 && !failed;) {
    const auto found = reader->query({});
    if (!found) continue;
    uint64_t ns = 0;
    for (const Profile::Sample& sample : found->samples()) ns += sample.value.ns;
    ASSERT_EQ(ns, found->cpu_ns());
    cuts = found->cpu_ns() / (2 * second_ns);
  }
  EXPECT_FALSE(failed);
}

}  // namespace
}  // namespace pkprof
