// SPDX-License-Identifier: Apache-2.0
// Names for containers, from the files that their runtimes leave where root can read them: Docker,
// Podman, containerd (with nerdctl), cri-o, and the links that the kubelet makes to its logs. No
// runtime is talked to, and none need run.
//
// What the files say was chosen by whoever started the container. So they are read up to a size,
// parsed to a depth, and taken for text; what does not fit is passed over, and the id remains.
// Containers of users without root have their files in those users' homes, which are left alone.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "model/container.h"

namespace pkprof {

class Containers {
 public:
  // `root` stands before each path, for tests.
  explicit Containers(std::string root = "") : root_(std::move(root)) {}

  // The container of a cgroup with all that is known of it; empty for none. A name that is not
  // there yet is asked for again with the next calls, a few times.
  const Container& of(const std::string& cgroup);

 private:
  struct Known {
    Container container;
    int asked = 0;
  };
  void look_up(Container& container) const;
  void look_in_containerd(Container& container) const;
  void look_in_kubelet_logs(Container& container) const;

  std::string root_;
  std::unordered_map<std::string, Known> known_;  // by cgroup
};

// What one file says, or nothing if it is not what it should be. Each fills in what is empty.
void read_docker_config(std::string_view json, Container& to);     // config.v2.json
void read_oci_config(std::string_view json, Container& to);        // config.json, annotations
void read_storage_list(std::string_view json, Container& to);      // containers.json
void read_kubelet_log_name(std::string_view name, Container& to);  // POD_NAMESPACE_NAME-ID.log

}  // namespace pkprof
