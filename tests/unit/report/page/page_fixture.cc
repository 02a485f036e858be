// SPDX-License-Identifier: Apache-2.0
#include "page_fixture.h"

#include <gtest/gtest.h>

#include "model/gzip.h"
#include "report/page/page.h"

namespace pkprof::test {

using nlohmann::json;

json unpacked(const std::string& html) {
  const std::string begin = R"(id="profile">)";
  const size_t from = html.find(begin) + begin.size();
  const std::string text = html.substr(from, html.find('<', from) - from);
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t word = 0;
  int bits = 0;
  for (const char c : text) {
    const size_t value = digits.find(c);
    if (value == std::string::npos) break;  // '='
    word = word << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(word >> bits & 255);
  }
  return json::parse(*gunzip(bytes, 1 << 26));
}

json page_data_of(const Profile& profile) {
  const auto html = page_html(profile, "some.pb.gz");
  EXPECT_TRUE(html) << html.error().message;
  return html ? unpacked(*html)["profile"] : json();
}

}  // namespace pkprof::test
