// SPDX-License-Identifier: Apache-2.0
// A profile as files for GNU gprof: those of the pkprof paper's Figure 4.7, and for each the symbol
// file that gprof needs to read it.
//
//   gmon.out.137k.cat    what the kernel did for process 137
//   gmon.out.137u.cat    its own code
//   gmon.out.137.cat     both in one, with the calls between them: the seamless profile
//   gmon.sym.137.cat     the names for these three
//   gmon.out.-k.kernel   what the kernel did for itself; gmon.sym.-k.kernel
//   gmon.out.-k.other    and for processes that were not selected; gmon.sym.-k.other
//   gmon.out.-k.unclaimed   and for nobody who showed; gmon.sym.-k.unclaimed
//   gmon.out.remote.192.0.2.7   what servers did for a client elsewhere, where they are charged so
//   gmon.out.all         all of it; gmon.sym.all, which will do for all of the others, too
//
// gprof knows code by address, and reads names from one file: so all functions of an export get
// addresses of their own, whatever file they were from. They are those of no program (layout in
// gmon/space.h).
//
// See gmon.h.
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "export/format.h"
#include "export/gmon/parts.h"
#include "export/gmon/space.h"
#include "model/file.h"
#include "model/gmon.h"
#include "model/gmon_about.h"
#include "report/clean.h"
#include "report/format.h"
#include "symbol/symbol_file.h"

namespace pkprof {

namespace {

constexpr mode_t directory_mode = 0777;  // what the umask leaves of it

// Names of processes go into names of files: letters, digits and what is harmless of the rest. The
// kernel's are 15 bytes long, those in a file that was imported as long as a line.
std::string for_file_name(std::string_view name) {
  constexpr std::string_view harmless = "._+@,=-";
  constexpr size_t longest = 64;
  std::string out;
  for (const char c : name.substr(0, longest)) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    out += letter || digit || harmless.contains(c) ? c : '_';
  }
  return out;
}

class GmonExport {
 public:
  GmonExport(const Profile& profile, const ExportOptions& options)
      : profile_(profile),
        directory_(options.output),
        parts_(gmon_parts(profile, options.pids)),
        space_(parts_) {}

  Result<std::string> run() {
    if (parts_.empty()) return fail("there is nothing in this profile: the CPUs were idle");
    if (!directory_.empty()) {
      if (auto made = make_directory(directory_, directory_mode); !made)
        return std::unexpected(made.error());
    }
    head();
    // Processes first, the one with the most time first.
    std::vector<uint32_t> order(parts_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(), [&](uint32_t part) {
      const GmonPart& p = parts_[part];
      return std::pair(p.is_somebody(), p.user_ns() + p.kernel_ns());
    });
    for (const uint32_t part : order) {
      if (auto done = parts_[part].is_somebody() ? process(part) : special(part); !done)
        return std::unexpected(done.error());
    }
    if (auto done = all(); !done) return std::unexpected(done.error());
    foot();
    return std::move(text_);
  }

 private:
  Result<> process(uint32_t part);
  Result<> special(uint32_t part);
  Result<> all();
  void head();
  void foot();
  [[nodiscard]] GmonAbout about(const GmonSpace::Parts& which) const;
  Result<> write(const std::string& name, std::string_view bytes) const;
  Result<> write_symbols(const std::string& suffix, const GmonSpace::Parts& which) const;
  Result<> write_records(const std::string& suffix, const GmonSpace::Parts& which,
                         GmonSide side) const;
  void row(uint64_t user_ns, uint64_t kernel_ns, const std::string& files);

  [[nodiscard]] std::string time(uint64_t ns) const {
    return pad_left(ns == 0 ? "-" : seconds(ns, digits_), 10);
  }

