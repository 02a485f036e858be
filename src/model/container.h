// SPDX-License-Identifier: Apache-2.0
// Which container and which systemd unit a process is in, as the path of its cgroup tells it.
// Container runtimes and systemd give cgroups names by rules of their own; these are those rules,
// read backwards. Nothing is asked of the machine, so a profile can be read anywhere; what only
// the runtime's files know (names, images) is looked up while recording (process/containers.h).
#pragma once

#include <string>
#include <string_view>

namespace pkprof {

struct Container {
  std::string id;       // hex digits; of an LXC container or a machine, its name; "": in none
  std::string runtime;  // docker, podman, containerd, cri-o, lxc, machine; "" when not known
  std::string name;     // as people know it
  std::string image;
  std::string pod;            // of Kubernetes
  std::string pod_namespace;  // of Kubernetes
  std::string pod_uid;        // of Kubernetes; also known of a process that is in a pod alone
  bool operator==(const Container&) const = default;
};

// Of containers in containers, the innermost. Empty when the path shows none.
[[nodiscard]] Container container_of_cgroup(std::string_view path);

// "namespace/pod/name", "name", "docker 1a2b3c4d5e6f": the best there is; "" for no container. Not
// cleaned for any output.
[[nodiscard]] std::string container_title(const Container& container);

// The unit that the cgroup belongs to: its deepest component that systemd names after one, with
// systemd's escapes undone. Of a unit of a user's own systemd "NAME (user UID)", of one inside a
// container "NAME (in TITLE)". "" when there is none. Not cleaned for any output.
[[nodiscard]] std::string unit_of_cgroup(std::string_view path, const Container& container = {});

// systemd's \xHH in names of units, and the "_" before names that the kernel has taken.
[[nodiscard]] std::string unescape_unit(std::string_view name);

}  // namespace pkprof
