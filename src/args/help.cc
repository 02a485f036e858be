// SPDX-License-Identifier: Apache-2.0
#include "args/help.h"

#include <algorithm>
#include <sstream>

#include "base/columns.h"

namespace pkprof {
namespace {

constexpr size_t usual_width = 80;

size_t width() {
  const size_t columns = columns_of_environment();
  return columns ? std::max<size_t>(columns, 60) : usual_width;
}

// Words, from column `at` on; further lines begin in column `indent`.
std::string wrapped(const std::string& text, size_t at, size_t indent) {
  std::istringstream words(text);
  std::string out;
  std::string word;
  for (bool first = true; words >> word; first = false) {
    if (!first && at + 1 + word.size() > width()) {
      out += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (!first) {
      out += " ";
      ++at;
    }
    out += word;
    at += word.size();
  }
  return out;
}

// What it takes; its limits are said when they are not kept. Choices are what a user, and what
// completes his words, wants to see.
std::string value_of(const CLI::Option& option) {
  if (option.get_type_size() == 0) return "";
  const std::string type = option.get_type_name();
  const size_t check = type.find(':');
  const bool choice = check != std::string::npos && type.find('{', check) == check + 1;
  std::string value = choice ? type : type.substr(0, check);
  if (!value.empty()) value = " " + value;
  if (!option.get_default_str().empty()) value += "=" + option.get_default_str();
  return value;
}

}  // namespace

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  const std::string name = "  " + make_option_name(option, is_positional) + value_of(*option);
  const size_t column = get_column_width();
  const std::string gap = name.size() < column ? std::string(column - name.size(), ' ')
                                               : "\n" + std::string(column, ' ');
  std::string about = option->get_description();
  if (option->get_required() && !is_positional) about += " (required)";
  return name + gap + wrapped(about, column, column) + "\n";
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrapped(app->get_description(), 0, 0) + "\n";
}

// Lines that are indented stay as they are: examples.
std::string HelpFormatter::make_footer(const CLI::App* app) const {
  std::istringstream lines(app->get_footer());
  std::string out;
  for (std::string line; std::getline(lines, line);)
    out += (line.starts_with(' ') ? line : wrapped(line, 0, 0)) + "\n";
  return out;
}

}  // namespace pkprof
