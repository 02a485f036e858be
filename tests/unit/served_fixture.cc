// SPDX-License-Identifier: Apache-2.0
#include "served_fixture.h"

#include <algorithm>
#include <string>
#include <vector>

namespace pkprof::test {
namespace {

class Maker {
 public:
  explicit Maker(ServedMachine& machine) : m_(machine), p_(machine.profile) {
    p_.meta = {.kernel = "6.18.2-test",
               .host = "example",
               .cpus = 2,
               .duration_ns = 1000 * one_ms,
               .frequency_hz = 1000,
               .samples_taken = 1797};
    app_ = p_.mapping({0x400000, 0x500000, 0, "/usr/bin/app", ""});
    database_ = p_.mapping({0x600000, 0x700000, 0, "/usr/lib/postgres", ""});
    kernel_ = p_.mapping({0xffffffff81000000, 0xffffffff82000000, 0, "[kernel.kallsyms]", ""});
    m_.browser = process("browser", 100, "/usr/bin/app", "/user");
    m_.nginx = process("nginx", 200, "/usr/bin/app", "/shop");
    m_.postgres = process("postgres", 300, "/usr/lib/postgres", "/shop");
    m_.curl = process("curl", 150, "/usr/bin/curl", "/user");
    m_.remote = p_.label({.kind = LabelKind::remote,
                          .without_pid = true,
                          .comm = "192.0.2.7",
                          .reason = "192.0.2.7"});
    m_.other = p_.label({.kind = LabelKind::other});
  }

  void run() {
    const ClientId direct = p_.client({.label = m_.browser});
    const std::vector<FrameId> call = {pseudo("syscall:read"), user(app_, "main")};
    const ClientId through =
        p_.client({.label = m_.browser, .via = {m_.nginx}, .call = p_.stack(call)});
    const ClientId elsewhere = p_.client({.label = m_.remote, .rule = ClientRule::replied});
    const ClientId asking = p_.client({.label = m_.curl});
    const ClientId proxys = p_.client({.label = m_.nginx});
    const ClientId unselected = p_.client({.label = m_.other});
    const std::vector<FrameId> main = {user(app_, "main")};
    const std::vector<FrameId> serve = {user(app_, "main"), user(app_, "serve")};
    const std::vector<FrameId> read = {user(app_, "main"), user(app_, "serve"),
                                       pseudo("syscall:read"), kernel("vfs_read")};
    const std::vector<FrameId> query = {user(database_, "PostgresMain"),
                                        user(database_, "exec_query")};
    const std::vector<FrameId> receive = {pseudo("softirq:NET_RX"), kernel("tcp_v4_rcv")};
    add(m_.browser, m_.browser, "user", main, 50, 0);
    add(m_.nginx, m_.nginx, "user", serve, 200, direct);
    add(m_.nginx, m_.nginx, "syscall:read", read, 100, direct);
    add(m_.nginx, m_.nginx, "user", serve, 40, elsewhere);
    add(m_.nginx, m_.nginx, "user", main, 10, 0);
    add(m_.nginx, m_.nginx, "user", serve, 8, unselected);
    add(m_.postgres, m_.postgres, "user", query, 300, through);
    add(m_.browser, m_.postgres, "softirq:NET_RX", receive, 30, through);
    add(m_.postgres, m_.postgres, "user", query, 20, asking);
    add(m_.postgres, m_.postgres, "user", query, 7, proxys);
    add(m_.postgres, m_.postgres, "user", query, 5, 0);
    add(m_.other, m_.other, "user", {}, 15, direct);
    const LabelId kernel_label = p_.label({.kind = LabelKind::kernel});
    add(kernel_label, kernel_label, "softirq:RCU", {kernel("rcu_core")}, 12, 0);
    const LabelId idle = p_.label({.kind = LabelKind::idle});
    add(idle, idle, "idle", {}, 1000, 0);
  }

 private:
  LabelId process(const char* comm, uint32_t pid, const char* exe, const char* cgroup) {
    return p_.label({.kind = LabelKind::process,
                     .pid = pid,
                     .start_ns = pid,
                     .comm = comm,
                     .exe = exe,
                     .cgroup = cgroup});
  }
  FrameId user(MappingId binary, const char* name) {
    return p_.frame({FrameKind::user, binary, address(name), p_.string(name), 0, 0});
  }
  FrameId kernel(const char* name) {
    return p_.frame({FrameKind::kernel, kernel_, address(name), p_.string(name), 0, 0});
  }
  FrameId pseudo(const char* name) {
    return p_.frame({FrameKind::pseudo, no_mapping, 0, p_.string(name), 0, 0});
  }
  static uint64_t address(const std::string& name) { return 0x1000 + name.size() * 16 + name[0]; }

  void add(LabelId ran_on, LabelId served, const char* source, std::vector<FrameId> root_first,
           uint64_t milliseconds, ClientId client) {
    std::ranges::reverse(root_first);
    p_.add({.ran_on = ran_on,
            .served = served,
            .source = p_.string(source),
            .stack = p_.stack(root_first),
            .client = client},
           {.count = milliseconds, .ns = milliseconds * one_ms});
  }

  ServedMachine& m_;
  Profile& p_;
  MappingId app_, database_, kernel_;
};

}  // namespace

ServedMachine::ServedMachine() {
  Maker(*this).run();
}

}  // namespace pkprof::test
