// SPDX-License-Identifier: Apache-2.0
#include "report/page/page.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "model/gzip.h"
#include "report/clean.h"
#include "report/diff/diff_text.h"
#include "report/page/page_data.h"

// The page without a profile, as bundled; PKPROF_PAGE is its path.
asm(".pushsection .rodata\n"
    ".globl pkprof_page_begin\n"
    "pkprof_page_begin: .incbin \"" PKPROF_PAGE
    "\"\n"
    ".globl pkprof_page_end\n"
    "pkprof_page_end: .byte 0\n"
    ".popsection\n");
extern "C" const char pkprof_page_begin[];
extern "C" const char pkprof_page_end[];

namespace pkprof {
namespace {

// Where the profile goes, in the page.
constexpr std::string_view mark = "@PROFILE@";

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t left = std::min<size_t>(3, bytes.size() - at);
    uint32_t word = 0;
    for (size_t i = 0; i < 3; ++i)
      word = word << 8 | (i < left ? static_cast<uint8_t>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) text += i <= left ? digits[word >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

// Names in what others wrote are cleaned, as page_data's are.
void clean_strings(Json& json) {
  if (json.is_string()) json = clean(json.get<std::string>());
  if (json.is_structured())
    for (Json& part : json) clean_strings(part);
}

Result<std::string> page_with(const Json& data) {
  const std::string_view page(pkprof_page_begin, pkprof_page_end);
  const size_t at = page.find(mark);
  if (at == std::string_view::npos) return fail("this pkprof was built without its page");
  const auto packed = gzip(json_line(data));
  if (!packed) return std::unexpected(packed.error());
  std::string html(page.substr(0, at));
  html += base64(*packed);
  html += page.substr(at + mark.size());
  return html;
}

}  // namespace

Result<std::string> page_html(const Profile& profile, const std::string& name) {
  return page_with({{"profile", page_data(profile, name, PageRole::alone)}});
}

Result<std::string> diff_page_html(const Profile& a, const std::string& name_a, const Profile& b,
                                   const std::string& name_b, By by) {
  ReportOptions how;
  how.by = by;
  Json diff = Json::parse(diff_json(a, name_a, b, name_b, how));
  clean_strings(diff);
  return page_with({{"profile", page_data(b, name_b, PageRole::after)},
                    {"before", page_data(a, name_a, PageRole::before)},
                    {"diff", std::move(diff)}});
}

}  // namespace pkprof
