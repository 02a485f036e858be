// SPDX-License-Identifier: Apache-2.0
#include "collect/processes.h"

#include <gtest/gtest.h>

#include <vector>

namespace pkprof {
namespace {

constexpr uint32_t kPid = 4'190'001;  // no process has it: what is known comes from events
constexpr uint64_t kLabel = uint64_t{kPid} << 32 | 1;
constexpr uint64_t kAddress = 0x5000'1000;

ProcessEvent event(ProcessEvent::Kind kind, uint64_t time) {
  ProcessEvent e;
  e.kind = kind;
  e.time = time;
  e.pid = kPid;
  e.parent = kPid - 1;
  return e;
}

class ProcessesTest : public testing::Test {
 protected:
  // A life: born at 100, an exec at 200.
  void SetUp() override {
    ProcessEvent exec = event(ProcessEvent::Kind::exec, 200);
    exec.comm = "short";
    ProcessEvent map = event(ProcessEvent::Kind::map, 201);
    map.map = {0x5000'0000, 0x5001'0000, 0, 1, 1, 1, "/no/such/program", ""};
    processes_.add_events({event(ProcessEvent::Kind::fork, 100), exec, map});
    pk_label info{};
    info.pid = kPid;
    info.seen = 210;
    info.exec_id = 1;
    processes_.add_label(kLabel, info);
  }
  std::string mapped_file() {
    return symbols_.find(processes_.image_of(kLabel, 1), kAddress).map.file;
  }

  UserSymbols symbols_;
  Processes processes_{symbols_};
};

TEST_F(ProcessesTest, AnImageIsFoundByItsExec) {
  EXPECT_EQ(mapped_file(), "/no/such/program");
  EXPECT_NE(processes_.image_of(kLabel, 0), processes_.image_of(kLabel, 1));
  EXPECT_EQ(processes_.label_of(kLabel).exe, "/no/such/program");
}

// Samples of it may be in the tables that are read next.
TEST_F(ProcessesTest, MappingsOutliveTheProcessByOneReading) {
  processes_.add_events({event(ProcessEvent::Kind::exit, 300)});
  processes_.bury();
  EXPECT_EQ(mapped_file(), "/no/such/program");
  processes_.bury();
  EXPECT_EQ(mapped_file(), "");
}

}  // namespace
}  // namespace pkprof
