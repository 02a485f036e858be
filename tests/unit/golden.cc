// SPDX-License-Identifier: Apache-2.0
#include "golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace pkprof::test {

void expect_golden(const std::string& name, const std::string& got) {
  const std::string path = std::string(PKPROF_GOLDEN_DIR) + "/" + name;
  if (std::getenv("PKPROF_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << got;
    return;
  }
  std::ifstream in(path, std::ios::binary);
  ASSERT_TRUE(in) << path << " is missing; run with PKPROF_UPDATE_GOLDEN=1";
  std::stringstream want;
  want << in.rdbuf();
  EXPECT_EQ(got, want.str()) << name;
}

void expect_harmless(const std::string& text, size_t width) {
  size_t column = 0;
  for (const char c : text) {
    const bool begins_character = (c & 0xc0) != 0x80;
    column = c == '\n' ? 0 : column + (begins_character ? 1 : 0);
    EXPECT_LE(column, width) << text;
  }
  for (const char c : text)
    EXPECT_TRUE(c == '\n' || (c >= 0x20 && c != 0x7f) || c < 0) << static_cast<int>(c);
  EXPECT_EQ(text.find("\u202e"), std::string::npos);
}

}  // namespace pkprof::test
