// SPDX-License-Identifier: Apache-2.0
// Runtimes' files: what they look like when all is well, and when someone means harm.
#include "process/containers.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace pkprof {
namespace {

namespace fs = std::filesystem;

const std::string id(64, 'a');
const std::string pod_path = "/kubepods/burstable/pod0a1b2c3d-0000-4444-8888-0123456789ab/" + id;

class ContainersTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(root_.data()), nullptr); }
  void TearDown() override { fs::remove_all(root_); }
  std::string file(const std::string& path) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    return root_ + path;
  }
  void write(const std::string& path, const std::string& text) {
    std::ofstream(file(path), std::ios::binary) << text;
  }
  Container of(const std::string& cgroup) { return Containers(root_).of(cgroup); }

  std::string root_ = testing::TempDir() + "pkprof-containers-XXXXXX";
};

TEST_F(ContainersTest, Docker) {
  const std::string path = "/var/lib/docker/containers/" + id + "/config.v2.json";
  write(path, R"({"ID":"x","Name":"/web","Config":{"Image":"nginx:1.27","Labels":{}}})");
  const Container found = of("/system.slice/docker-" + id + ".scope");
  EXPECT_EQ(found,
            (Container{.id = id, .runtime = "docker", .name = "web", .image = "nginx:1.27"}));
  EXPECT_EQ(of("/ecs/task/" + id).runtime, "docker") << "the path alone does not tell";
}

TEST_F(ContainersTest, DockerUnderKubernetes) {
  write("/var/lib/docker/containers/" + id + "/config.v2.json",
        R"({"Name":"/k8s_app_shop","Config":{"Image":"sha256:1","Labels":{
            "io.kubernetes.container.name":"app","io.kubernetes.pod.name":"shop-1",
            "io.kubernetes.pod.namespace":"prod"}}})");
  EXPECT_EQ(container_title(of(pod_path)), "prod/shop-1/app");
}

TEST_F(ContainersTest, Podman) {
  for (const char* list : {"containers.json", "volatile-containers.json"}) {
    write("/var/lib/containers/storage/overlay-containers/" + std::string(list),
          R"([{"id":"ffff","names":["other"]},{"id":")" + id +
              R"(","names":["db","alias"],"metadata":"{\"image-name\":\"pg:16\"}"}])");
    const Container found = of("/machine.slice/libpod-" + id + ".scope/container");
    EXPECT_EQ(found, (Container{.id = id, .runtime = "podman", .name = "db", .image = "pg:16"}));
    fs::remove_all(root_ + "/var");
  }
}

TEST_F(ContainersTest, Containerd) {
  fs::create_directories(root_ + "/run/containerd/io.containerd.runtime.v2.task/moby");
  write("/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + id + "/config.json",
        R"({"annotations":{"io.kubernetes.cri.container-name":"app",
            "io.kubernetes.cri.image-name":"shop:2","io.kubernetes.cri.sandbox-name":"shop-1",
            "io.kubernetes.cri.sandbox-namespace":"prod"}})");
  const Container found = of(pod_path);
  EXPECT_EQ(container_title(found), "prod/shop-1/app");
  EXPECT_EQ(found.image, "shop:2");
  EXPECT_EQ(found.pod_uid, "0a1b2c3d-0000-4444-8888-0123456789ab");
}

TEST_F(ContainersTest, TheContainerThatHoldsThePod) {
  write("/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + id + "/config.json",
        R"({"annotations":{"io.kubernetes.cri.container-type":"sandbox",
            "io.kubernetes.cri.sandbox-name":"shop-1"}})");
  EXPECT_EQ(container_title(of(pod_path)), "shop-1/pause");
}

TEST_F(ContainersTest, Nerdctl) {
  write("/run/containerd/io.containerd.runtime.v2.task/default/" + id + "/config.json",
        R"({"annotations":{"nerdctl/name":"tool"}})");
  EXPECT_EQ(of("/system.slice/nerdctl-" + id + ".scope").name, "tool");
}

