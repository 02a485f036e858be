// SPDX-License-Identifier: Apache-2.0
#include "export/debox_json.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace pkprof {

namespace {

using Json = nlohmann::ordered_json;

Json waiters(uint32_t count) {
  return count == DEBOX_UNKNOWN ? Json() : Json(count);
}

class Writer {
 public:
  explicit Writer(const std::map<uint32_t, std::string>& places) : places_(places) {}

  [[nodiscard]] Json sleep(const debox_sleep& s) const {
    Json to = {{"place", place(s.place)},    {"inside", place(s.inside)},
               {"count", s.count},           {"total_ns", s.total_ns},
               {"longest_ns", s.longest_ns}, {"runnable_ns", s.runnable_ns}};
    if (s.resource) to["resource"] = s.resource;
    to["waiters_entry"] = waiters(s.waiters_entry);
    to["waiters_exit"] = waiters(s.waiters_exit);
    Json& waker = to["waker"] = {{"context", context_name(s.waker.context)}};
    if (s.waker.context == DEBOX_BY_PROCESS) waker["pid"] = s.waker.pid;
    if (s.waker.context == DEBOX_BY_PROCESS || s.waker.context == DEBOX_BY_KTHREAD) {
      waker["tid"] = s.waker.tid;
      waker["comm"] = std::string(s.waker.comm, strnlen(s.waker.comm, sizeof s.waker.comm));
    }
    if (s.waker.for_pid) waker["for"] = s.waker.for_pid;
    return to;
  }

  [[nodiscard]] Json fault(const debox_fault& f) const {
    return {
        {"address", f.address}, {"minor", f.minor}, {"major", f.major}, {"place", place(f.place)}};
  }

  [[nodiscard]] Json entered(const debox_trace& t) const {
    return {{"function", place(t.function)},
            {"depth", t.depth},
            {"begin_ns", t.begin_ns},
            {"wall_ns", t.wall_ns}};
  }

 private:
  [[nodiscard]] Json place(uint32_t number) const {
    const auto it = places_.find(number);
    return it == places_.end() || it->second.empty() ? Json() : Json(it->second);
  }

  const std::map<uint32_t, std::string>& places_;
};

}  // namespace

std::string debox_json(const SlowCall& slow, const std::string& call,
                       const std::map<uint32_t, std::string>& places) {
  const Writer writer(places);
  const debox_record& r = slow.record;
  Json to = {{"call", call}, {"number", r.number}, {"pid", r.pid}, {"tid", r.tid}};
  if (r.flags & DEBOX_COMPAT) to["compat"] = true;
  if (r.flags & DEBOX_UNSEEN) to["unseen"] = true;
  to["start_ns"] = r.start_ns;
  to["wall_ns"] = r.wall_ns;
  to["result"] = r.result;
  if (r.result < 0 && r.result >= -4095)
    if (const char* name = strerrorname_np(static_cast<int>(-r.result))) to["error"] = name;
  if (!(r.flags & DEBOX_NO_ARGUMENTS)) to["arguments"] = r.argument;
  to["cpu"] = r.cpu;
  to["asleep_ns"] = r.asleep_ns;
  to["runnable_ns"] = r.runnable_ns;
  to["voluntary"] = r.voluntary;
  to["forced"] = r.forced;
  to["migrations"] = r.migrations;
  to["minor_faults"] = r.minor_faults;
  to["major_faults"] = r.major_faults;
  to["signals"] = r.signals;
  to["restarts"] = r.restarts;
  to["async_before_ns"] = r.async_before_ns;
  to["async_ns"] = r.async_ns;
  Json& sleeps = to["sleeps"] = Json::array();
  for (uint32_t i = 0; i < std::min<uint32_t>(r.sleeps, DEBOX_SLEEPS); ++i)
    sleeps.push_back(writer.sleep(r.sleep[i]));
  if (r.sleeps_left_out) to["sleeps_left_out"] = r.sleeps_left_out;
  Json& faults = to["faults"] = Json::array();
  for (uint32_t i = 0; i < std::min<uint32_t>(r.faults, DEBOX_FAULTS); ++i)
    faults.push_back(writer.fault(r.fault[i]));
  if (r.faults_left_out) to["faults_left_out"] = r.faults_left_out;
  if (!slow.trace.empty()) {
    if (r.flags & DEBOX_SAMPLED) to["trace_sampled"] = true;
    Json& trace = to["trace"] = Json::array();
    for (const debox_trace& t : slow.trace) trace.push_back(writer.entered(t));
  }
  if (r.traces_left_out) to["traces_left_out"] = r.traces_left_out;
  if (!slow.frames.empty()) to["stack"] = slow.frames;
  return to.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace pkprof
