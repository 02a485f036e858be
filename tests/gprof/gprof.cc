// SPDX-License-Identifier: Apache-2.0
#include "gprof.h"

#include <stdlib.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace pkprof::test {

namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// "  19.0   0.12 ..." from the front of a line.
std::optional<double> take_number(std::string& line) {
  const size_t start = line.find_first_not_of(' ');
  if (start == std::string::npos) return {};
  const size_t end = std::min(line.find(' ', start), line.size());
  const std::string word = line.substr(start, end - start);
  if (word.find_first_not_of("0123456789.+") != std::string::npos) return {};
  line.erase(0, end);
  return std::strtod(word.c_str(), nullptr);
}

std::string trimmed(const std::string& text) {
  const size_t start = text.find_first_not_of(' ');
  return start == std::string::npos ? ""
                                    : text.substr(start, text.find_last_not_of(" \t") + 1 - start);
}

// Calls and times a call are three numbers or a gap as wide.
std::optional<GprofRow> flat_row(std::string line) {
  constexpr size_t gap = 20;
  GprofRow row;
  const auto percent = take_number(line);
  const auto cumulative = take_number(line);
  const auto self = take_number(line);
  if (!percent || !cumulative || !self) return {};
  row.percent = *percent;
  row.self_seconds = *self;
  if (line.find_first_not_of(' ') < gap) {
    row.calls = static_cast<uint64_t>(take_number(line).value_or(0));
    take_number(line);
    take_number(line);
  }
  row.name = trimmed(line);
  return row;
}

// "[2]     74.5    0.39    0.74       4+69      even <cycle 1> [2]"
std::optional<GprofRow> graph_row(std::string line) {
  if (!line.starts_with('[')) return {};
  line.erase(0, line.find(']') + 1);
  GprofRow row;
  const auto percent = take_number(line);
  const auto self = take_number(line);
  const auto children = take_number(line);
  if (!percent || !self || !children) return {};
  row.percent = *percent;
  row.self_seconds = *self;
  row.child_seconds = *children;
  // "4", or "4+69"
  std::string numbers = line.substr(0, line.find_first_not_of(" 0123456789+"));
  if (const auto calls = take_number(line)) row.calls = static_cast<uint64_t>(*calls);
  if (const size_t plus = numbers.find('+'); plus != std::string::npos)
    row.recursive_calls = std::strtoull(numbers.c_str() + plus + 1, nullptr, 10);
  row.name = trimmed(line.substr(0, line.rfind('[')));
  const size_t cycle = row.name.rfind(" <cycle ");
  row.in_cycle = cycle != std::string::npos;
  if (row.in_cycle) row.name.erase(cycle);
  return row;
}

}  // namespace

std::map<std::string, double> Gprof::percent_of() const {
  std::map<std::string, double> sums;
  for (const GprofRow& row : flat) sums[row.name] += row.percent;
  return sums;
}

Gprof run_gprof(const std::string& symbols, const std::vector<std::string>& files) {
  std::string directory = (fs::temp_directory_path() / "pkprof-judge-XXXXXX").string();
  Gprof result{.status = -1};
  if (mkdtemp(directory.data()) == nullptr) return result;
  std::string command = "gprof -b " + quoted(symbols);
  for (const std::string& file : files) command += " " + quoted(file);
  command += " >" + quoted(directory + "/out") + " 2>" + quoted(directory + "/err") + " </dev/null";
  const int status = std::system(command.c_str());
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  result.out = contents(directory + "/out");
  result.err = contents(directory + "/err");
  fs::remove_all(directory);

  std::istringstream in(result.out);
  std::string line;
  enum { before, flat, graph } part = before;
  while (std::getline(in, line)) {
    if (line.starts_with("Flat profile")) part = flat;
    if (line.starts_with("index % time")) part = graph;
    // "granularity: each sample hit covers 4 byte(s) for 0.00% of 4.45 seconds"
    if (const size_t of = line.find("% of "); line.starts_with("granularity") && of != line.npos)
      result.seconds = std::strtod(line.c_str() + of + 5, nullptr);
    if (line == "\f" || line.starts_with("Index by function name")) part = before;
    if (part == flat) {
      if (auto row = flat_row(line)) result.flat.push_back(*row);
    } else if (part == graph) {
      if (auto row = graph_row(line)) result.graph.push_back(*row);
    }
  }
  return result;
}

}  // namespace pkprof::test
