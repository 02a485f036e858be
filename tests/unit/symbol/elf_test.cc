// SPDX-License-Identifier: Apache-2.0
// Running programs of every layout, each of their functions asked for by its address in memory,
// and the answer compared with nm.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fixture.h"
#include "symbol/elf/demangle.h"
#include "symbol/elf/elf_file.h"
#include "symbol/symbolizer.h"

namespace pkprof {
namespace {

using test::Child;
using test::TempDir;

std::set<std::string> names_covering(const std::map<uint64_t, test::NmSymbol>& truth, uint64_t at) {
  std::set<std::string> names;
  for (const auto& [start, symbol] : truth) {
    if (start > at) break;
    if (at - start >= symbol.size) continue;
    for (const std::string& name : symbol.names) names.insert(demangle(name));
  }
  return names;
}

// Every function by its first and last byte. A label inside a function that states its size is
// named by the function.
void expect_all_named(UserSymbols& symbols, const std::map<uint64_t, test::NmSymbol>& truth,
                      uint64_t bias) {
  size_t wrong = 0;
  size_t checked = 0;
  for (const auto& [start, symbol] : truth) {
    std::set<std::string> names;
    for (const std::string& name : symbol.names) names.insert(demangle(name));
    if (symbol.size == 0 && !names_covering(truth, start).empty()) continue;
    // Weak, hence W to nm, but data.
    if (symbol.names.contains("data_start") || symbol.names.contains("_.stapsdt.base")) continue;
    if (symbol.names.contains("_etext") || symbol.names.contains("etext")) continue;
    const std::string first = symbols.find(1, start + bias).function;
    if (!names.contains(first) && ++wrong < 10) {
      ADD_FAILURE() << std::hex << start << " is " << *names.begin() << ", not " << first;
    }
    ++checked;
    if (symbol.size == 0) continue;
    const std::string last = symbols.find(1, start + symbol.size - 1 + bias).function;
    if (!names_covering(truth, start + symbol.size - 1).contains(last) && ++wrong < 10) {
      ADD_FAILURE() << std::hex << start << ": the end of " << *names.begin() << " is " << last;
    }
  }
  EXPECT_GE(checked, 10U);
  EXPECT_EQ(wrong, 0U);
  for (const std::string& warning : symbols.warnings()) ADD_FAILURE() << warning;
}

uint64_t run_and_read(Child& child, UserSymbols& symbols, const std::string& truth_file,
                      const std::string& main_name = "main") {
  const uint64_t address = std::stoull(child.line(), nullptr, 16);
  const auto read = symbols.read_proc(1, child.pid());
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  return address - test::nm_address(truth_file, main_name);
}

class Layouts : public ::testing::TestWithParam<const char*> {};

TEST_P(Layouts, EveryFunctionHasItsName) {
  TempDir dir;
  const std::string binary = test::compile(dir, "program", GetParam());
  Child child({binary});
  UserSymbols symbols;
  const uint64_t bias = run_and_read(child, symbols, binary);
  expect_all_named(symbols, test::nm_functions(binary), bias);
  EXPECT_EQ(symbols.find(1, bias + test::nm_address(binary, "plain_c")).function, "plain_c");
  EXPECT_EQ(symbols.find(1, bias + test::nm_address(binary, "inner_label")).function, "sized_asm");
}

// Addresses and names as nm has them, of all the code there is.
TEST_P(Layouts, CodeIsAsNmHasIt) {
  TempDir dir;
  const std::string binary = test::compile(dir, "program", GetParam());
  Child child({binary});
  UserSymbols symbols({.names = true});
  const uint64_t bias = run_and_read(child, symbols, binary);
  const uint64_t plain = test::nm_address(binary, "plain_c");
  const UserFrame frame = symbols.find(1, bias + plain + 1);
  ASSERT_TRUE(frame.vaddr);
  EXPECT_EQ(*frame.vaddr, plain + 1);
  const auto code = symbols.code_of(1, frame.map.file);
  ASSERT_TRUE(code);
  EXPECT_EQ(code->build_id, frame.build_id);
  std::map<std::string, FileCode::Function> names;
  for (const FileCode::Function& f : code->names) {
    EXPECT_LT(f.start, f.end) << f.name;
    names[f.name] = f;
  }
  const auto truth = test::nm_functions(binary);
  for (const char* name :
       {"main", "plain_c", "__plain_alias", "sized_asm", "inner_label", "_ZNK5outer5Thing3getEv"}) {
    const uint64_t start = test::nm_address(binary, name);
    EXPECT_EQ(names[name].start, start) << name;
    if (const uint64_t size = truth.at(start).size; size != 0) {
      EXPECT_EQ(names[name].end, start + size) << name;
    }
    EXPECT_GE(start, code->start);
    EXPECT_LT(start, code->end);
  }
  for (size_t i = 1; i < code->functions.size(); ++i)
    EXPECT_GE(code->functions[i].start, code->functions[i - 1].end);
  EXPECT_FALSE(symbols.code_of(1, "/no/such/file"));
  EXPECT_FALSE(symbols.code_of(2, frame.map.file));
}

INSTANTIATE_TEST_SUITE_P(Elf, Layouts,
                         ::testing::Values("-fPIE -pie", "-fno-pie -no-pie",
                                           "-static -fno-pie -no-pie", "-static-pie",
                                           "-fPIE -pie -Wl,-z,noseparate-code",
                                           "-fPIE -pie -Wl,-z,max-page-size=65536",
                                           "-fno-pie -no-pie -Wl,-Ttext-segment=0x10000000",
                                           "-fno-pie -no-pie -Wl,-z,noseparate-code -Wl,-z,norelro",
                                           "-fPIE -pie -Wl,--section-start=.text=0x123450"));

TEST(Elf, SharedLibraries) {
  TempDir dir;
  const std::string library =
      test::compile(dir, "libthing.so", "-shared -fPIC -Dmain=library_main -Wl,-z,separate-code");
  const std::string source =
      dir.write("main.cpp", "int library_main(); int main() { return library_main(); }");
  test::sh(std::string(TEST_CXX) + " " + source + " " + library + " -o " + (dir / "main"));
  Child child({dir / "main"});
  UserSymbols symbols;
  const uint64_t bias = run_and_read(child, symbols, library, "_Z12library_mainv");
  expect_all_named(symbols, test::nm_functions(library), bias);
}

TEST(Elf, StrippedHasDynamicSymbols) {
  TempDir dir;
  const std::string binary = test::compile(dir, "program", "-fPIE -pie -rdynamic");
  const std::string whole = dir.write("whole", test::read_file(binary));
  test::sh("strip " + binary);
  Child child({binary});
  UserSymbols symbols({.debug_dirs = {}});
  const uint64_t bias = run_and_read(child, symbols, whole);
  const auto dynamic = test::nm_functions(binary, "-D");
  const auto address = test::nm_address(whole, "plain_c");
  ASSERT_TRUE(dynamic.contains(address));
  EXPECT_EQ(symbols.find(1, bias + address).function, "plain_c");
  EXPECT_EQ(symbols.find(1, bias + test::nm_address(whole, "main")).function, "main");
}

TEST(Elf, ProcedureLinkageTable) {
  TempDir dir;
  for (const char* flags :
       {"-fcf-protection=full -Wl,-z,now", "-fcf-protection=none -Wl,-z,lazy"}) {
    const std::string binary = test::compile(dir, "program", flags);
    Child child({binary});
    UserSymbols symbols;
    const uint64_t bias = run_and_read(child, symbols, binary);
    size_t checked = 0;
    std::istringstream lines(test::sh("objdump -d " + binary + " | grep '@plt>:$'"));
    for (std::string line; std::getline(lines, line);) {
      const uint64_t address = std::stoull(line, nullptr, 16);
      std::string name = line.substr(line.find('<') + 1);
      name.resize(name.rfind("@plt"));
      const std::string found = symbols.find(1, bias + address).function;
      EXPECT_TRUE(found == name + "@plt" || found == demangle(name + "@plt") ||
                  found == demangle(name) + "@plt")
          << line << " is " << found;
      ++checked;
    }
    EXPECT_GE(checked, 3U);
  }
}

class DebugFiles : public ::testing::Test {
 protected:
  // `program`, stripped; `whole`, as it was; `debug`, what was stripped off.
  void build(const std::string& flags) {
    binary_ = test::compile(dir_, "program", "-fPIE -pie " + flags);
    whole_ = dir_.write("whole", test::read_file(binary_));
    debug_ = dir_ / "program.debug";
    test::sh("objcopy --only-keep-debug " + binary_ + " " + debug_);
    test::sh("strip " + binary_);
  }
  void move_debug(const std::string& to) {
    std::filesystem::create_directories(std::filesystem::path(to).parent_path());
    std::filesystem::rename(debug_, to);
  }
  std::string build_id() const {
    const auto elf = ElfFile::open(Fd(::open(whole_.c_str(), O_RDONLY)), whole_, {});
    return (*elf)->build_id();
  }
  void expect_names(UserSymbolsOptions options) {
    Child child({binary_});
    UserSymbols symbols(std::move(options));
    const uint64_t bias = run_and_read(child, symbols, whole_);
    expect_all_named(symbols, test::nm_functions(whole_), bias);
  }
  void expect_no_names(UserSymbolsOptions options) {
    Child child({binary_});
    UserSymbols symbols(std::move(options));
    const uint64_t bias = run_and_read(child, symbols, whole_);
    // By its place, and not by what another file calls it.
    const uint64_t main = test::nm_address(whole_, "main");
    char place[32];
    std::snprintf(place, sizeof place, "+0x%llx", static_cast<unsigned long long>(main));
    EXPECT_EQ(symbols.find(1, bias + main).function,
              std::filesystem::path(binary_).filename().string() + place);
  }
  TempDir dir_;
  std::string binary_, whole_, debug_;
};

TEST_F(DebugFiles, ByBuildId) {
  build("-Wl,--build-id=sha1");
  const std::string id = build_id();
  ASSERT_EQ(id.size(), 40U);
  EXPECT_NE(test::sh("readelf -n " + whole_).find(id), std::string::npos);
  expect_no_names({.debug_dirs = {dir_ / "dbg"}});
  move_debug(dir_ / ("dbg/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug"));
  expect_names({.debug_dirs = {dir_ / "dbg"}});
}

TEST_F(DebugFiles, OfAnotherBuildIsNotBelieved) {
  build("-Wl,--build-id=sha1");
  const std::string id = build_id();
  const std::string other = test::compile(dir_, "other", "-Wl,--build-id=sha1 -O2");
  debug_ = other;
  move_debug(dir_ / ("dbg/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug"));
  expect_no_names({.debug_dirs = {dir_ / "dbg"}});
}

TEST_F(DebugFiles, ByDebuglink) {
  build("-Wl,--build-id=none");
  test::sh("cd " + dir_.path() + " && objcopy --add-gnu-debuglink=program.debug program");
  expect_names({.debug_dirs = {}});
  move_debug(dir_ / ".debug/program.debug");
  debug_ = dir_ / ".debug/program.debug";
  expect_names({.debug_dirs = {}});
  move_debug(dir_ / ("dbg" + dir_.path() + "/program.debug"));
  expect_names({.debug_dirs = {dir_ / "dbg"}});
}

TEST_F(DebugFiles, DebuglinkIsVerified) {
  build("-Wl,--build-id=none");
  test::sh("cd " + dir_.path() + " && objcopy --add-gnu-debuglink=program.debug program");
  std::string changed = test::read_file(debug_);
  changed.back() = static_cast<char>(changed.back() + 1);
  dir_.write("program.debug", changed);
  expect_no_names({.debug_dirs = {}});
}

TEST_F(DebugFiles, LinksInACircleEnd) {
  build("-Wl,--build-id=none");
  const std::string cd = "cd " + dir_.path() + " && ";
  test::sh(cd +
           "cp program a && cp program b && objcopy --add-gnu-debuglink=b a && "
           "objcopy --add-gnu-debuglink=a b && objcopy --add-gnu-debuglink=a a 2>/dev/null || "
           "true");
  const auto elf = ElfFile::open(Fd(::open((dir_ / "a").c_str(), O_RDONLY)), dir_ / "a",
                                 {.debug = {{*RootDir::open("/")}, {}}});
  ASSERT_TRUE(elf);
}

TEST(Elf, Lines) {
  TempDir dir;
  for (const char* flags : {"-gdwarf-5", "-gdwarf-4", "-gdwarf-5 -gz"}) {
    const std::string binary = test::compile(dir, "program", flags);
    Child child({binary});
    UserSymbols symbols({.lines = true});
    const uint64_t bias = run_and_read(child, symbols, binary);
    for (const char* name : {"main", "plain_c", "_ZNK5outer5Thing3getEv"}) {
      const uint64_t address = test::nm_address(binary, name);
      char command[64];
      std::snprintf(command, sizeof command, " %llx", static_cast<unsigned long long>(address));
      std::string truth = test::sh("addr2line -e " + binary + command);
      truth.resize(truth.find_first_of("\n "));
      const UserFrame frame = symbols.find(1, address + bias);
      EXPECT_EQ(frame.source_file + ":" + std::to_string(frame.line), truth) << flags;
    }
  }
}

// At each address what addr2line says. In C++, and so that calls lie in blocks and in namespaces.
TEST(Elf, InlinedCalls) {
  TempDir dir;
  std::ofstream(dir / "inlined.cc") << R"(
    volatile unsigned long sink;
    namespace deep {
    struct Thing {
      unsigned long n;
      [[gnu::always_inline]] void innermost() const { for (auto i = n; i; --i) sink += i * i; }
    };
    [[gnu::always_inline]] inline void middle(unsigned long n) {
      if (n > 3) { const Thing thing{n}; thing.innermost(); }
      sink /= 3;
    }
    [[gnu::noinline]] void outer(unsigned long n) { middle(n); sink ^= n; middle(n + 1); }
    }
    int main() { deep::outer(5); })";
  for (const char* flags : {"-gdwarf-5", "-gdwarf-4", "-gdwarf-5 -gz"}) {
    const std::string binary = dir / "inlined";
    test::sh("g++ -O2 " + std::string(flags) + " -o " + binary + " " + (dir / "inlined.cc"));
    const auto elf = ElfFile::open(Fd(::open(binary.c_str(), O_RDONLY)), binary, {.lines = true});
    ASSERT_TRUE(elf);
    const uint64_t start = test::nm_address(binary, "_ZN4deep5outerEm");
    size_t deepest = 0;
    for (uint64_t address = start; (*elf)->function_at(address) == "deep::outer(unsigned long)";
         ++address) {
      char command[64];
      std::snprintf(command, sizeof command, " %llx", static_cast<unsigned long long>(address));
      std::istringstream truth(test::sh("addr2line -Cif -e " + binary + command));
      const std::vector<InlinedCall> calls = (*elf)->inlined_at(address);
      deepest = std::max(deepest, calls.size());
      for (const InlinedCall& call : calls) {
        std::string function;
        std::string line;
        std::getline(truth, function);
        std::getline(truth, line);
        EXPECT_EQ(call.function, function) << command;
        EXPECT_EQ(call.at.file + ":" + std::to_string(call.at.line), line.substr(0, line.find(' ')))
            << command;
      }
      std::string rest;
      EXPECT_TRUE(calls.empty() || !std::getline(truth, rest)) << rest << command;
    }
    EXPECT_EQ(deepest, 3) << flags;
  }
}

TEST(Elf, BuildIdIsInEveryFrame) {
  TempDir dir;
  const std::string binary = test::compile(dir, "program", "-Wl,--build-id=0x0123456789abcdef");
  Child child({binary});
  UserSymbols symbols;
  const uint64_t bias = run_and_read(child, symbols, binary);
  const UserFrame frame = symbols.find(1, bias + test::nm_address(binary, "main"));
  EXPECT_EQ(frame.build_id, "0123456789abcdef");
  EXPECT_EQ(frame.map.file, binary);
  EXPECT_LE(frame.map.start, bias + test::nm_address(binary, "main"));
}

TEST(Elf, Vdso) {
  UserSymbols symbols;
  ASSERT_TRUE(symbols.read_proc(1, static_cast<uint32_t>(::getpid())));
  std::istringstream lines(test::read_file("/proc/self/maps"));
  size_t named = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.ends_with("[vdso]")) continue;
    const uint64_t base = std::stoull(line, nullptr, 16);
    for (uint64_t at = base; at < base + 0x2000; at += 16) {
      const UserFrame frame = symbols.find(1, at);
      if (frame.function.find("clock_gettime") != std::string::npos) ++named;
    }
  }
  EXPECT_GT(named, 0U);
  EXPECT_TRUE(symbols.code_of(1, "[vdso]"));
}

TEST(Elf, FindIsQuick) {
  UserSymbols symbols;
  ASSERT_TRUE(symbols.read_proc(1, static_cast<uint32_t>(::getpid())));
  const auto address = reinterpret_cast<uint64_t>(&::getpid);
  ASSERT_EQ(symbols.find(1, address).function, "getpid");
  constexpr int rounds = 200'000;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < rounds; ++i) (void)symbols.find(1, address + static_cast<uint64_t>(i % 4));
  const auto spent = std::chrono::steady_clock::now() - start;
  RecordProperty("find_ns", static_cast<int>(spent.count() / rounds));
  EXPECT_LT(spent / rounds, std::chrono::microseconds(10)) << "ten times what it may take";
}

}  // namespace
}  // namespace pkprof
