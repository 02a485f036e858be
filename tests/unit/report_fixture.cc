// SPDX-License-Identifier: Apache-2.0
#include "report_fixture.h"

#include <algorithm>

namespace pkprof::test {

namespace {

constexpr uint64_t ms = 1'000'000;

class Machine {
 public:
  Machine() {
    profile_.meta = {.kernel = "6.18.2-test",
                     .host = "example",
                     .command = "",
                     .cpus = 2,
                     .start_unix_ns = 1'700'000'000'000'000'000,
                     .duration_ns = 10'000 * ms,
                     .paused_ns = 3'100 * ms,
                     .frequency_hz = 1000,
                     .samples_taken = 18'500,
                     .samples_lost = 7,
                     .cost_kernel_ns = 18 * ms,
                     .cost_user_ns = 5 * ms,
                     .unwatched_ns = 6'900 * ms,
                     .degraded = {"no fentry: block requests are charged to UNCLAIMED"},
                     .counters = {{"stack_collisions", 3}, {"map_full", 0}}};
    binary_ = profile_.mapping({0x400000, 0x500000, 0x1000, "/usr/sbin/nginx",
                                "0123456789abcdef0123456789abcdef01234567"});
    libc_ = profile_.mapping({0x7f0000000000, 0x7f0000200000, 0, "/lib/libc.so.6", "cafe"});
    kernel_ =
        profile_.mapping({0xffffffff81000000, 0xffffffff82000000, 0, "[kernel.kallsyms]", ""});
    module_ = profile_.mapping({0xffffffffc0000000, 0xffffffffc0010000, 0, "[nf_tables]", ""});
  }

  FrameId user(const char* name, const char* file = "", uint32_t line = 0) {
    next_user_ += 0x10;
    return profile_.frame(
        {FrameKind::user, binary_, next_user_, profile_.string(name), profile_.string(file), line});
  }
  FrameId libc(const char* name) {
    next_libc_ += 0x10;
    return profile_.frame({FrameKind::user, libc_, next_libc_, profile_.string(name), 0, 0});
  }
  FrameId kernel(const char* name) {
    next_kernel_ += 0x10;
    return profile_.frame({FrameKind::kernel, kernel_, next_kernel_, profile_.string(name), 0, 0});
  }
  FrameId module(const char* name) {
    return profile_.frame(
        {FrameKind::kernel, module_, 0xffffffffc0000100, profile_.string(name), 0, 0});
  }
  FrameId pseudo(const char* name) {
    return profile_.frame({FrameKind::pseudo, no_mapping, 0, profile_.string(name), 0, 0});
  }
  // Root first, as one reads it.
  StackId stack(std::vector<FrameId> root_first) {
    std::ranges::reverse(root_first);
    return profile_.stack(root_first);
  }
  void add(LabelId ran_on, LabelId served, const char* source, Basis basis, StackId stack,
           uint64_t milliseconds, uint32_t thread = 0, uint32_t served_thread = 0) {
    profile_.add({ran_on, served, profile_.string(source), basis, stack, thread, served_thread},
                 {.count = milliseconds, .ns = milliseconds * ms});
  }

  Profile profile_;

