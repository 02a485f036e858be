// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace pkprof::test {

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "pkprof-symbol-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::operator/(std::string_view name) const {
  return path_ + "/" + std::string(name);
}

std::string TempDir::write(std::string_view name, std::string_view text) const {
  const std::string path = *this / name;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

FuzzPlan::FuzzPlan(int seconds) {
  const char* wanted = ::getenv("SYMBOL_FUZZ_SECONDS");
  const char* seed = ::getenv("SYMBOL_FUZZ_SEED");
  random.seed(seed == nullptr ? 1U : static_cast<unsigned>(std::stoul(seed)));
  end = std::chrono::steady_clock::now() +
        std::chrono::seconds(wanted == nullptr ? seconds : std::stoi(wanted));
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string sh(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen");
  std::array<char, 4096> block;
  while (const size_t got = ::fread(block.data(), 1, block.size(), pipe)) {
    out.append(block.data(), got);
  }
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return out;
}

std::string program_source() {
  return R"(
#include <cstdio>
#include <unistd.h>
#include <string>
#include <vector>
namespace outer { namespace {
__attribute__((noinline)) int hidden(int n) { asm volatile(""); return n + 1; }
}
struct Thing {
  Thing(int n) : n_(n) { asm volatile(""); }
  virtual ~Thing() { asm volatile(""); }
  __attribute__((noinline)) int get() const { asm volatile(""); return n_; }
  int n_;
};
template <typename T> __attribute__((noinline)) T twice(T v) { asm volatile(""); return v + v; }
}
extern "C" __attribute__((noinline)) int plain_c(int n) { asm volatile(""); return n * 3; }
extern "C" __attribute__((noinline, weak, alias("plain_c"))) int __plain_alias(int);
asm(".text\n.globl bare_label\nbare_label:\n nop\n nop\n ret\n"
    ".type sized_asm,@function\nsized_asm:\n nop\ninner_label:\n nop\n ret\n.size sized_asm,.-sized_asm\n");
int main() {
  outer::Thing thing(4);
  std::vector<std::string> words{"a", "b"};
  int sum = outer::hidden(1) + thing.get() + outer::twice(5) + plain_c(2) + words.size();
  std::printf("%lx %d\n", reinterpret_cast<unsigned long>(&main), sum);
  std::fflush(stdout);
  char c;
  while (read(0, &c, 1) > 0) {}
}
)";
}

std::string compile(const TempDir& dir, const std::string& name, const std::string& flags) {
  const std::string source = dir.write(name + ".cpp", program_source());
  const std::string binary = dir / name;
  sh(std::string(TEST_CXX) + " -O1 -g -w " + source + " -o " + binary + " " + flags);
  return binary;
}

Child::Child(const std::vector<std::string>& argv) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("pipe");
  }
  std::vector<char*> args;
  args.reserve(argv.size() + 1);
  for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(in[0], 0);
    ::dup2(out[1], 1);
    ::execvp(args[0], args.data());
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  in_ = Fd(in[1]);
  out_ = Fd(out[0]);
}

Child::~Child() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  finish();
}

void Child::finish() {
  in_.reset();
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::string Child::line() {
  std::string text;
  char c = 0;
  while (::read(out_.get(), &c, 1) == 1 && c != '\n') text += c;
  return text;
}

std::map<uint64_t, NmSymbol> nm_functions(const std::string& file, const std::string& options) {
  std::map<uint64_t, NmSymbol> functions;
  // POSIX format: NAME TYPE VALUE [SIZE]
  std::istringstream lines(sh("nm -P " + options + " " + file));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::string type;
    std::string value;
    std::string size;
    words >> name >> type >> value >> size;
    if (type.empty() || std::string_view("tTwWi").find(type) == std::string_view::npos) continue;
    if (value.empty()) continue;
    NmSymbol& symbol = functions[std::stoull(value, nullptr, 16)];
    symbol.names.insert(name.substr(0, name.find('@')));
    if (!size.empty())
      symbol.size = std::max<uint64_t>(symbol.size, std::stoull(size, nullptr, 16));
  }
  return functions;
}

uint64_t nm_address(const std::string& file, const std::string& name) {
  for (const auto& [address, symbol] : nm_functions(file)) {
    if (symbol.names.contains(name)) return address;
  }
  ADD_FAILURE() << name << " is not in " << file;
  return 0;
}

}  // namespace pkprof::test
