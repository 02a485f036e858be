// SPDX-License-Identifier: Apache-2.0
// See container.h. Where the forms come from: docker, containerd, cri-o and podman make a scope
// "PREFIX-ID.scope" with systemd and a directory named after the id without; the kubelet puts them
// below "pod UID" (its dashes are underscores in a slice's name); containerd without a fitting
// driver makes "SLICE:PREFIX:ID"; LXC, LXD and Incus use "lxc/NAME" and "lxc.payload.NAME";
// machined has "machine-NAME.scope" and nspawn's service. Monitors (conmon, lxc.monitor) are in no
// container.
#include "model/container.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "model/hex.h"

namespace pkprof {

namespace {

constexpr size_t least_id = 12;
constexpr size_t whole_id = 64;
constexpr size_t short_id = 12;

struct Prefix {
  std::string_view text;
  std::string_view runtime;
};
constexpr std::array<Prefix, 6> prefixes = {{{"docker", "docker"},
                                             {"libpod", "podman"},
                                             {"libpod-payload", "podman"},
                                             {"cri-containerd", "containerd"},
                                             {"nerdctl", "containerd"},
                                             {"crio", "cri-o"}}};

constexpr std::array<std::string_view, 6> unit_suffixes = {".service", ".scope", ".slice",
                                                           ".socket",  ".mount", ".swap"};

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return hex_value(c) >= 0; });
}

bool is_id(std::string_view text) {
  return text.size() >= least_id && text.size() <= whole_id && is_hex(text);
}

// What stands between the two; "" when either is not there or nothing is between them.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  if (text.size() <= before.size() + after.size()) return {};
  if (!text.starts_with(before) || !text.ends_with(after)) return {};
  return text.substr(before.size(), text.size() - before.size() - after.size());
}

std::vector<std::string_view> components_of(std::string_view path) {
  std::vector<std::string_view> components;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (slash != 0) components.push_back(path.substr(0, slash));
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return components;
}

// "docker-ID.scope", "libpod-ID", "SLICE:cri-containerd:ID".
Container by_prefix(std::string_view component) {
  if (component.ends_with(".scope")) component.remove_suffix(6);
  char separator = '-';
  if (const size_t last = component.rfind(':'); last != std::string_view::npos && last > 0) {
    separator = ':';
    const size_t before = component.rfind(':', last - 1);
    if (before == std::string_view::npos) return {};
    component.remove_prefix(before + 1);
  }
  for (const auto& [text, runtime] : prefixes) {
    if (!component.starts_with(text) || component.size() <= text.size() + 1) continue;
    const std::string_view rest = component.substr(text.size() + 1);
    if (component[text.size()] == separator && is_id(rest))
      return {.id = std::string(rest), .runtime = std::string(runtime)};
  }
  return {};
}

// `parent` is the component above, "" at the top.
Container container_at(std::string_view component, std::string_view parent) {
  if (Container found = by_prefix(component); !found.id.empty()) return found;
  if (component.size() == whole_id && is_hex(component)) {
    const bool docker = parent == "docker";
    return {.id = std::string(component), .runtime = docker ? "docker" : ""};
  }
  if (parent == "lxc" || parent == "lxc.payload")
    return {.id = std::string(component), .runtime = "lxc"};
  if (const auto name = between(component, "lxc.payload.", ""); !name.empty())
    return {.id = std::string(name), .runtime = "lxc"};
  for (const auto& [before, after] :
       {std::pair{"machine-", ".scope"}, std::pair{"systemd-nspawn@", ".service"}}) {
    const std::string_view name = between(component, before, after);
    if (!name.empty()) return {.id = unescape_unit(name), .runtime = "machine"};
  }
  return {};
}

// "kubepods-burstable-podUID.slice", "podUID"; in a slice the UID's dashes are underscores. A UID
// is of 32 digits and four dashes; a static pod's is a hash without dashes.
std::string pod_uid_of(std::string_view component) {
  if (const size_t colon = component.find(':'); colon != std::string_view::npos)
    component = component.substr(0, colon);
  if (component.ends_with(".slice")) {
    component.remove_suffix(6);
    const size_t at = component.rfind("-pod");
    if (!component.starts_with("kube") || at == std::string_view::npos) return {};
    component.remove_prefix(at + 1);
  }
  if (!component.starts_with("pod")) return {};
  std::string uid(component.substr(3));
  std::ranges::replace(uid, '_', '-');
  const auto dashes = std::ranges::count(uid, '-');
  const bool whole = (uid.size() == 36 && dashes == 4) || (uid.size() == 32 && dashes == 0);
  const bool digits =
      std::ranges::all_of(uid, [](char c) { return c == '-' || hex_value(c) >= 0; });
  return whole && digits ? uid : "";
}

// The container and how many components lead to it; 0 for none.
struct Found {
  Container container;
  size_t depth = 0;
};

Found innermost(const std::vector<std::string_view>& components) {
  Found found;
  for (size_t i = components.size(); i-- > 0 && found.depth == 0;) {
    found.container = container_at(components[i], i > 0 ? components[i - 1] : "");
    if (!found.container.id.empty()) found.depth = i + 1;
  }
  const size_t above = found.depth > 0 ? found.depth : components.size();
  for (size_t i = above; i-- > 0 && found.container.pod_uid.empty();)
    found.container.pod_uid = pod_uid_of(components[i]);
  return found;
}

bool is_unit(std::string_view component) {
  return std::ranges::any_of(unit_suffixes, [&](std::string_view suffix) {
    return component.size() > suffix.size() && component.ends_with(suffix);
  });
}

}  // namespace

Container container_of_cgroup(std::string_view path) {
  return innermost(components_of(path)).container;
}

std::string container_title(const Container& c) {
  if (c.id.empty()) return {};
  const bool hex = c.id.size() >= least_id && is_hex(c.id);
  const std::string id = hex ? c.id.substr(0, short_id) : c.id;
  std::string title = !c.name.empty() ? c.name : c.runtime.empty() ? id : c.runtime + " " + id;
  if (!c.pod.empty()) {
    title = c.pod + "/" + title;
    if (!c.pod_namespace.empty()) title = c.pod_namespace + "/" + title;
  }
  return title;
}

std::string unit_of_cgroup(std::string_view path, const Container& container) {
  const std::vector<std::string_view> components = components_of(path);
  size_t depth = components.size();
  while (depth > 0 && !is_unit(components[depth - 1])) --depth;
  if (depth == 0) return {};
  std::string unit = unescape_unit(components[depth - 1]);
  for (size_t i = depth - 1; i-- > 0;) {
    const std::string_view uid = between(components[i], "user@", ".service");
    if (uid.empty()) continue;
    unit += " (user " + std::string(uid) + ")";
    break;
  }
  const Found in = innermost(components);
  if (in.depth > 0 && in.depth < depth) {
    const bool same = container.id == in.container.id;
    unit += " (in " + container_title(same ? container : in.container) + ")";
  }
  return unit;
}

std::string unescape_unit(std::string_view name) {
  if (name.size() > 1 && name[0] == '_') name.remove_prefix(1);
  std::string out;
  out.reserve(name.size());
  while (!name.empty()) {
    if (name.size() >= 4 && name[0] == '\\' && name[1] == 'x' && hex_value(name[2]) >= 0 &&
        hex_value(name[3]) >= 0) {
      out += static_cast<char>(hex_value(name[2]) << 4 | hex_value(name[3]));
      name.remove_prefix(4);
    } else {
      out += name[0];
      name.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace pkprof
