// SPDX-License-Identifier: Apache-2.0
#include "process/containers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "model/bounded_json.h"

namespace pkprof {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int most_asked = 3;
constexpr size_t whole_id = 64;
constexpr size_t most_bytes = size_t{8} << 20;  // of a file
constexpr size_t most_name = 256;               // of a name
constexpr size_t most_values = size_t{1} << 20;
constexpr size_t most_namespaces = 64;
constexpr size_t most_logs = 65536;

// "" when there is no such file, or it is none, or it is too large.
std::string read_text(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat info{};
  if (!fd.valid() || fstat(fd.get(), &info) || !S_ISREG(info.st_mode)) return {};
  if (info.st_size <= 0 || static_cast<size_t>(info.st_size) > most_bytes) return {};
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = read(fd.get(), text.data() + done, text.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  return text;
}

struct TooMuch {
  const char* why;
};

// Null when it is not JSON, or too much.
Json parse(std::string_view text) {
  constexpr JsonBounds bounds{.nesting = most_values, .keys = most_values, .values = most_values};
  try {
    return parse_bounded<TooMuch, Json>(text, bounds);
  } catch (const TooMuch&) {
    return {};
  } catch (const Json::exception&) {
    return {};
  }
}

const Json& member(const Json& object, const char* key) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto it = object.find(key);
  return it == object.end() ? none : *it;
}

void fill_in(std::string& to, const Json& from) {
  if (to.empty() && from.is_string()) to = from.get_ref<const std::string&>().substr(0, most_name);
}

// What Kubernetes has its runtimes note, in each one's words.
void read_annotations(const Json& notes, Container& to) {
  for (const char* key : {"io.kubernetes.cri.container-name", "io.kubernetes.container.name",
                          "nerdctl/name", "io.kubernetes.cri-o.ContainerName"})
    fill_in(to.name, member(notes, key));
  for (const char* key : {"io.kubernetes.cri.image-name", "io.kubernetes.cri-o.ImageName"})
    fill_in(to.image, member(notes, key));
  for (const char* key : {"io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"})
    fill_in(to.pod, member(notes, key));
  for (const char* key : {"io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace"})
    fill_in(to.pod_namespace, member(notes, key));
  // The container that holds a pod's namespaces has no name of its own, or "POD".
  const Json& type = member(notes, "io.kubernetes.cri.container-type");
  const bool sandbox = type.is_string() && type.get_ref<const std::string&>() == "sandbox";
  if ((sandbox && to.name.empty()) || (!to.pod.empty() && to.name == "POD")) to.name = "pause";
}

}  // namespace

void read_docker_config(std::string_view text, Container& to) {
  const Json json = parse(text);
  std::string name;
  fill_in(name, member(json, "Name"));
  if (name.starts_with('/')) name.erase(0, 1);
  const Json& config = member(json, "Config");
  read_annotations(member(config, "Labels"), to);
  if (to.name.empty()) to.name = name;
  fill_in(to.image, member(config, "Image"));
  if (to.runtime.empty() && !name.empty()) to.runtime = "docker";
}

void read_oci_config(std::string_view text, Container& to) {
  read_annotations(member(parse(text), "annotations"), to);
}

void read_storage_list(std::string_view text, Container& to) {
  const Json list = parse(text);
  if (!list.is_array()) return;
  for (const Json& entry : list) {
    const Json& id = member(entry, "id");
    if (!id.is_string() || id.get_ref<const std::string&>() != to.id) continue;
    if (const Json& names = member(entry, "names"); names.is_array() && !names.empty())
      fill_in(to.name, names[0]);
    // Once more JSON, as text.
    const Json& more = member(entry, "metadata");
    if (more.is_string())
      fill_in(to.image, member(parse(more.get_ref<const std::string&>()), "image-name"));
    return;
  }
}

void read_kubelet_log_name(std::string_view name, Container& to) {
  const std::string end = "-" + to.id + ".log";
  if (to.id.empty() || name.size() <= end.size() || !name.ends_with(end)) return;
  name.remove_suffix(end.size());
  const size_t first = name.find('_');
  const size_t second = first == std::string_view::npos ? first : name.find('_', first + 1);
  if (second == std::string_view::npos) return;
  const auto fill = [](std::string& field, std::string_view text) {
    if (field.empty()) field = text.substr(0, most_name);
  };
  fill(to.pod, name.substr(0, first));
  fill(to.pod_namespace, name.substr(first + 1, second - first - 1));
  fill(to.name, name.substr(second + 1));
}

void Containers::look_in_containerd(Container& to) const {
  std::error_code ec;
  size_t seen = 0;
  fs::directory_iterator it(root_ + "/run/containerd/io.containerd.runtime.v2.task", ec);
  for (; !ec && it != fs::directory_iterator() && seen < most_namespaces; it.increment(ec), ++seen)
    read_oci_config(read_text(it->path().string() + "/" + to.id + "/config.json"), to);
}

void Containers::look_in_kubelet_logs(Container& to) const {
  std::error_code ec;
  size_t seen = 0;
  fs::directory_iterator it(root_ + "/var/log/containers", ec);
  for (; !ec && it != fs::directory_iterator() && seen < most_logs; it.increment(ec), ++seen)
    read_kubelet_log_name(it->path().filename().string(), to);
}

// The id is hex digits, nothing else: it may stand in a path.
void Containers::look_up(Container& to) const {
  if (to.id.size() != whole_id || to.id.find_first_not_of("0123456789abcdef") != std::string::npos)
    return;
  constexpr std::array storage = {"/var/lib/containers/storage/overlay-containers/",
                                  "/run/containers/storage/overlay-containers/"};
  const auto is_done = [&] {
    return !to.name.empty() && !to.image.empty() && (to.pod_uid.empty() || !to.pod.empty());
  };
  read_docker_config(read_text(root_ + "/var/lib/docker/containers/" + to.id + "/config.v2.json"),
                     to);
  if (!is_done()) look_in_containerd(to);
  for (const char* place : storage)
    if (!is_done()) read_oci_config(read_text(root_ + place + to.id + "/userdata/config.json"), to);
  for (const char* place : storage)
    for (const char* list : {"containers.json", "volatile-containers.json"})
      if (!is_done()) read_storage_list(read_text(root_ + place + list), to);
  if (!is_done()) look_in_kubelet_logs(to);
}

const Container& Containers::of(const std::string& cgroup) {
  const auto [it, fresh] = known_.try_emplace(cgroup);
  Known& known = it->second;
  if (fresh) known.container = container_of_cgroup(cgroup);
  const bool wanted = !known.container.id.empty() && known.container.name.empty();
  if (wanted && known.asked < most_asked) {
    ++known.asked;
    look_up(known.container);
  }
  return known.container;
}

}  // namespace pkprof
