// SPDX-License-Identifier: Apache-2.0
// See gmon_about.h. Functions are numbers in one flat list, three each, since there are many: the
// file from 1, or 0; the kind; whether calls were counted. Text is escaped reversibly (escape.h).
#include "model/gmon_about.h"

#include <nlohmann/json.hpp>

#include "model/bounded_json.h"
#include "model/escape.h"

namespace pkprof {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view schema = "pkprof.gmon/1";
constexpr uint64_t root_kind = 3;  // behind FrameKind's
constexpr size_t max_nesting = 8;
constexpr uint64_t max_cpus = 1 << 20;

// Raised by the readers below, turned into an Error at the end.
struct MalformedAbout {
  std::string what;
};

Json part_to_json(const GmonAbout::Part& part) {
  Json to = {{"kind", to_string(part.kind)}};
  if (part.kind != LabelKind::process) return to;
  to["pid"] = part.pid;
  to["comm"] = escape_text(part.comm);
  if (!part.exe.empty()) to["exe"] = escape_text(part.exe);
  return to;
}

uint64_t number_of(const Json& value, uint64_t max) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > max)
    throw MalformedAbout{"a number is none, or out of range"};
  return value.get<uint64_t>();
}

std::string text_of(const Json& value) {
  if (!value.is_string()) throw MalformedAbout{"a text is none"};
  return unescape_text(value.get_ref<const std::string&>());
}

// Of what older versions did not write.
uint64_t number_or_zero(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() ? 0 : number_of(*it, INT64_MAX);
}

const Json& list_in(const Json& object, const char* key) {
  const Json& value = object.at(key);
  if (!value.is_array()) throw MalformedAbout{"a list is none"};
  return value;
}

GmonAbout::Part part_from_json(const Json& from) {
  GmonAbout::Part part;
  const auto kind = label_kind_from_string(text_of(from.at("kind")));
  if (!kind) throw MalformedAbout{"a part is of an unknown kind"};
  part.kind = *kind;
  if (part.kind != LabelKind::process) return part;
  part.pid = static_cast<uint32_t>(number_of(from.at("pid"), UINT32_MAX));
  part.comm = text_of(from.at("comm"));
  if (const auto exe = from.find("exe"); exe != from.end()) part.exe = text_of(*exe);
  return part;
}

void functions_from_json(const Json& from, GmonAbout& about) {
  if (from.size() % 3 != 0) throw MalformedAbout{"functions are not three numbers each"};
  for (size_t i = 0; i < from.size(); i += 3) {
    const uint64_t file = number_of(from[i], about.files.size());
    const uint64_t kind = number_of(from[i + 1], root_kind);
    const bool root = kind == root_kind;
    about.functions.push_back({.file = static_cast<int32_t>(file) - 1,
                               .kind = root ? FrameKind::user : static_cast<FrameKind>(kind),
                               .root = root,
                               .counted = number_of(from[i + 2], 1) != 0});
  }
}

GmonAbout from_json(const Json& from) {
  if (!from.is_object()) throw MalformedAbout{"not an object"};
  if (text_of(from.at("schema")) != schema) throw MalformedAbout{"of another version of pkprof"};
  GmonAbout about{.kernel = text_of(from.at("kernel")),
                  .host = text_of(from.at("host")),
                  .cpus = static_cast<uint32_t>(number_of(from.at("cpus"), max_cpus)),
                  .start_unix_ns = number_of(from.at("start_unix_ns"), UINT64_MAX),
                  .duration_ns = number_of(from.at("duration_ns"), INT64_MAX),
                  .unwatched_ns = number_or_zero(from, "unwatched_ns"),
                  .idle_ns = number_of(from.at("idle_ns"), INT64_MAX),
                  .steal_ns = number_or_zero(from, "steal_ns"),
                  .unsampled_ns = number_of(from.at("unsampled_ns"), INT64_MAX)};
  for (const Json& part : list_in(from, "parts")) about.parts.push_back(part_from_json(part));
  for (const Json& file : list_in(from, "files")) about.files.push_back(text_of(file));
  functions_from_json(list_in(from, "functions"), about);
  return about;
}

}  // namespace

std::string encode_gmon_about(const GmonAbout& about) {
  Json to = {{"schema", schema},
             {"kernel", escape_text(about.kernel)},
             {"host", escape_text(about.host)},
             {"cpus", about.cpus},
             {"start_unix_ns", about.start_unix_ns},
             {"duration_ns", about.duration_ns},
             {"unwatched_ns", about.unwatched_ns},
             {"idle_ns", about.idle_ns},
             {"steal_ns", about.steal_ns},
             {"unsampled_ns", about.unsampled_ns}};
  Json& parts = to["parts"] = Json::array();
  for (const GmonAbout::Part& part : about.parts) parts.push_back(part_to_json(part));
  Json& files = to["files"] = Json::array();
  for (const std::string& file : about.files) files.push_back(escape_text(file));
  Json& functions = to["functions"] = Json::array();
  for (const GmonAbout::FunctionAbout& f : about.functions) {
    functions.push_back(static_cast<uint64_t>(f.file + 1));
    functions.push_back(f.root ? root_kind : static_cast<uint64_t>(f.kind));
    functions.push_back(static_cast<uint64_t>(f.counted));
  }
  return to.dump() + "\n";
}

Result<GmonAbout> decode_gmon_about(std::string_view text) {
  const std::string where = "what pkprof says in it: ";
  try {
    return from_json(parse_bounded<MalformedAbout>(text, {.nesting = max_nesting}));
  } catch (const MalformedAbout& e) {
    return fail(where + e.what);
  } catch (const nlohmann::json::exception&) {
    return fail(where + "damaged");  // the library's own sentences quote the text
  }
}

}  // namespace pkprof
