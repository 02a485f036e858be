// SPDX-License-Identifier: Apache-2.0
// See files.h.
#include "export/gmon/files.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "symbol/symbol_file.h"

namespace pkprof {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view records_prefix = "gmon.out.";
constexpr std::string_view symbols_prefix = "gmon.sym.";

std::string in_directory(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + "/" + name;
}

// Whether calls went to where functions of the program begin.
bool is_of(const GmonSource& source) {
  // A function counts its calls at its beginning, behind what makes its frame. In a large program
  // of another kind most addresses are somewhere in a function, too.
  constexpr uint64_t longest_beginning = 64;
  const auto has = [&](uint64_t address) {
    const auto it =
        std::ranges::upper_bound(source.functions, address, {}, &FileCode::Function::start);
    return it != source.functions.begin() && address < std::prev(it)->end &&
           address - std::prev(it)->start < longest_beginning;
  };
  const auto known = static_cast<size_t>(
      std::ranges::count_if(source.gmon.arcs, has, [](const GmonArc& arc) { return arc.to; }));
  return known != 0 && known >= source.gmon.arcs.size() - source.gmon.arcs.size() / 10;
}

}  // namespace

std::vector<std::string> find_gmon_files(const std::string& directory,
                                         const std::vector<uint32_t>& pids) {
  std::vector<std::string> found;
  std::error_code error;
  if (pids.empty()) {
    if (fs::exists(in_directory(directory, "gmon.sym.all"), error)) found = {"gmon.out.all"};
    return found;
  }
  std::vector<std::string> names;
  for (fs::directory_iterator it(directory.empty() ? "." : directory, error), end;
       !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  std::ranges::sort(names);
  for (const uint32_t pid : pids) {
    const std::string prefix = std::string(records_prefix) + std::to_string(pid) + ".";
    const size_t before = found.size();
    std::ranges::copy_if(names, std::back_inserter(found),
                         [&](const std::string& name) { return name.starts_with(prefix); });
    if (found.size() == before) return {};
  }
  return found;
}

Result<GmonSource> read_gmon_file(const std::string& path) {
  const size_t at = path.rfind(records_prefix);
  if (at == std::string::npos) return fail(path + ": not named as pkprof's, gmon.out.…");
  std::string symbols = path;
  symbols.replace(at, records_prefix.size(), symbols_prefix);
  Result<Gmon> gmon = read_gmon(path);
  if (!gmon) return std::unexpected(gmon.error());
  Result<NamedCode> code = read_symbol_file(symbols);
  if (!code) return std::unexpected(code.error());
  Result<GmonAbout> about = decode_gmon_about(code->about);
  if (!about) return std::unexpected(about.error().in("reading " + symbols));
  return GmonSource{.path = path,
                    .gmon = std::move(*gmon),
                    .functions = std::move(code->functions),
                    .about = std::move(*about)};
}

Result<GmonSource> read_program_gmon(const std::string& path, const GmonProgram& program) {
  Result<Gmon> gmon = read_gmon(path);
  if (!gmon) return std::unexpected(gmon.error());
  Result<NamedCode> code = read_symbol_file(program.exe);
  if (!code) return std::unexpected(code.error());
  GmonSource source{.path = path,
                    .gmon = std::move(*gmon),
                    .functions = std::move(code->functions),
                    .about = {},
                    .whose = std::to_string(program.pid),
                    .where = program.exe.substr(program.exe.rfind('/') + 1)};
  if (!is_of(source))
    return fail(path + ": its calls are not those of " + program.exe +
                ", or it was compiled again since");
  return source;
}

std::optional<GmonSource> find_program_gmon(const std::string& directory,
                                            const GmonProgram& program, uint64_t since_unix_ns) {
  if (program.exe.empty()) return {};
  for (const std::string& name :
       {"gmon.out." + std::to_string(program.pid), std::string("gmon.out")}) {
    const std::string path = in_directory(directory, name);
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (static_cast<uint64_t>(info.st_mtim.tv_sec) < since_unix_ns / 1'000'000'000) continue;
    if (Result<GmonSource> source = read_program_gmon(path, program)) return std::move(*source);
  }
  return {};
}

}  // namespace pkprof