 private:
  MappingId binary_, libc_, kernel_, module_;
  uint64_t next_user_ = 0x400000;
  uint64_t next_libc_ = 0x7f0000001000;
  uint64_t next_kernel_ = 0xffffffff81000000;
};

struct Labels {
  LabelId nginx, redis, redis_again, hostile, ksoftirqd, kworker, kernel, idle, other, dropped,
      expired, steal;
};

Labels make_labels(Profile& profile) {
  const auto process = [&](uint32_t pid, uint64_t start, const char* comm, const char* exe,
                           const char* cgroup) {
    return profile.label({.kind = LabelKind::process,
                          .pid = pid,
                          .start_ns = start,
                          .parent_pid = 1,
                          .comm = comm,
                          .exe = exe,
                          .cgroup = cgroup});
  };
  const auto kthread = [&](uint32_t pid, const char* comm) {
    return profile.label(
        {.kind = LabelKind::process, .pid = pid, .start_ns = 1, .kthread = true, .comm = comm});
  };
  return {
      .nginx = process(812, 100, "nginx", "/usr/sbin/nginx", "/system.slice/nginx.service"),
      .redis = process(900, 200, "redis-server", "/usr/bin/redis-server", "/system.slice/redis"),
      .redis_again = process(900, 300, "redis-server", "/usr/bin/redis-server", "/user.slice"),
      .hostile = process(666, 400, "\x1b[2J\xff\u202eevil<b>", "/tmp/\n\xc3(\x07\\x41/\"quote\"",
                         "/a,b;c\x80"),
      .ksoftirqd = kthread(22, "ksoftirqd/1"),
      .kworker = kthread(33, "kworker/u4:1-flush-254:0"),
      .kernel = profile.label({.kind = LabelKind::kernel}),
      .idle = profile.label({.kind = LabelKind::idle}),
      .other = profile.label({.kind = LabelKind::other}),
      .dropped = profile.label({.kind = LabelKind::unclaimed, .reason = "dropped"}),
      .expired = profile.label({.kind = LabelKind::unclaimed, .reason = "expired"}),
      .steal = profile.label({.kind = LabelKind::steal}),
  };
}

void add_own_work(Machine& m, const Labels& who) {
  const FrameId main = m.user("main", "nginx.c", 381);
  const FrameId loop = m.user("ngx_worker_process_cycle", "ngx_process_cycle.c", 721);
  const FrameId parse = m.user("ngx_http_parse_request_line", "ngx_http_parse.c", 107);
  const FrameId recv = m.libc("__libc_recv");
  const FrameId call = m.pseudo("syscall:recvfrom");
  const FrameId entry = m.kernel("do_syscall_64");
  const FrameId copy = m.kernel("tcp_recvmsg");
  m.add(who.nginx, who.nginx, "user", Basis::own, m.stack({main, loop, parse}), 1200, 812);
  m.add(who.nginx, who.nginx, "user", Basis::own, m.stack({main, loop}), 100, 813);
  m.add(who.nginx, who.nginx, "syscall:recvfrom", Basis::own,
        m.stack({main, loop, recv, call, entry, copy}), 900, 812);
  m.add(who.nginx, who.nginx, "fault", Basis::own, m.stack({main, m.pseudo("fault")}), 50, 812);
  const FrameId unknown = m.user("");
  m.add(who.redis, who.redis, "user", Basis::own, m.stack({unknown}), 400);
  m.add(who.redis_again, who.redis_again, "syscall:write", Basis::own,
        m.stack({unknown, m.pseudo("syscall:write"), entry}), 300);
  m.add(who.hostile, who.hostile, "user", Basis::own,
        m.stack({m.user("std::map<\x1b]0;owned\x07, int>::\xfe")}), 250);
}

void add_asynchronous_work(Machine& m, const Labels& who) {
  const FrameId soft = m.pseudo("softirq:NET_RX");
  const FrameId poll = m.kernel("net_rx_action");
  const FrameId receive = m.kernel("tcp_v4_rcv");
  const FrameId filter = m.module("nft_do_chain");
  const StackId rx = m.stack({soft, poll, receive});
  const StackId rx_filter = m.stack({soft, poll, filter});
  m.add(who.ksoftirqd, who.nginx, "softirq:NET_RX", Basis::consumed, rx, 2000);
  m.add(who.ksoftirqd, who.nginx, "softirq:NET_RX", Basis::consumed, rx_filter, 700);
  m.add(who.redis, who.nginx, "softirq:NET_RX", Basis::consumed, rx, 150);
  m.add(who.hostile, who.redis, "softirq:NET_RX", Basis::owner, rx, 40);
  m.add(who.idle, who.nginx, "softirq:NET_RX", Basis::consumed, rx, 300);
  m.add(who.nginx, who.nginx, "irq:virtio0-input.0", Basis::provisional, m.stack({poll}), 30);
  const StackId flush = m.stack({m.pseudo("work:wb_workfn"), m.kernel("wb_writeback")});
  m.add(who.kworker, who.redis, "work:wb_workfn", Basis::dirtier, flush, 350);
  m.add(who.kworker, who.kworker, "kthread:kworker", Basis::own, m.stack({}), 5);
  m.add(who.other, who.redis, "softirq:BLOCK", Basis::submitter, m.stack({poll}), 25);
  m.add(who.nginx, who.kernel, "softirq:RCU", Basis::own, m.stack({m.kernel("rcu_core")}), 60);
  m.add(who.ksoftirqd, who.dropped, "softirq:NET_RX", Basis::consumed, rx, 90);
  m.add(who.idle, who.expired, "softirq:NET_RX", Basis::consumed, rx, 10);
  m.add(who.idle, who.idle, "idle", Basis::own, m.stack({}), 10'540);
  m.add(who.other, who.other, "user", Basis::own, m.stack({}), 1'000);
  m.add(who.steal, who.steal, "steal", Basis::own, m.stack({}), 400);
}

// Who there is in the machine with groups.
struct Members {
  LabelId web, web_worker, db, pod, unit, user_unit, bare, lost, ksoftirqd[2], kernel, idle, icmp;
};

Members make_members(Profile& profile) {
  const std::string docker = "/system.slice/docker-";
  const std::string web_id(64, 'a');
  const std::string db_id = "0123456789abcdef" + std::string(48, 'b');
  const std::string pod =
      "/kubepods.slice/kubepods-burstable.slice/"
      "kubepods-burstable-pod0a1b2c3d_0000_4444_8888_0123456789ab.slice/";
  const std::string pod_id(64, 'c');
  const auto process = [&](uint32_t pid, const char* comm, const std::string& cgroup,
                           Container container = {}) {
    return profile.label({.kind = LabelKind::process,
                          .pid = pid,
                          .start_ns = pid,
                          .parent_pid = 1,
                          .comm = comm,
                          .exe = std::string("/usr/bin/") + comm,
                          .cgroup = cgroup,
                          .container = std::move(container)});
  };
  const auto kthread = [&](uint32_t pid, const char* comm) {
    return profile.label(
        {.kind = LabelKind::process, .pid = pid, .start_ns = 1, .kthread = true, .comm = comm});
  };
  const Container web = {
      .id = web_id, .runtime = "docker", .name = "web\x1b[31m", .image = "nginx:1.27"};
  return {
      .web = process(100, "nginx", docker + web_id + ".scope", web),
      .web_worker = process(101, "nginx", docker + web_id + ".scope", web),
      // The runtime's files said nothing: what the path says.
      .db = process(200, "postgres", docker + db_id + ".scope"),
      .pod = process(300, "app", pod + "cri-containerd-" + pod_id + ".scope",
                     {.id = pod_id,
                      .runtime = "containerd",
                      .name = "app",
                      .pod = "shop-7d9f",
                      .pod_namespace = "prod",
                      .pod_uid = "0a1b2c3d-0000-4444-8888-0123456789ab"}),
      .unit = process(400, "cron", "/system.slice/system-cron\\x2dx.slice/cron\\x2dx.service"),
      .user_unit = process(500, "editor",
                           "/user.slice/user-1000.slice/user@1000.service/app.slice/ed.service"),
      .bare = process(600, "init", "/"),
      .lost = process(700, "gone", ""),
      .ksoftirqd = {kthread(15, "ksoftirqd/0"), kthread(22, "ksoftirqd/1")},
      .kernel = profile.label({.kind = LabelKind::kernel}),
      .idle = profile.label({.kind = LabelKind::idle}),
      .icmp = profile.label({.kind = LabelKind::unclaimed, .reason = "icmp"}),
  };
}

}  // namespace

Profile grouped_machine() {
  Machine m;
  const Members who = make_members(m.profile_);
  m.profile_.meta.degraded.clear();
  m.profile_.meta.counters.clear();
  m.profile_.meta.samples_lost = 0;
  const StackId user = m.stack({m.user("main")});
  const StackId call = m.stack({m.user("main"), m.pseudo("syscall:sendto")});
  const StackId rx = m.stack({m.pseudo("softirq:NET_RX"), m.kernel("net_rx_action")});
  const auto own = [&](LabelId by, uint32_t thread, uint64_t user_ms, uint64_t call_ms) {
    m.add(by, by, "user", Basis::own, user, user_ms, thread, thread);
    m.add(by, by, "syscall:sendto", Basis::own, call, call_ms, thread, thread);
  };
  const auto work = [&](LabelId ran_on, uint32_t thread, LabelId served, uint32_t served_thread,
                        uint64_t milliseconds) {
    m.add(ran_on, served, "softirq:NET_RX", served_thread ? Basis::consumed : Basis::owner, rx,
          milliseconds, thread, served_thread);
  };
  own(who.web, 100, 900, 300);
  own(who.web, 103, 300, 100);  // a second thread
  own(who.web_worker, 101, 400, 200);
  own(who.db, 200, 1000, 500);
  own(who.pod, 300, 250, 250);
  own(who.unit, 400, 120, 0);
  own(who.user_unit, 500, 80, 20);
  own(who.bare, 600, 60, 0);
  own(who.lost, 700, 40, 0);
  work(who.web, 100, who.web_worker, 101, 200);  // for its fellow
  work(who.web, 100, who.db, 200, 300);          // for another container
  work(who.web, 103, who.web, 100, 50);          // for another thread
  work(who.web, 103, who.web, 0, 25);            // for one of its threads
  work(who.web_worker, 101, who.web_worker, 101, 75);
  work(who.db, 200, who.icmp, 0, 10);
  work(who.ksoftirqd[0], 15, who.web, 0, 400);
  work(who.ksoftirqd[1], 22, who.db, 200, 600);
  work(who.ksoftirqd[1], 22, who.lost, 700, 30);
  m.add(who.idle, who.idle, "idle", Basis::own, m.stack({}), 12'290);
  m.profile_.name_thread(who.web, 100, "nginx");
  m.profile_.name_thread(who.web, 103, "log\x1b]0;x\x07");
  m.profile_.name_thread(who.db, 200, "checkpointer");
  return std::move(m.profile_);
}

Profile called_machine() {
  Machine m;
  m.profile_.meta = {.kernel = "6.18.2-test", .cpus = 1, .duration_ns = 1000 * ms};
  const LabelId parser = m.profile_.label(
      {.kind = LabelKind::process, .pid = 42, .start_ns = 1, .parent_pid = 1, .comm = "parser"});
  const LabelId idle = m.profile_.label({.kind = LabelKind::idle});
  const FrameId start = m.user("");
  const FrameId libc = m.libc("__libc_start_main");
  const FrameId nameless = m.user("");
  const FrameId main = m.user("main");
  const FrameId expression = m.user("expression");
  const FrameId term = m.user("term");
  const FrameId next = m.user("next_token");
  const FrameId walk = m.user("walk_directory");
  const auto user = [&](std::vector<FrameId> path, uint64_t milliseconds) {
    path.insert(path.begin(), {start, libc, nameless, main});
    m.add(parser, parser, "user", Basis::own, m.stack(std::move(path)), milliseconds);
  };
  user({}, 50);
  user({expression}, 60);
  user({expression, term}, 30);
  user({expression, term, expression, term, next}, 200);
  user({term, next}, 40);
  user({walk}, 20);
  user({walk, walk, walk}, 60);
  user({walk, walk, m.pseudo("fault"), m.kernel("exc_page_fault")}, 100);
  const auto interrupt = [&](const char* source, const char* handler, uint64_t calls, uint64_t us) {
    m.profile_.add({parser, parser, m.profile_.string(source), Basis::submitter,
                    m.stack({m.pseudo(source), m.kernel(handler)})},
                   {.ns = us * 1000, .exact_ns = us * 1000, .calls = calls});
  };
  interrupt("irq:virtio0-req.0", "vring_interrupt", 500, 9'000);
  interrupt("irq:virtio1-input.0", "vring_interrupt", 40, 1'000);
  interrupt("irq:timer", "hrtimer_interrupt", 1'000, 15'000);
  m.add(idle, idle, "idle", Basis::own, m.stack({}), 400);
  return std::move(m.profile_);
}

Profile counted_machine() {
  Machine m;
  Profile& p = m.profile_;
  const Labels who = make_labels(p);
  p.meta = {.kernel = "6.18.2-test",
            .command = "load\x1b[2J --all",
            .cpus = 2,
            .duration_ns = 10'000 * ms,
            .cost_kernel_ns = 180 * ms,
            .cost_user_ns = 20 * ms,
            .counted_functions = 5,
            .counted_by = "fentry",
            .degraded = {"calls of these functions cannot be counted here: noinstr_one"},
            .counters = {{"calls not counted, since they interrupted counting", 3},
                         {"calls without room", 0}}};
  const FrameId main = m.user("main");
  const FrameId call = m.pseudo("syscall:read");
  const FrameId entry = m.kernel("do_syscall_64");
  const FrameId ksys = m.kernel("ksys_read");
  const FrameId vfs = m.kernel("vfs_read");
  const FrameId copy = m.kernel("copy_page_to_iter");
  m.add(who.nginx, who.nginx, "syscall:read", Basis::own, m.stack({main, call, entry, ksys, vfs}),
        400);
  m.add(who.nginx, who.nginx, "syscall:read", Basis::own,
        m.stack({main, call, entry, ksys, vfs, copy}), 600);
  m.add(who.redis, who.redis, "syscall:read", Basis::own, m.stack({main, call, entry, ksys, vfs}),
        100);
  m.add(who.redis, who.redis, "user", Basis::own, m.stack({main}), 900);
  const FrameId soft = m.pseudo("softirq:NET_RX");
  const FrameId queue = m.kernel("udp_queue_rcv_skb");
  m.add(who.nginx, who.redis, "softirq:NET_RX", Basis::consumed,
        m.stack({soft, m.kernel("net_rx_action"), queue}), 50);
  const auto count = [&](LabelId served, std::vector<FrameId> path, uint64_t calls) {
    p.add({who.kernel, served, p.string("calls"), Basis::owner, m.stack(std::move(path))},
          {.calls = calls});
  };
  count(who.nginx, {ksys, vfs}, 2'000);
  count(who.nginx, {m.kernel("io_read"), vfs}, 500);  // never sampled
  count(who.nginx, {entry, ksys}, 2'000);
  count(who.redis, {ksys, vfs}, 100);
  count(who.redis, {vfs}, 7);  // whose caller is not known
  count(who.redis, {m.kernel("net_rx_action"), queue}, 1'000);
  count(who.dropped, {m.kernel("net_rx_action"), queue}, 5);
  count(who.kernel, {m.kernel("kthread"), m.kernel("unsampled")}, 11);
  count(who.hostile, {entry, ksys}, 1);
  count(who.other, {}, 77);
  return std::move(m.profile_);
}

Profile small_machine() {
  Machine machine;
  const Labels who = make_labels(machine.profile_);
  add_own_work(machine, who);
  add_asynchronous_work(machine, who);
  return std::move(machine.profile_);
}

}  // namespace pkprof::test
