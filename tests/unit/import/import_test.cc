// SPDX-License-Identifier: Apache-2.0
// Files to import: wherever they come from, and what is made of them can be read.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <span>
#include <thread>

#include "import/import.h"
#include "model/pprof/pprof.h"

namespace pkprof {
namespace {

const std::string printed_sample =
    "a 1/1 [000] 1.000000000: 10 cpu-clock: \n\t401000 f (/bin/a)\n\n";

class ImportFile : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& path : {file_, fifo_}) unlink(path.c_str());
  }
  // Imports what `write` writes into a FIFO.
  Result<Profile> through_fifo(const std::string& text) {
    EXPECT_EQ(mkfifo(fifo_.c_str(), 0600), 0);
    std::jthread writer([&] { std::ofstream(fifo_, std::ios::binary) << text; });
    return import_file(fifo_);
  }
  Result<Profile> import(const std::string& text) {
    std::ofstream(file_, std::ios::binary) << text;
    return import_file(file_);
  }

  const std::string file_ = testing::TempDir() + "pkprof-import-" + std::to_string(getpid());
  const std::string fifo_ = file_ + ".fifo";
};

TEST_F(ImportFile, WhatPerfPrintsIntoAPipe) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += printed_sample;  // more than a pipe holds
  const auto profile = through_fifo(text);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->meta.samples_taken, 5000u);
  EXPECT_EQ(profile->meta.degraded.size(), import(text)->meta.degraded.size()) << "nothing is lost";
}

TEST_F(ImportFile, APprofFileInAPipe) {
  Profile ours;
  ours.label({.kind = LabelKind::process, .pid = 1, .comm = "a"});
  const auto profile = through_fifo(encode_pprof(ours).value());
  ASSERT_FALSE(profile);
  EXPECT_NE(profile.error().message.find("it is one of pkprof's already"), std::string::npos)
      << profile.error().message;
}

TEST_F(ImportFile, PerfsOwnFileInAPipe) {
  const auto profile = through_fifo("PERFILE2" + std::string(100, '\0'));
  ASSERT_FALSE(profile);
  EXPECT_NE(profile.error().message.find("is perf's own file"), std::string::npos);
}

// Samples of days, on the last of 65,536 CPUs: nanoseconds that are no number.
TEST_F(ImportFile, ALengthOutOfRange) {
  std::string text;
  for (int i = 0; i < 30'000; ++i)
    text += "a 1/1 [65535] " + std::to_string(10 * i) + ".000000000: 10 cpu-clock: \n\n";
  const auto profile = import(text);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->meta.duration_ns, 300'000u) << "of the samples alone";
  const std::string written = encode_pprof(*profile).value();
  EXPECT_TRUE(decode_pprof(std::as_bytes(std::span(written))));
}

TEST_F(ImportFile, WhatNoReportWouldReadIsNotImported) {
  std::string text;
  for (int i = 1; i < 600; ++i)
    text += std::string(60'000, 'x') + " " + std::to_string(i) + "/1 1.000000000: 10 cpu-clock: \n";
  const auto profile = import(text);
  ASSERT_FALSE(profile);
  EXPECT_NE(profile.error().message.find("not a readable profile"), std::string::npos);
}

}  // namespace
}  // namespace pkprof
