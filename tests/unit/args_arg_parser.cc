// SPDX-License-Identifier: Apache-2.0
#include "args/arg_parser.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace pkprof
