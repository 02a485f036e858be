// SPDX-License-Identifier: Apache-2.0
#include "user_stacks.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/pprof/pprof.h"

namespace pkprof::live {

Profile UserStacksTest::record(const Argv& command, const char* seconds) {
  Argv argv = {"record", "-a", "--budget", "100", "-o", file_};
  if (seconds) argv.insert(argv.end(), {"-d", seconds});
  if (!command.empty()) argv.push_back("--");
  argv.insert(argv.end(), command.begin(), command.end());
  const Finished done = run_pkprof(argv);
  EXPECT_EQ(done.status, 0) << done.err;
  return must(read_profile(file_));
}

void UserStacksTest::each_stack(const Profile& profile,
                                const std::function<bool(const Label&)>& counts,
                                const std::function<void(const Names&, uint64_t ns)>& use) {
  for (const Profile::Sample& sample : profile.samples()) {
    if (!counts(profile.labels()[sample.key.served])) continue;
    Names names;
    for (const FrameId id : profile.frames_of(sample.key.stack))
      if (profile.frames()[id].kind == FrameKind::user)
        names.emplace_back(profile.text(profile.frames()[id].function));
    std::ranges::reverse(names);
    if (!names.empty()) use(names, sample.value.ns);
  }
}

void UserStacksTest::expect_whole(const Profile& profile, const std::string& comm,
                                  double at_least) {
  uint64_t all = 0;
  std::map<std::string, uint64_t> cut;
  uint64_t cut_ns = 0;
  each_stack(
      profile, [&](const Label& label) { return label.comm == comm; },
      [&](const Names& names, uint64_t ns) {
        all += ns;
        if (is_whole(names)) return;
        cut_ns += ns;
        std::string text;
        for (const std::string& name : names) text += name + ";";
        cut[text] += ns;
      });
  std::string text;
  for (const auto& [stack, ns] : cut) text += std::to_string(ns) + " ns: " + stack + "\n";
  EXPECT_GT(all, in_guest() ? 0U : 100'000'000U) << comm;
  EXPECT_LE(static_cast<double>(cut_ns), (1 - at_least) * static_cast<double>(all)) << comm << "\n"
                                                                                    << text;
}

bool is_whole(const Names& names) {
  static const std::set<std::string> begins = {
      "_start", "clone3", "__clone3", "clone", "__clone", "_dl_start_user",
      // Go's: a goroutine, a thread's own stack, the program.
      "runtime.goexit.abi0", "runtime.goexit", "runtime.mstart", "runtime.mstart.abi0",
      "runtime.rt0_go", "runtime.rt0_go.abi0", "_rt0_amd64_linux"};
  return begins.contains(names[0]) ||
         (names.size() > 1 && names[1].starts_with("__libc_start_main")) ||
         names[0].starts_with("libc.so.6+0x");  // a stripped one, where threads begin
}

}  // namespace pkprof::live
