// SPDX-License-Identifier: Apache-2.0
// What paths of cgroups say of containers and units.
#include "model/container.h"

#include <gtest/gtest.h>

#include <random>

namespace pkprof {
namespace {

const std::string id(64, 'a');
const std::string inner(64, 'b');
const std::string uid = "0a1b2c3d-0000-4444-8888-0123456789ab";
const std::string slice_uid = "0a1b2c3d_0000_4444_8888_0123456789ab";

struct Form {
  std::string path, runtime, id, pod_uid;
};

TEST(Container, EveryFormIsKnown) {
  const std::string burstable = "/kubepods.slice/kubepods-burstable.slice/";
  const std::string pod = burstable + "kubepods-burstable-pod" + slice_uid + ".slice";
  const std::vector<Form> forms = {
      {"/system.slice/docker-" + id + ".scope", "docker", id, ""},
      {"/docker/" + id, "docker", id, ""},
      {"/system.slice/docker.service/docker/" + id, "docker", id, ""},
      {"/machine.slice/libpod-" + id + ".scope", "podman", id, ""},
      {"/machine.slice/libpod-" + id + ".scope/container", "podman", id, ""},
      {"/system.slice/web.service/libpod-payload-" + id, "podman", id, ""},
      {"/libpod_parent/libpod-" + id, "podman", id, ""},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id + ".scope", "podman",
       id, ""},
      {"/system.slice/nerdctl-" + id + ".scope", "containerd", id, ""},
      {pod + "/cri-containerd-" + id + ".scope", "containerd", id, uid},
      {pod + "/crio-" + id + ".scope", "cri-o", id, uid},
      {pod + "/docker-" + id + ".scope", "docker", id, uid},
      {"/kubepods/besteffort/pod" + uid + "/" + id, "", id, uid},
      {"/kubepods/pod" + uid + "/crio-" + id, "cri-o", id, uid},
      {"/kubepods.slice/kubepods-pod" + std::string(32, 'f') + ".slice/crio-" + id + ".scope",
       "cri-o", id, std::string(32, 'f')},
      {"/system.slice/containerd.service/kubepods-besteffort-pod" + slice_uid +
           ".slice:cri-containerd:" + id,
       "containerd", id, uid},
      {"/ecs/0123456789abcdef0123456789abcdef/" + id, "", id, ""},
      {"/lxc/web", "lxc", "web", ""},
      {"/lxc/101/ns/system.slice/x.service", "lxc", "101", ""},
      {"/lxc.payload.web/init.scope", "lxc", "web", ""},
      {"/lxc.payload/web", "lxc", "web", ""},
      {"/machine.slice/machine-deb\\x2dsid.scope/payload", "machine", "deb-sid", ""},
      {"/machine.slice/systemd-nspawn@deb.service/payload/init.scope", "machine", "deb", ""},
      // In containers in containers: the innermost.
      {"/docker/" + id + "/docker/" + inner, "docker", inner, ""},
      {"/system.slice/docker-" + id + ".scope/kubelet/kubepods/pod" + uid + "/" + inner, "", inner,
       uid},
      // In none.
      {"/", "", "", ""},
      {"", "", "", ""},
      {"/system.slice/ssh.service", "", "", ""},
      {"/machine.slice/libpod-conmon-" + id + ".scope", "", "", ""},
      {pod + "/crio-conmon-" + id + ".scope", "", "", uid},
      {"/lxc.monitor.web", "", "", ""},
      {"/lxc.payload.", "", "", ""},
      {"/lxc", "", "", ""},
      {"/docker-short.scope", "", "", ""},
      {"/docker-" + id + "a.scope", "", "", ""},
      {"/docker-" + std::string(64, 'A') + ".scope", "", "", ""},
      {"/docker-../../../etc/passwd.scope", "", "", ""},
      {"/machine.slice/machine-.scope", "", "", ""},
      {"/" + std::string(63, 'a'), "", "", ""},
      {pod, "", "", uid},
      {"/poduseful", "", "", ""},
      {"/:::/:docker:/docker:", "", "", ""}};
  for (const Form& form : forms) {
    const Container container = container_of_cgroup(form.path);
    EXPECT_EQ(container.runtime, form.runtime) << form.path;
    EXPECT_EQ(container.id, form.id) << form.path;
    EXPECT_EQ(container.pod_uid, form.pod_uid) << form.path;
    EXPECT_EQ(container.name, "") << "a path knows no names";
  }
}

TEST(Container, TitlesSayTheBestThereIs) {
  Container container{.id = id, .runtime = "docker"};
  EXPECT_EQ(container_title(container), "docker aaaaaaaaaaaa");
  container.name = "web";
  EXPECT_EQ(container_title(container), "web");
  container.pod = "shop-1";
  container.pod_namespace = "prod";
  EXPECT_EQ(container_title(container), "prod/shop-1/web");
  EXPECT_EQ(container_title({.id = "deb", .runtime = "lxc"}), "lxc deb");
  EXPECT_EQ(container_title({.id = id}), "aaaaaaaaaaaa");
  EXPECT_EQ(container_title({.pod_uid = uid}), "") << "in a pod, but in none of its containers";
}

TEST(Unit, TheDeepestThatSystemdNames) {
  const std::vector<std::pair<std::string, std::string>> units = {
      {"/system.slice/nginx.service", "nginx.service"},
      {"/system.slice/nginx.service/worker/7", "nginx.service"},
      {"/system.slice", "system.slice"},
      {"/init.scope", "init.scope"},
      {"/system.slice/home.mount", "home.mount"},
      {"/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service"},
      {"/user.slice/user-1000.slice/session-2.scope", "session-2.scope"},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/ed.service",
       "ed.service (user 1000)"},
      {"/user.slice/user-1000.slice/user@1000.service", "user@1000.service"},
      {"/system.slice/a\\x2db.service", "a-b.service"},
      {"/system.slice/docker-" + id + ".scope", "docker-" + id + ".scope"},
      {"/machine.slice/machine-deb.scope/payload/system.slice/nginx.service",
       "nginx.service (in machine deb)"},
      {"/lxc.payload.web/user.slice/user-7.slice/user@7.service/x.scope",
       "x.scope (user 7) (in lxc web)"},
      {"/", ""},
      {"", ""},
      {"/build/job-7", ""},
      {"/.service", ""},
      {"/kubepods/besteffort", ""}};
  for (const auto& [path, unit] : units) EXPECT_EQ(unit_of_cgroup(path), unit) << path;
}

