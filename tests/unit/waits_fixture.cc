// SPDX-License-Identifier: Apache-2.0
#include "waits_fixture.h"

#include <string>
#include <vector>

namespace pkprof::test {
namespace {

constexpr uint64_t one_milli = 1'000'000;

class WaitsMachine {
 public:
  Profile run() {
    profile_.meta = {
        .kernel = "6.18.2-test", .cpus = 2, .duration_ns = 5000 * one_milli, .frequency_hz = 1000};
    const LabelId kernel = profile_.label({.kind = LabelKind::kernel});
    const LabelId idle = profile_.label({.kind = LabelKind::idle});
    const LabelId nobody = profile_.label({.kind = LabelKind::unclaimed, .reason = "lost"});
    const LabelId worker = process(77, "worker");
    const LabelId database = process(812, "postgres");
    const LabelId hog = process(99, "stress-ng");
    const LabelId hostile = process(666, "\x1b[2J<img src=x onerror=alert(1)>");
    cpu(worker, 300);
    cpu(database, 200);
    cpu(hog, 4000);
    cpu(hostile, 1);
    wait(worker, "reply", 2000, 400, woken_by(database, "send_answer", {kernel, hostile}));
    wait(worker, "reply", 100, 20, woken_by(database, "send_error"));
    wait(worker, "runnable", 800, 90, {.label = hog}, false);
    wait(worker, "runnable", 20, 90, {.label = idle}, false);
    wait(worker, "lock", 500, 12, woken_by(worker, "unlock"));
    wait(worker, "idle", 1000, 3, woken_by(hostile, "ask"));
    wait(database, "disk", 1100, 200, woken_by(kernel, "bio_endio"));
    wait(database, "lock", 150, 10, woken_by(worker, "unlock"));
    wait(database, "idle", 2000, 400, woken_by(worker, "ask"));
    wait(hostile, "timer", 60, 1, {.label = kernel});
    wait(hostile, "<b>kind", 30, 1, {.label = nobody}, false);
    for (uint32_t i = 0; i < 30; ++i)
      wait(process(1000 + i, "client"), "reply", 10 + i, 1, woken_by(hostile, "send_answer"));
    return std::move(profile_);
  }

 private:
  LabelId process(uint32_t pid, const char* comm) {
    return profile_.label({.kind = LabelKind::process, .pid = pid, .start_ns = pid, .comm = comm});
  }
  FrameId frame(FrameKind kind, const std::string& name) {
    return profile_.frame({.kind = kind, .function = profile_.string(name)});
  }
  Wakeup woken_by(LabelId waker, const char* function, const std::vector<LabelId>& before = {}) {
    const StackId stack =
        profile_.stack({{frame(FrameKind::kernel, "try_to_wake_up"),
                         frame(FrameKind::user, function), frame(FrameKind::user, "main")}});
    return {.label = waker, .stack = stack, .before = before};
  }
  void cpu(LabelId who, uint64_t milliseconds) {
    profile_.add({.ran_on = who,
                  .served = who,
                  .source = profile_.string("user"),
                  .stack = profile_.stack({{frame(FrameKind::user, "compute")}})},
                 {.count = milliseconds, .ns = milliseconds * one_milli});
  }
  void wait(LabelId who, const std::string& kind, uint64_t milliseconds, uint64_t count,
            const Wakeup& wakeup, bool is_woken = true) {
    const StackId stack = profile_.stack(
        {{frame(FrameKind::kernel, "schedule"), frame(FrameKind::pseudo, "wait:" + kind),
          frame(FrameKind::user, "wait_for_" + kind), frame(FrameKind::user, "main")}});
    profile_.add({.ran_on = wakeup.label,
                  .served = who,
                  .source = profile_.string("wait:" + kind),
                  .stack = stack,
                  .resource = Resource::wait,
                  .wakeup = is_woken ? profile_.wakeup(wakeup) : 0},
                 {.count = count, .ns = milliseconds * one_milli});
  }

  Profile profile_;
};

}  // namespace

Profile waits_machine() {
  return WaitsMachine().run();
}

}  // namespace pkprof::test
