// SPDX-License-Identifier: Apache-2.0
#include "kernel/recorded_time.h"

#include <gtest/gtest.h>

namespace pkprof {
namespace {

TEST(RecordedTimeTest, IsTheClockUpToTheFirstPause) {
  RecordedTime time;
  EXPECT_FALSE(time.paused());
  EXPECT_EQ(time.at(0), 0u);
  EXPECT_EQ(time.at(123), 123u);
  time.pause(100);
  EXPECT_EQ(time.at(99), 99u);
  EXPECT_EQ(time.at(100), 100u);
}

TEST(RecordedTimeTest, StandsStillInAPause) {
  RecordedTime time;
  time.pause(100);
  EXPECT_TRUE(time.paused());
  EXPECT_EQ(time.at(170), 100u);
  time.go_on(200);
  EXPECT_FALSE(time.paused());
  EXPECT_EQ(time.at(150), 100u);
  EXPECT_EQ(time.at(200), 100u);
  EXPECT_EQ(time.at(250), 150u);
}

TEST(RecordedTimeTest, LeavesOutEachPause) {
  RecordedTime time;
  time.pause(100);
  time.go_on(200);
  time.pause(300);
  time.go_on(1000);
  time.pause(1001);
  EXPECT_EQ(time.at(250), 150u);
  EXPECT_EQ(time.at(300), 200u);
  EXPECT_EQ(time.at(999), 200u);
  EXPECT_EQ(time.at(1001), 201u);
  EXPECT_EQ(time.at(5000), 201u);
}

TEST(RecordedTimeTest, WhatIsSoAlreadyStaysSo) {
  RecordedTime time;
  time.go_on(50);
  EXPECT_EQ(time.at(60), 60u);
  time.pause(100);
  time.pause(150);
  EXPECT_EQ(time.at(160), 100u);
  time.go_on(200);
  time.go_on(300);
  EXPECT_EQ(time.at(400), 300u);
}

TEST(RecordedTimeTest, APauseOfNoLengthChangesNothing) {
  RecordedTime time;
  time.pause(100);
  time.go_on(100);
  EXPECT_EQ(time.at(100), 100u);
  EXPECT_EQ(time.at(101), 101u);
}

}  // namespace
}  // namespace pkprof
