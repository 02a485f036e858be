// SPDX-License-Identifier: Apache-2.0
// What containers' runtimes left in files, and the paths of cgroups. Whatever they say, what is
// taken from them is text of bounded length, and an id is one that may stand in a path.
#include <cstdlib>

#include "fuzz.h"
#include "process/containers.h"

namespace {

using namespace pkprof;

void require(bool condition) {
  if (!condition) std::abort();
}

const std::string id(64, 'a');

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Container to{.id = id};
  read_docker_config(text, to);
  read_oci_config(text, to);
  read_storage_list(text, to);
  read_kubelet_log_name(text, to);
  require(to.id == id);
  for (const std::string* field : {&to.name, &to.image, &to.pod, &to.pod_namespace})
    require(field->size() <= 256);

  const Container found = container_of_cgroup(text);
  require(found.id.size() <= text.size());
  require(container_title(found).empty() == found.id.empty());
  require(unit_of_cgroup(text, found).size() <= 4 * text.size() + 64);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {R"({"Name":"/web","Config":{"Image":"nginx:1.27","Labels":{
              "io.kubernetes.container.name":"app","io.kubernetes.pod.name":"shop-1"}}})",
          R"({"annotations":{"io.kubernetes.cri.container-name":"app",
              "io.kubernetes.cri.sandbox-name":"shop-1","nerdctl/name":"tool",
              "io.kubernetes.cri.container-type":"sandbox"}})",
          R"([{"id":")" + id + R"(","names":["db"],"metadata":"{\"image-name\":\"pg:16\"}"}])",
          "shop-7d9f_prod_app-" + id + ".log",
          "/system.slice/docker-" + id + ".scope",
          "/kubepods/burstable/pod0a1b2c3d-0000-4444-8888-0123456789ab/" + id,
          "/user.slice/user-1000.slice/user@1000.service/app.slice/a\\x2db.service",
          "/machine.slice/machine-deb\\x2dsid.scope/payload/lxc.payload.web/x.scope"};
}
