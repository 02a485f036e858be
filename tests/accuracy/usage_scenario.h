// SPDX-License-Identifier: Apache-2.0
// What was used of a resource while a script ran, by process.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "scenario.h"

namespace pkprof::accuracy {

using Json = nlohmann::json;

class UsageTest : public testing::Test {
 protected:
  void SetUp() override { live::skip_unless_able(); }

  // Records the machine while this runs. "begin" and "end" are for what is read around that.
  Json record(const std::string& resource, const std::string& script,
              const testnet::Argv& arguments = {}) {
    testnet::Argv argv = {
        "record", "-a",   "-q", "--resource", resource, "--budget",         "100",
        "-o",     file(), "--", "bash",       "-c",     "cd $0; " + script, dir_.path()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const live::Finished done = live::run_pkprof(argv);
    EXPECT_EQ(done.status, 0) << done.err;
    out_ = done.out;
    live::read_report(file());  // the ledger of CPU time sums beside it
    const live::Finished report = live::run_pkprof({"report", file(), "--view", "usage", "--json"});
    EXPECT_EQ(report.status, 0) << report.err;
    const Json all = Json::parse(report.out)["resources"];
    return all.contains(resource) ? all[resource] : Json{{"rows", Json::array()}};
  }
  [[nodiscard]] std::string file() const { return dir_.file("usage.pb.gz"); }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream in(dir_.file(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // What the script said.
  template <size_t n>
  [[nodiscard]] std::array<int, n> pids() const {
    std::array<int, n> all{};
    std::istringstream in(out_);
    for (int& pid : all) in >> pid;
    EXPECT_FALSE(in.fail()) << out_;
    return all;
  }
  // How much more the n-th number of a file's text is at the end than at the begin.
  [[nodiscard]] double grown(size_t n) const {
    double by = 0;
    for (const auto& [name, sign] : {std::pair{"begin", -1.0}, {"end", 1.0}}) {
      std::istringstream in(read(name));
      std::string word;
      for (size_t i = 0; i <= n; ++i) in >> word;
      by += sign * std::stod(word);
    }
    return by;
  }

  static double number_at(const Json& row, const std::vector<std::string>& path) {
    const Json* at = &row;
    for (const std::string& key : path) {
      if (!at->contains(key)) return 0;
      at = &(*at)[key];
    }
    return at->get<double>();
  }
  // Of the processes for which it is true.
  static double sum(const Json& of, const std::vector<std::string>& path,
                    const std::function<bool(const Json& who)>& is_it) {
    double all = 0;
    for (const Json& row : of["rows"])
      if (is_it(row["who"])) all += number_at(row, path);
    return all;
  }
  static double of_pid(const Json& of, int pid, const std::vector<std::string>& path) {
    return sum(of, path, [pid](const Json& who) { return who.is_object() && who["pid"] == pid; });
  }
  static void expect_near(double found, double truth, double percent, const char* what) {
    std::printf("  %s: %.0f, truth %.0f (%+.2f %%)\n", what, found, truth,
                100 * (found / truth - 1));
    EXPECT_GT(truth, 0);
    EXPECT_NEAR(found / truth, 1, percent / 100) << what;
  }

  live::TempDir dir_;
  live::Turn turn_;
  live::Stage stage_;
  std::string out_;
};

}  // namespace pkprof::accuracy
