// SPDX-License-Identifier: Apache-2.0
// A network of one's own for a test: namespaces, veth pairs, bridges.
//
// Everything is owned by an object and goes with it. A test that is killed leaves nothing either:
// a guardian process removes the namespaces when its pipe from us closes, and remove_leftovers()
// sweeps up after a guardian that was killed too. Names are "pkt-<pid>-<serial>-<label>", so tests
// running side by side never meet.
//
// Needs root and the `ip` and `ethtool` programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "child.h"

namespace pkprof::testnet {

// Removes namespaces named pkt-<pid>-* whose process no longer exists. Returns how many.
[[nodiscard]] Result<int> remove_leftovers();

class Namespace {
 public:
  // A new namespace with its loopback up and IPv6 duplicate address detection off.
  [[nodiscard]] static Result<Namespace> create(std::string_view label);
  Namespace(Namespace&& other) noexcept;
  Namespace& operator=(Namespace&& other) noexcept;
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;
  ~Namespace();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string path() const { return "/run/netns/" + name_; }

  // Runs a program inside, with the namespace's own /sys, and returns its standard output.
  [[nodiscard]] Result<std::string> exec(Argv argv) const;
  // `ip` inside the namespace: ns.ip({"route", "add", …}).
  [[nodiscard]] Result<> ip(Argv arguments) const;
  // Writes a file of the namespace's own /sys or /proc/sys.
  [[nodiscard]] Result<> write(std::string_view path, std::string_view value) const;

  [[nodiscard]] Result<> add_address(std::string_view device, std::string_view cidr) const;
  [[nodiscard]] Result<> link_up(std::string_view device) const;
  // A bridge that is up, with the devices as its ports.
  [[nodiscard]] Result<> add_bridge(std::string_view bridge,
                                    const std::vector<std::string>& ports) const;
  [[nodiscard]] Result<> enable_forwarding() const;  // IPv4 and IPv6

  // Receive packet steering: packets that arrive on `device` are processed on the CPUs of the mask
  // (bit n is CPU n; 0 is off).
  [[nodiscard]] Result<> set_rps(std::string_view device, unsigned long cpu_mask) const;
  // Generic receive offload, which is also what gives a veth device a NAPI instance of its own.
  [[nodiscard]] Result<> set_gro(std::string_view device, bool on) const;
  // Threaded NAPI: polling moves from softirq to a kernel thread napi/<device>-<id>. For veth this
  // turns GRO on too, since without it there is no NAPI to be threaded.
  [[nodiscard]] Result<> set_threaded(std::string_view device, bool on) const;

 private:
  explicit Namespace(std::string name) : name_(std::move(name)) {}
  void remove() noexcept;

  std::string name_;  // empty: moved from
};

// One end of a veth pair: it is put into `ns`, named `device`, given the addresses and set up.
struct VethEnd {
  const Namespace& ns;
  std::string device;
  std::vector<std::string> addresses;  // with prefix length
};

[[nodiscard]] Result<> add_veth(const VethEnd& one, const VethEnd& other);

// The topology most tests want: two namespaces joined by one veth pair, "veth0" at each end.
struct Pair {
  static constexpr const char* kDevice = "veth0";
  static constexpr const char* kClient4 = "10.77.0.1";
  static constexpr const char* kServer4 = "10.77.0.2";
  static constexpr const char* kClient6 = "fd77::1";
  static constexpr const char* kServer6 = "fd77::2";

  Namespace client;
  Namespace server;

  // rps_cpu >= 0 steers what the server receives to that CPU.
  [[nodiscard]] static Result<Pair> create(int rps_cpu = -1);
};

}  // namespace pkprof::testnet