TEST(Unit, InAContainerThatHasAName) {
  const std::string path = "/system.slice/docker-" + id + ".scope/system.slice/x.service";
  EXPECT_EQ(unit_of_cgroup(path, {.id = id, .name = "web"}), "x.service (in web)");
  EXPECT_EQ(unit_of_cgroup(path), "x.service (in docker aaaaaaaaaaaa)");
}

TEST(Unit, EscapesAreUndone) {
  EXPECT_EQ(unescape_unit("a\\x2db\\x5cc"), "a-b\\c");
  EXPECT_EQ(unescape_unit("_.hidden"), ".hidden");
  EXPECT_EQ(unescape_unit("_"), "_");
  EXPECT_EQ(unescape_unit("\\x2"), "\\x2");
  EXPECT_EQ(unescape_unit("\\xzz\\"), "\\xzz\\");
  EXPECT_EQ(unescape_unit("\\x1b[2J"), "\x1b[2J") << "not cleaned here";
}

// No path is too odd; what is found is a part of the path or an unescaped one.
TEST(Container, AnyPathAtAll) {
  std::mt19937_64 random(1);
  const std::vector<std::string> parts = {
      "/", "docker-",  id,      ".scope", "lxc", "machine-", "\\x2d",     ":",       "crio",
      "-", ".service", "user@", "pod",    uid,   "kubepods", "\xff\x1b[", "libpod-", ".slice"};
  for (int round = 0; round < 20'000; ++round) {
    std::string path;
    for (size_t n = random() % 12; n > 0; --n) path += parts[random() % parts.size()];
    const Container container = container_of_cgroup(path);
    EXPECT_LE(container.id.size(), path.size());
    EXPECT_LE(unit_of_cgroup(path, container).size(), 4 * path.size() + 64);
    EXPECT_EQ(container.id.find('/') == std::string::npos || container.runtime == "machine", true);
  }
}

}  // namespace
}  // namespace pkprof
