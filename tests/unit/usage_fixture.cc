// SPDX-License-Identifier: Apache-2.0
#include "usage_fixture.h"

#include <vector>

namespace pkprof::test {

UsageMachine::UsageMachine() {
  profile.meta = {.kernel = "6.18.2-test", .cpus = 2, .duration_ns = 5000 * ms};
  database = process("postgres", 812);
  waiter = process("worker", 77);
  hostile = process("\x1b[2J<img src=x>", 666);
  kernel = profile.label({.kind = LabelKind::kernel});
  nobody = profile.label({.kind = LabelKind::unclaimed, .reason = "dropped"});
  forgotten = profile.label({.kind = LabelKind::unclaimed, .reason = "forgotten"});
  peer = profile.label(
      {.kind = LabelKind::remote, .without_pid = true, .comm = "192.0.2.7", .reason = "192.0.2.7"});
  profile.add({.ran_on = database, .served = database, .source = profile.string("user")},
              {.count = 300, .ns = 300 * ms});
  use(database, Resource::disk, "disk:write", "vda", 300 * mib, 75, 900 * ms, Basis::submitter);
  use(database, Resource::disk, "disk:write", "vdb", 20 * mib, 5, 10 * ms, Basis::voted);
  use(database, Resource::disk, "disk:queued", "vda", 0, 0, 400 * ms);
  use(hostile, Resource::disk, "disk:read", "vda", 4096, 1, ms);
  use(hostile, Resource::disk, "disk:flush", "vda", 0, 1, ms);
  use(database, Resource::net, "net:received", "eth0", 7 * mib, 5000);
  use(database, Resource::net, "net:sent", "eth0", 90 * mib, 61000);
  use(nobody, Resource::net, "net:dropped", "eth0", 1500, 1);
  use(forgotten, Resource::net, "net:received", "<b>eth1", 900, 1);
  use(waiter, Resource::memory, "memory:anonymous", "do_anonymous_page", 240 * mib, 61440);
  use(hostile, Resource::memory, "memory:page cache", "filemap_fault", 812, 1);
  lock(waiter, database, "lock:futex", "pool_lock", 1500, 300);
  lock(waiter, database, "lock:futex", "\x1b[2J<b>lock", 400, 100);
  lock(waiter, nobody, "lock:spinlock", "0x7f3a2c001040", 3, 2);
  lock(hostile, hostile, "lock:rwsem:write", "mmap_lock", 20, 1);
}

LabelId UsageMachine::process(const char* comm, uint32_t pid) {
  return profile.label({.kind = LabelKind::process, .pid = pid, .start_ns = pid, .comm = comm});
}

FrameId UsageMachine::frame(FrameKind kind, const char* name) {
  return profile.frame({.kind = kind, .function = profile.string(name)});
}

void UsageMachine::use(LabelId who, Resource of, const char* source, const char* leaf,
                       uint64_t bytes, uint64_t count, uint64_t ns, Basis basis) {
  const std::vector<FrameId> stack = {
      frame(FrameKind::pseudo, leaf), frame(FrameKind::pseudo, source),
      frame(FrameKind::kernel, "ksys_write"), frame(FrameKind::pseudo, "syscall:write"),
      frame(FrameKind::user, "main")};
  profile.add({.ran_on = of == Resource::net ? peer : kernel,
               .served = who,
               .source = profile.string(source),
               .basis = basis,
               .stack = profile.stack(stack),
               .resource = of},
              {.count = count, .ns = bytes, .exact_ns = ns});
}

void UsageMachine::lock(LabelId who, LabelId holder, const char* source, const char* name,
                        uint64_t milliseconds, uint64_t count) {
  const std::vector<FrameId> stack = {
      frame(FrameKind::pseudo, name), frame(FrameKind::kernel, "schedule"),
      frame(FrameKind::pseudo, source), frame(FrameKind::user, "take_lock"),
      frame(FrameKind::user, "main")};
  profile.add({.ran_on = holder,
               .served = who,
               .source = profile.string(source),
               .stack = profile.stack(stack),
               .resource = Resource::lock},
              {.count = count, .ns = milliseconds * ms});
}

}  // namespace pkprof::test