TEST_F(ContainersTest, CriO) {
  write("/run/containers/storage/overlay-containers/" + id + "/userdata/config.json",
        R"({"annotations":{"io.kubernetes.container.name":"app","io.kubernetes.pod.name":"shop-1",
            "io.kubernetes.pod.namespace":"prod","io.kubernetes.cri-o.ImageName":"shop:2"}})");
  EXPECT_EQ(container_title(of("/crio-" + id + ".scope")), "prod/shop-1/app");
}

TEST_F(ContainersTest, TheKubeletsLogs) {
  write("/var/log/containers/noise.log", "");
  fs::create_symlink("/nowhere", file("/var/log/containers/shop-7d9f_prod_app-" + id + ".log"));
  EXPECT_EQ(container_title(of(pod_path)), "prod/shop-7d9f/app");
}

TEST_F(ContainersTest, NothingIsKnown) {
  EXPECT_EQ(container_title(of("/docker/" + id)), "docker aaaaaaaaaaaa");
  EXPECT_EQ(of("/system.slice/x.service"), Container{});
}

TEST_F(ContainersTest, ANameThatComesLaterIsFound) {
  Containers containers(root_);
  EXPECT_EQ(containers.of("/docker/" + id).name, "");
  write("/var/lib/docker/containers/" + id + "/config.v2.json", R"({"Name":"/late"})");
  EXPECT_EQ(containers.of("/docker/" + id).name, "late");
}

TEST_F(ContainersTest, FilesThatAreNone) {
  const std::string path = file("/var/lib/docker/containers/" + id + "/config.v2.json");
  const auto nothing = [&] { return of("/docker/" + id).name.empty(); };
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(nothing()) << "a pipe that nobody writes into must not be waited for";
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_TRUE(nothing());
  fs::remove(path);
  std::ofstream(root_ + "/elsewhere") << R"({"Name":"/x"})";
  fs::create_symlink(root_ + "/elsewhere", path);
  EXPECT_TRUE(nothing()) << "a link leads to where we were not asked to look";
  fs::remove(path);
  std::ofstream(path) << R"({"Name":"/x"})";
  fs::resize_file(path, 100 << 20);
  EXPECT_TRUE(nothing()) << "too large";
}

TEST_F(ContainersTest, ContentThatIsHostile) {
  const auto name_of = [](const std::string& json) {
    Container to{.id = id};
    read_docker_config(json, to);
    read_oci_config(json, to);
    read_storage_list(json, to);
    return to.name;
  };
  for (const std::string& json :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"),
        std::string("{\"Name\":7}"), std::string("{\"Name\":[\"x\"]}"),
        std::string("{\"annotations\":[1]}"), std::string("[{\"id\":7},7]"),
        "[{\"id\":\"" + id + "\",\"names\":[7],\"metadata\":\"{{{\"}]",
        "[{\"id\":\"" + id + "\",\"names\":{}}]", std::string(200'000, '['),
        "{\"Name\":" + std::string(100'000, '[')})
    EXPECT_EQ(name_of(json), "") << json.substr(0, 80);
  EXPECT_EQ(name_of(R"({"Name":"/\u001b[2J"})"), "\x1b[2J") << "cleaned where it is shown";
  EXPECT_EQ(name_of("{\"Name\":\"/" + std::string(100'000, 'x') + "\"}").size(), 255)
      << "cut, with the slash, at 256";
  EXPECT_EQ(name_of("{\"deep\":" + std::string(50'000, '[') + std::string(50'000, ']') +
                    ",\"Name\":\"/ok\"}"),
            "ok");
  std::string many = "{}";
  for (int i = 0; i < 19; ++i) many += "," + many;
  EXPECT_EQ(name_of(R"({"many":[)" + many + R"(],"Name":"/ok"})"), "ok") << "hours, once";
  EXPECT_EQ(name_of(R"({"many":[)" + many + "," + many + R"(],"Name":"/x"})"), "");
}

TEST_F(ContainersTest, LogNamesThatAreNone) {
  for (const std::string& name :
       {std::string(), "-" + id + ".log", "x-" + id + ".log", "a_b-" + id + ".log",
        "a_b_c-" + std::string(64, 'b') + ".log", std::string("a_b_c.log")}) {
    Container to{.id = id};
    read_kubelet_log_name(name, to);
    EXPECT_EQ(to, Container{.id = id}) << name;
  }
}

}  // namespace
}  // namespace pkprof
