// SPDX-License-Identifier: Apache-2.0
// The way of a cut: into the spool, and from there to each sink, however often that fails.
#include "agent/delivery.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <mutex>

#include "agent/files_sink.h"
#include "agent/spool.h"

namespace pkprof {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class AgentSpool : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "pkprof-agent-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }

  [[nodiscard]] Spool open(const std::vector<std::string>& sinks, uint64_t most = 1 << 20) const {
    auto spool = Spool::open((dir_ / "spool").string(), sinks, most);
    EXPECT_TRUE(spool) << spool.error().message;
    return std::move(*spool);
  }
  static std::string content(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path dir_;
};

TEST_F(AgentSpool, KeepsEachCutForEachSink) {
  Spool spool = open({"a", "b"});
  ASSERT_TRUE(spool.add(20, "boot", "second"));
  ASSERT_TRUE(spool.add(3, "boot", "first"));
  const auto oldest = spool.oldest("a");
  ASSERT_TRUE(oldest);
  EXPECT_EQ(content(oldest->path), "first") << "by time, not by when it came";
  EXPECT_EQ(fs::hard_link_count(oldest->path), 2) << "its bytes are there once";
  spool.remove("a", oldest->path);
  EXPECT_EQ(content(spool.oldest("a")->path), "second");
  EXPECT_EQ(spool.depth("b").cuts, 2);
  EXPECT_EQ(spool.depth("b").bytes, 11);
}

TEST_F(AgentSpool, IsWhatItWasAfterARestart) {
  {
    Spool spool = open({"a"});
    ASSERT_TRUE(spool.add(1, "boot", "one"));
  }
  std::ofstream(dir_ / "spool" / "fresh.pb.gz") << "half a cu";  // killed while it wrote
  Spool spool = open({"a"});
  EXPECT_EQ(spool.depth("a").cuts, 1);
  EXPECT_FALSE(fs::exists(dir_ / "spool" / "fresh.pb.gz"));
  ASSERT_TRUE(spool.add(2, "boot", "two"));
  EXPECT_EQ(content(spool.oldest("a")->path), "one");
}

TEST_F(AgentSpool, DropsTheOldestForWantOfRoomAndCounts) {
  Spool spool = open({"slow", "quick"}, 10);
  for (uint64_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(spool.add(i, "boot", "1234"));
    spool.remove("quick", spool.oldest("quick")->path);
  }
  EXPECT_EQ(spool.depth("slow").cuts, 2);
  EXPECT_EQ(spool.depth("slow").dropped, 3);
  EXPECT_EQ(spool.depth("quick").dropped, 0);
  EXPECT_NE(spool.oldest("slow")->path.find("00000000000000000003-boot"), std::string::npos);
}

TEST_F(AgentSpool, TellsOfCutsThatNobodyTakes) {
  {
    Spool spool = open({"gone"});
    ASSERT_TRUE(spool.add(1, "boot", "one"));
  }
  const Spool spool = open({"a"});
  EXPECT_EQ(spool.forsaken(), std::vector<std::string>{(dir_ / "spool" / "gone").string()});
}

TEST_F(AgentSpool, FilesAreKeptAsLongAsAsked) {
  Spool spool = open({"files"});
  const SinkConfig config{.name = "files",
                          .type = "files",
                          .directory = (dir_ / "out").string(),
                          .keep = {.age_ns = 0, .bytes = 9}};
  FilesSink sink(config);
  const std::map<std::string, std::string> labels;
  for (const uint64_t start :
       {1'796'000'000'250'000'000U, 1'796'000'010'250'000'000U, 1'796'000'020'250'000'000U}) {
    ASSERT_TRUE(spool.add(start, "boot", "1234"));
    const Spool::Cut oldest = *spool.oldest("files");
    EXPECT_EQ(oldest.boot, "boot");
    EXPECT_EQ(oldest.start_unix_ns, start);
    const CutFile cut{oldest.path, "we/b1", oldest.boot, oldest.start_unix_ns, labels};
    ASSERT_TRUE(sink.put(cut));
    ASSERT_TRUE(sink.put(cut)) << "once more, it is there";
    spool.remove("files", oldest.path);
    std::this_thread::sleep_for(5ms);  // or they are of one age
  }
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir_ / "out"))
    names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"we_b1-1796000010.250000000-boot.pb.gz",
                                          "we_b1-1796000020.250000000-boot.pb.gz"}));
}

// Fails as often as it is told to.
class Moody : public Sink {
 public:
  Moody(int failures, std::vector<std::string>& taken, std::mutex& mutex)
      : failures_(failures), taken_(taken), mutex_(mutex) {}
  Result<> put(const CutFile& cut) override {
    const std::lock_guard lock(mutex_);
    if (failures_-- > 0) return fail("it is moody");
    taken_.push_back(fs::path(cut.path).filename());
    return {};
  }

 private:
  int failures_;
  std::vector<std::string>& taken_;
  std::mutex& mutex_;
};

class AgentDelivery : public AgentSpool {
 protected:
  std::unique_ptr<Delivery> deliver(Spool& spool, int failures) {
    return std::make_unique<Delivery>(
        Delivery::Options{
            .sink = "a", .host = "h", .labels = {}, .first_pause = 1ms, .longest_pause = 4ms},
        std::make_unique<Moody>(failures, taken_, mutex_), spool, [this](const std::string& text) {
          const std::lock_guard lock(mutex_);
          told_.push_back(text);
        });
  }
  static auto soon() { return std::chrono::steady_clock::now() + 10s; }

  std::mutex mutex_;
  std::vector<std::string> taken_;
  std::vector<std::string> told_;
};

TEST_F(AgentDelivery, SendsEachInItsOrder) {
  Spool spool = open({"a"});
  const auto delivery = deliver(spool, 0);
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(spool.add(i, "boot", "x"));
    delivery->wake();
  }
  ASSERT_TRUE(delivery->empty_by(soon()));
  ASSERT_EQ(taken_.size(), 20);
  EXPECT_TRUE(std::ranges::is_sorted(taken_));
  EXPECT_EQ(delivery->figures().sent, 20);
  EXPECT_TRUE(told_.empty());
}

TEST_F(AgentDelivery, TriesAgainAndTellsOnce) {
  Spool spool = open({"a"});
  ASSERT_TRUE(spool.add(1, "boot", "x"));
  const auto delivery = deliver(spool, 5);
  ASSERT_TRUE(delivery->empty_by(soon()));
  EXPECT_EQ(taken_.size(), 1);
  EXPECT_EQ(delivery->figures().errors, 5);
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(told_, (std::vector<std::string>{"sink a: it is moody; cuts wait in the spool",
                                             "sink a: it takes cuts again"}));
}

TEST_F(AgentDelivery, LeavesInTheSpoolWhatIsNotTaken) {
  Spool spool = open({"a"});
  ASSERT_TRUE(spool.add(1, "boot", "x"));
  {
    const auto delivery = deliver(spool, 1'000'000);
    EXPECT_FALSE(delivery->empty_by(std::chrono::steady_clock::now() + 50ms));
  }
  EXPECT_EQ(spool.depth("a").cuts, 1);
  EXPECT_EQ(told_.size(), 1);
}

}  // namespace
}  // namespace pkprof
