// SPDX-License-Identifier: Apache-2.0
#include "agent/config.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "args/quantities.h"
#include "model/file.h"

namespace pkprof {
namespace {

constexpr size_t most_bytes = 1 << 20;
constexpr std::array sink_types = {"files", "store"};
constexpr std::array groups = {"container", "unit", "exe", "comm", "cgroup"};
constexpr std::array resource_names = {"cpu", "wait", "lock", "disk", "net", "memory", "all"};

// One table of the file, whose keys are taken one by one. What is left over is an error.
class Table {
 public:
  Table(const toml::table& table, std::string path, std::string& error)
      : table_(table), path_(std::move(path)), error_(error) {}

  template <typename T>
  void take(const char* key, T& to, const char* kind) {
    const toml::node* node = find(key);
    if (!node) return;
    if (const auto value = node->value_exact<T>())
      to = *value;
    else
      complain(*node, std::string(key) + " is to be " + kind);
  }
  void take(const char* key, std::string& to) { take(key, to, "a string"); }
  // With a least and a most.
  void take(const char* key, double& to, double least, double most) {
    const toml::node* node = find(key);
    if (!node) return;
    const auto value = node->value<double>();
    if (value && node->is_number() && *value >= least && *value <= most)
      to = *value;
    else
      complain(*node, std::string(key) + " is to be a number from " + shortest(least) + " to " +
                          shortest(most));
  }
  void take(const char* key, uint64_t& to, uint64_t least, uint64_t most) {
    const toml::node* node = find(key);
    if (!node) return;
    const auto value = node->value_exact<int64_t>();
    if (value && *value >= 0 && static_cast<uint64_t>(*value) >= least &&
        static_cast<uint64_t>(*value) <= most)
      to = static_cast<uint64_t>(*value);
    else
      complain(*node, std::string(key) + " is to be a whole number from " + std::to_string(least) +
                          " to " + std::to_string(most));
  }
  void take(const char* key, uint64_t& to, Result<uint64_t> (*from)(std::string_view)) {
    std::string text;
    const toml::node* node = table_.get(key);
    take(key, text);
    if (text.empty()) return;
    if (auto value = from(text))
      to = *value;
    else
      complain(*node, std::string(key) + ": " + value.error().message);
  }
  template <typename Words>
  void take_word(const char* key, std::string& to, const Words& words) {
    const toml::node* node = table_.get(key);
    take(key, to);
    if (node && std::ranges::find(words, to) == words.end())
      complain(*node, std::string(key) + ": \"" + to + "\" is none of " + listed(words));
  }
  template <typename Words>
  void take_words(const char* key, std::vector<std::string>& to, const Words& words) {
    const toml::node* node = find(key);
    if (!node) return;
    const toml::array* array = node->as_array();
    if (!array) return complain(*node, std::string(key) + " is to be a list of strings");
    for (const toml::node& one : *array) {
      const auto word = one.value_exact<std::string>();
      if (!word || std::ranges::find(words, *word) == words.end())
        return complain(one, std::string(key) + " has what is none of " + listed(words));
      to.push_back(*word);
    }
  }
  // nullptr: there is none.
  const toml::table* table(const char* key) {
    const toml::node* node = find(key);
    if (node && !node->is_table()) complain(*node, "[" + std::string(key) + "] is to be a table");
    return node ? node->as_table() : nullptr;
  }
  std::vector<const toml::table*> tables(const char* key) {
    std::vector<const toml::table*> all;
    const toml::node* node = find(key);
    if (!node) return all;
    const toml::array* array = node->as_array();
    if (!array || !array->is_array_of_tables()) {
      complain(*node, std::string(key) + " is to be written [[" + key + "]]");
      return all;
    }
    for (const toml::node& one : *array) all.push_back(one.as_table());
    return all;
  }
  void end() {
    for (const auto& [key, node] : table_)
      if (!taken_.contains(std::string(key.str())))
        complain(node, "\"" + std::string(key.str()) + "\" is not known here");
  }
  void complain(const toml::node& at, const std::string& what) {
    if (error_.empty()) error_ = path_ + ":" + std::to_string(at.source().begin.line) + ": " + what;
  }

