// SPDX-License-Identifier: Apache-2.0
#include "process/mappings.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace pkprof {
namespace {

using namespace std::string_literals;

std::string record_of(const std::string& names, uint32_t flags = 0, int longer = 0) {
  pk_file_name head{};
  head.kind = PK_FILE_NAME;
  head.flags = flags;
  head.file = PK_FILE_FIRST;
  head.length = static_cast<uint32_t>(names.size()) + static_cast<uint32_t>(longer);
  return std::string(reinterpret_cast<const char*>(&head), offsetof(pk_file_name, names)) + names;
}

TEST(Mappings, NamesGoFromTheFileToTheRoot) {
  EXPECT_EQ(path_in(record_of("x\0bin\0usr\0"s)), "/usr/bin/x");
  EXPECT_EQ(path_in(record_of("x\0"s)), "/x");
}

TEST(Mappings, AFileMayBeGone) {
  EXPECT_EQ(path_in(record_of("x\0tmp\0"s, PK_PATH_DELETED)), "/tmp/x (deleted)");
  EXPECT_EQ(path_in(record_of("memfd:x\0"s, PK_PATH_DELETED)), "/memfd:x (deleted)");
}

// It is not to be opened by what is known of its name.
TEST(Mappings, APathMayBeTooLong) {
  EXPECT_EQ(path_in(record_of("x\0deep\0"s, PK_PATH_CUT)), ".../deep/x");
}

TEST(Mappings, WhatIsMalformedHasNoName) {
  EXPECT_EQ(path_in(""), "");
  EXPECT_EQ(path_in("short"), "");
  EXPECT_EQ(path_in(record_of("")), "");
  EXPECT_EQ(path_in(record_of("x\0usr"s)), "") << "no end";
  EXPECT_EQ(path_in(record_of("x\0"s, 0, 1)), "") << "shorter than it says";
}

}  // namespace
}  // namespace pkprof
