// SPDX-License-Identifier: Apache-2.0
#include "args/arg_parser.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace pkprof {
namespace {

TEST(ArgParser, AListIsOneWord) {
  ArgParser parser("");
  std::vector<int> pids;
  std::string file;
  parser.add("--pid", pids, "").separated_by(',');
  parser.add("file", file, "");
  EXPECT_FALSE(parser.parse({"--pid", "1,2", "a.pb.gz", "--pid", "3"}));
  EXPECT_EQ(pids, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(file, "a.pb.gz");
}

// What is neither less nor more than anything is in no range.
TEST(ArgParser, NumbersAreFinite) {
  for (const char* word : {"nan", "-nan", "inf", "-inf", "1e400", "infinity", "nan(7)"}) {
    ArgParser parser("");
    double any = 0;
    double ranged = 0;
    double positive = 0;
    double not_negative = 0;
    double seconds = 0;
    parser.add("--any", any, "");
    parser.add("--ranged", ranged, "").range(0.0, 1.0);
    parser.add("--positive", positive, "").positive();
    parser.add("--not-negative", not_negative, "").not_negative();
    parser.add("--seconds", seconds, "").seconds();
    for (const char* option : {"--any", "--ranged", "--positive", "--not-negative", "--seconds"}) {
      const auto end = parser.parse({std::string(option) + "=" + word});
      EXPECT_TRUE(end && !end->error.empty()) << option << " " << word;
    }
  }
}

TEST(ArgParser, SecondsEnd) {
  ArgParser parser("");
  double seconds = 0;
  parser.add("-d", seconds, "").seconds();
  EXPECT_FALSE(parser.parse({"-d", "0.25"}));
  EXPECT_EQ(seconds, 0.25);
  EXPECT_FALSE(parser.parse({"-d", "1e9"}));
  for (const char* word : {"0", "-1", "1e10", "1e300", "1e-30", "x", "1s", ""})
    EXPECT_TRUE(parser.parse({"-d", word})) << word;
}

class Config : public testing::Test {
 protected:
  void SetUp() override {
    sub_.add("-F,--frequency", frequency_, "").range(1, 1000);
    sub_.add("--threads", threads_, "");
    parser_.config(file_, false);
  }
  void TearDown() override { std::filesystem::remove(file_); }
  void write(const char* text) { std::ofstream(file_) << text; }
  std::optional<ArgParser::End> parse() { return parser_.parse({"record"}); }

  const std::string file_ = testing::TempDir() + "pkprof-config.toml";
  ArgParser parser_{"", "pkprof"};
  ArgParser sub_ = parser_.subcommand("record", "");
  int frequency_ = 997;
  double seconds_ = 0;
  bool threads_ = false;
};

TEST_F(Config, NeedNotBeThere) {
  EXPECT_FALSE(parse());
  EXPECT_EQ(frequency_, 997);
}

TEST_F(Config, SaysWhatTheLineDoesNot) {
  write("# so I like it\n[record]\nfrequency = 499\nthreads = true\n");
  EXPECT_FALSE(parse());
  EXPECT_EQ(frequency_, 499);
  EXPECT_TRUE(threads_);
}

TEST_F(Config, ItsNumbersAreFinite) {
  sub_.add("-d,--duration", seconds_, "").seconds();
  for (const char* number : {"nan", "inf", "\"nan\"", "1e300", "-1"}) {
    write((std::string("[record]\nduration = ") + number + "\n").c_str());
    EXPECT_TRUE(parse()) << number;
  }
}

TEST_F(Config, TheLineComesFirst) {
  write("[record]\nfrequency = 499\n");
  EXPECT_FALSE(parser_.parse({"record", "-F", "99"}));
  EXPECT_EQ(frequency_, 99);
}

TEST_F(Config, WhatNoOptionHasIsAnError) {
  for (const char* text : {"[record]\nfrequncy = 1\n", "[recrod]\nfrequency = 1\n", "nonsense\n"}) {
    write(text);
    const auto end = parse();
    ASSERT_TRUE(end) << text;
    EXPECT_TRUE(end->error.starts_with(file_ + ": no option has the name ")) << end->error;
  }
}

TEST_F(Config, ValuesAreChecked) {
  write("[record]\nfrequency = 0\n");
  const auto end = parse();
  ASSERT_TRUE(end);
  EXPECT_NE(end->error.find("--frequency"), std::string::npos) << end->error;
}

TEST(ArgParser, AFileThatIsNamedMustBeThere) {
  ArgParser parser("");
  parser.config("/no/such/file", true);
  EXPECT_TRUE(parser.parse(std::vector<std::string>{}));
}

}  // namespace
}  // namespace pkprof