 private:
  const toml::node* find(const char* key) {
    taken_.insert(key);
    return table_.get(key);
  }
  static std::string shortest(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", number);
    return text;
  }
  template <typename Words>
  static std::string listed(const Words& words) {
    std::string text;
    for (const char* word : words) text += (text.empty() ? "" : ", ") + std::string(word);
    return text;
  }

  const toml::table& table_;
  const std::string path_;
  std::string& error_;  // the first
  std::set<std::string> taken_;
};

// Part of a path, of a label in figures: nothing else needs to be thought of.
bool is_name(std::string_view name) {
  constexpr size_t longest = 64;
  return !name.empty() && name.size() <= longest && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

SinkConfig read_sink(const toml::table& from, const std::string& path, std::string& error) {
  SinkConfig sink;
  Table table(from, path, error);
  table.take_word("type", sink.type, sink_types);
  if (sink.type.empty()) table.complain(from, "a sink needs a type");
  table.take("name", sink.name);
  if (sink.name.empty()) sink.name = sink.type;
  if (!is_name(sink.name)) table.complain(from, "a sink's name is of letters, digits, - and _");
  if (sink.type == "store") {
    table.take("url", sink.url);
    if (sink.url.empty()) table.complain(from, "a store needs a url: \"sqlite:/PATH\"");
  } else {
    table.take("directory", sink.directory);
    if (!sink.directory.starts_with('/')) table.complain(from, "directory is to begin with /");
  }
  table.take("keep", sink.keep.age_ns, parse_age);
  table.take("size", sink.keep.bytes, parse_bytes);
  table.end();
  return sink;
}

void read_labels(const toml::table* from, Table& parent, std::map<std::string, std::string>& to) {
  if (!from) return;
  for (const auto& [key, node] : *from) {
    const auto value = node.value_exact<std::string>();
    if (!value || !is_name(key.str())) {
      parent.complain(node, "labels are strings, by names of letters, digits, - and _");
      return;
    }
    to.emplace(key.str(), *value);
  }
}

void read_metrics(const toml::table* from, const std::string& path, std::string& error,
                  MetricsConfig& to) {
  if (!from) return;
  Table table(*from, path, error);
  to.address = "127.0.0.1";
  table.take("address", to.address);
  uint64_t port = to.port;
  table.take("port", port, 0, UINT16_MAX);
  to.port = static_cast<uint16_t>(port);
  table.take_word("by", to.by, groups);
  table.take("series", to.series, 1, 100'000);
  table.end();
}

}  // namespace

Result<AgentConfig> parse_agent_config(std::string_view text, const std::string& path) {
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed)
    return fail(path + ":" + std::to_string(parsed.error().source().begin.line) + ": " +
                std::string(parsed.error().description()));
  AgentConfig config;
  std::string error;
  Table table(parsed.table(), path, error);
  table.take("interval", config.interval, 1, 3600);
  double percent = 100 * config.budget;
  table.take("budget", percent, 0.01, 100);
  config.budget = percent / 100;
  table.take("frequency", config.frequency_hz, 1, 20000);
  table.take("clients", config.clients, "true or false");
  table.take_words("resources", config.resources, resource_names);
  table.take("host", config.host);
  read_labels(table.table("labels"), table, config.labels);
  table.take("spool", config.spool);
  if (!config.spool.starts_with('/')) table.complain(parsed.table(), "spool is to begin with /");
  table.take("spool_size", config.spool_bytes, parse_bytes);
  read_metrics(table.table("metrics"), path, error, config.metrics);
  for (const toml::table* sink : table.tables("sink"))
    config.sinks.push_back(read_sink(*sink, path, error));
  table.end();
  std::set<std::string> names;
  for (const SinkConfig& sink : config.sinks)
    if (!names.insert(sink.name).second && error.empty())
      error = path + ": two sinks have the name " + sink.name;
  if (error.empty() && config.sinks.empty() && config.metrics.address.empty())
    error = path + ": there is neither a [[sink]] nor [metrics]: nobody would hear of it";
  if (!error.empty()) return fail(error);
  return config;
}

Result<AgentConfig> read_agent_config(const std::string& path) {
  const auto text = read_file(path, most_bytes);
  if (!text) return std::unexpected(text.error());
  return parse_agent_config(*text, path);
}

}  // namespace pkprof