  const Profile& profile_;
  const std::string directory_;
  const std::vector<GmonPart> parts_;
  const GmonSpace space_;
  const Busy busy_ = busy_time(profile_, {});
  const int digits_ = digits_of_seconds(profile_.cpu_ns());
  std::set<std::string> used_;  // ends of file names
  std::string text_;
};

Result<> GmonExport::write(const std::string& name, std::string_view bytes) const {
  return write_file(directory_.empty() ? name : directory_ + "/" + name, bytes);
}

Result<> GmonExport::write_symbols(const std::string& suffix, const GmonSpace::Parts& which) const {
  SymbolFile file = space_.symbols(which);
  file.about = encode_gmon_about(about(which));
  const Result<std::string> bytes = encode_symbol_file(file);
  if (!bytes) return std::unexpected(bytes.error());
  return write("gmon.sym." + suffix, *bytes);
}

GmonAbout GmonExport::about(const GmonSpace::Parts& which) const {
  const Meta& meta = profile_.meta;
  GmonAbout about{.kernel = meta.kernel,
                  .host = meta.host,
                  .cpus = meta.cpus,
                  .start_unix_ns = meta.start_unix_ns,
                  .duration_ns = meta.duration_ns,
                  .unwatched_ns = meta.unwatched_ns,
                  .idle_ns = busy_.idle_ns,
                  .steal_ns = busy_.steal_ns,
                  .unsampled_ns = busy_.unsampled_ns};
  for (const uint32_t part : which) {
    about.parts.push_back({.kind = parts_[part].kind});
    if (parts_[part].kind != LabelKind::process) continue;
    const Label& label = profile_.labels()[parts_[part].label];
    about.parts.back().pid = label.pid;
    about.parts.back().comm = label.comm;
    about.parts.back().exe = label.exe;
  }
  std::map<std::string, int32_t> files;
  for (const auto& [part, function] : space_.order(which)) {
    const GmonFunction& f = parts_[part].functions[function];
    int32_t file = -1;
    if (!f.where.empty()) {
      file = files.try_emplace(f.where, static_cast<int32_t>(files.size())).first->second;
      if (static_cast<size_t>(file) == about.files.size()) about.files.push_back(f.where);
    }
    about.functions.push_back({.file = file, .kind = f.kind, .root = f.root, .counted = f.counted});
  }
  return about;
}

Result<> GmonExport::write_records(const std::string& suffix, const GmonSpace::Parts& which,
                                   GmonSide side) const {
  return write("gmon.out." + suffix, encode_gmon(space_.records(which, side)));
}

void GmonExport::head() {
  text_ += pad_left("user s", 10) + pad_left("kernel s", 10) + "  files\n";
}

void GmonExport::row(uint64_t user_ns, uint64_t kernel_ns, const std::string& files) {
  text_ += time(user_ns) + time(kernel_ns) + "  " + files + "\n";
}

// A pid that was used again, and ended processes of one name, would have one name.
Result<> GmonExport::process(uint32_t number) {
  const GmonPart& part = parts_[number];
  const Label& label = profile_.labels()[part.label];
  const std::string id = part.kind == LabelKind::remote ? "remote" : label.pid_text();
  const std::string comm =
      "." + (label.host.empty() ? "" : for_file_name(label.host) + ".") + for_file_name(label.comm);
  std::string name = comm;  // what stands behind the id
  for (int i = 2; !used_.insert(id + name).second; ++i) name = comm + "." + std::to_string(i);

  const auto both = {GmonSide::user, GmonSide::kernel};
  std::string sides;
  for (const GmonSide side : both) {
    const bool user = side == GmonSide::user;
    if ((user ? part.user_ns() : part.kernel_ns()) == 0) continue;
    std::string suffix = id;
    suffix += (user ? "u" : "k") + name;
    if (auto done = write_records(suffix, {number}, side); !done) return done;
    sides += (sides.empty() ? "" : " ") + ("gmon.out." + suffix);
  }
  const std::string suffix = id + name;
  if (auto done = write_records(suffix, {number}, GmonSide::both); !done) return done;
  row(part.user_ns(), part.kernel_ns(), "gmon.out." + suffix + " (" + sides + ")");
  return write_symbols(suffix, {number});
}

Result<> GmonExport::special(uint32_t number) {
  const GmonPart& part = parts_[number];
  if (part.kernel_ns() == 0) return {};
  const std::string suffix = "-k." + std::string(to_string(part.kind));
  if (auto done = write_records(suffix, {number}, GmonSide::kernel); !done) return done;
  row(0, part.kernel_ns(), "gmon.out." + suffix);
  return write_symbols(suffix, {number});
}

Result<> GmonExport::all() {
  GmonSpace::Parts every(parts_.size());
  std::iota(every.begin(), every.end(), 0);
  if (auto done = write_records("all", every, GmonSide::both); !done) return done;
  uint64_t user_ns = 0;
  uint64_t kernel_ns = 0;
  for (const GmonPart& part : parts_) {
    user_ns += part.user_ns();
    kernel_ns += part.kernel_ns();
  }
  row(user_ns, kernel_ns, "gmon.out.all");
  return write_symbols("all", every);
}

// Idle time is nobody's, steal is the host's, and unsampled time is nowhere: gprof is told of none.
void GmonExport::foot() {
  bool counted = true;
  for (const GmonPart& part : parts_) {
    for (const GmonFunction& function : part.functions)
      counted = counted && (function.root || function.counted);
  }
  text_ += "\n" + busy_line(busy_, {.unicode = false});
  if (!counted) {
    text_ += "\"calls\" and \"called\" in gprof's listings are ticks of " +
             duration_text(1'000'000'000 / space_.ticks_per_second()) +
             " spent in the call, where calls were not counted\n";
  }
  text_ += "To read gmon.out.X: gprof -b gmon.sym.X gmon.out.X\n";
}

}  // namespace

static Result<std::string> export_gmon(const Profile& profile, const ExportOptions& options) {
  return GmonExport(profile, options).run();
}

// options.output is a directory, made if it is not there; "" is the current one.
extern const ExportFormat gmon_format{"gmon", "gmon.out files with their symbols, for GNU gprof",
                                      export_gmon};

}  // namespace pkprof
