// SPDX-License-Identifier: Apache-2.0
// A small fuzzer for builds without libFuzzer, so that fuzzing is part of the ordinary test run:
// replays a corpus, then mutates for some seconds. It knows nothing of coverage; it finds what
// truncation, bit flips, splices and edge values find. An input that crashes, hangs or eats memory
// is written to crash.bin for replay.
//
//   NAME_fuzz [--seconds N] [--seed N] [--write-seeds DIR] [FILE | DIR]...
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz.h"

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr unsigned hang_seconds = 20;
constexpr size_t max_input = size_t{1} << 20;
constexpr rlim_t max_memory = rlim_t{3} << 30;

const std::string* current = nullptr;

// Async-signal-safe: only system calls.
void on_crash(int signal) {
  const int fd = open("crash.bin", O_CREAT | O_WRONLY | O_TRUNC, 0644);
  if (fd >= 0 && current != nullptr) (void)!write(fd, current->data(), current->size());
  const char note[] = "fuzz: this input is now in crash.bin\n";
  (void)!write(STDERR_FILENO, note, sizeof note - 1);
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void run(const std::string& input) {
  current = &input;
  alarm(hang_seconds);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  alarm(0);
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string mutate(const std::vector<std::string>& corpus) {
    std::string input = corpus[random_() % corpus.size()];
    for (size_t n = 1 + random_() % 8; n > 0; --n) step(input, corpus);
    if (input.size() > max_input) input.resize(max_input);
    return input;
  }

 private:
  size_t position(const std::string& in) { return in.empty() ? 0 : random_() % in.size(); }

  void step(std::string& input, const std::vector<std::string>& corpus) {
    const size_t at = position(input);
    switch (random_() % 7) {
      case 0:
        if (!input.empty()) input[at] = static_cast<char>(input[at] ^ 1 << random_() % 8);
        break;
      case 1:
        if (!input.empty()) input[at] = static_cast<char>(random_());
        break;
      case 2:
        input.insert(at, 1 + random_() % 4, static_cast<char>(random_()));
        break;
      case 3:
        input.erase(at, 1 + random_() % 16);
        break;
      case 4:
        if (random_() % 8 == 0) input.resize(at);
        break;
      case 5:
        edge_value(input, at);
        break;
      default: {
        const std::string& other = corpus[random_() % corpus.size()];
        const std::string piece = other.substr(position(other), random_() % 64);
        if (random_() % 2 == 0)
          input.insert(at, piece);
        else
          input.replace(at, piece.size(), piece);
      }
    }
  }

  // Numbers that parsers trip over: little-endian words and varints.
  void edge_value(std::string& input, size_t at) {
    constexpr uint64_t edges[] = {0,          1,          0x7f,       0x80,
                                  0xffff,     0x7fffffff, 0x80000000, 0xffffffff,
                                  1ULL << 62, INT64_MAX,  UINT64_MAX};
    uint64_t value = edges[random_() % std::size(edges)];
    std::string bytes;
    if (random_() % 2 == 0) {
      bytes.assign(reinterpret_cast<const char*>(&value), random_() % 2 == 0 ? 4 : 8);
    } else {
      for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
      bytes += static_cast<char>(value);
    }
    input.replace(at, random_() % 2 == 0 ? bytes.size() : 1, bytes);
  }

  std::mt19937_64 random_;
};

void guard() {
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM})
    ::signal(signal, on_crash);
#ifndef __SANITIZE_ADDRESS__  // which reserves terabytes of address space
  const rlimit limit{.rlim_cur = max_memory, .rlim_max = max_memory};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

int write_seeds(const std::string& directory) {
  fs::create_directories(directory);
  int n = 0;
  for (const std::string& seed : fuzz_seeds())
    std::ofstream(fs::path(directory) / ("seed-" + std::to_string(n++)), std::ios::binary) << seed;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 5;
  uint64_t seed = std::random_device{}();
  std::vector<std::string> corpus = fuzz_seeds();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--seconds" && has_value) {
      seconds = std::atof(argv[++i]);
    } else if (argument == "--seed" && has_value) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--write-seeds" && has_value) {
      return write_seeds(argv[++i]);
    } else if (fs::is_directory(argument)) {
      for (const auto& entry : fs::directory_iterator(argument)) corpus.push_back(read(entry));
    } else if (fs::is_regular_file(argument)) {
      corpus.push_back(read(argument));
    } else {
      std::fprintf(stderr, "fuzz: %s: no such option, file or directory\n", argument.c_str());
      return 2;
    }
  }
  if (corpus.empty()) corpus.emplace_back();
  guard();
  for (const std::string& input : corpus) run(input);
  Mutator mutator(seed);
  uint64_t inputs = 0;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    const std::string input = mutator.mutate(corpus);
    run(input);
    current = nullptr;
    ++inputs;
  }
  std::printf("fuzz: %zu of the corpus replayed, %llu mutations tried, seed %llu\n", corpus.size(),
              static_cast<unsigned long long>(inputs), static_cast<unsigned long long>(seed));
  return 0;
}
