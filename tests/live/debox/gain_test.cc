// SPDX-License-Identifier: Apache-2.0
// A process that executes a program with privileges that its user has not: its records end there,
// whenever they are asked for.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <thread>

#include "debox/strangers.h"

namespace pkprof::live {
namespace {

using Clock = std::chrono::steady_clock;

std::string gained_by(const testing::TestParamInfo<Gain>& by) {
  static constexpr std::array names{"User", "Group", "Capability"};
  return names[static_cast<size_t>(by.param)];
}

class DeboxGainTest : public DeboxStrangersTest, public testing::WithParamInterface<Gain> {};

// A process connects and executes a privileged program; another that has its connection asks for
// what that does.
TEST_P(DeboxGainTest, AConnectionIsNoneOfAProgramThatGains) {
  serve();
  const std::string sleep = copy("sleep");
  ASSERT_TRUE(make_privileged(sleep, GetParam())) << std::strerror(errno);
  const int status = run_as(nobody, [&] {
    const Fd socket = new_socket();
    int ready[2];
    if (pipe2(ready, O_CLOEXEC)) return 10;
    const pid_t victim = fork();
    if (victim == 0) {
      if (!connect_to(socket, name_)) execl(sleep.c_str(), "sleep", "60", nullptr);
      _exit(1);
    }
    close(ready[1]);
    char none = 0;
    if (read(ready[0], &none, 1) != 0) return 11;  // closed by its execve()
    const auto got = ask(socket, ask_for_all(victim, 16));
    kill(victim, SIGKILL);
    if (!got) return 12;
    return got->memory.valid() ? 13 : got->answer.error;
  });
  EXPECT_EQ(status, ESRCH);
}

// What came of asking for the records of a process that executes another program meanwhile.
enum class Handed { nothing, memory, records };

// The process spins for so long before that, from when it is asked for, without a system call; what
// ended in its records is the other program's. Executed by its first thread or another.
Handed race(const std::string& name, const std::string& program, std::chrono::microseconds spin,
            bool by_thread) {
  const Fd socket = new_socket();
  const OwnPages own;
  void* shared = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* step = new (shared) std::atomic<int>(0);
  const pid_t victim = fork();
  if (victim == 0) {
    std::atomic<bool> started = !by_thread;
    const auto act = [&] {
      while (!started) continue;
      step->store(1);
      while (step->load() != 2) continue;
      const auto until = Clock::now() + spin;
      while (Clock::now() < until) continue;
      execl(program.c_str(), program.c_str(), nullptr);
      _exit(1);
    };
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    if (connect_to(socket, name)) _exit(1);
    if (!by_thread) act();
    std::thread thread(act);
    started = true;  // to start it took a system call after the one by which it began
    thread.join();
  }
  while (step->load() != 1) poll(nullptr, 0, 0);
  step->store(2);
  const debox_wire_request request = ask_for_all(victim, 256);
  const auto got = ask(socket, request);
  wait_for(victim);
  munmap(shared, sizeof(std::atomic<int>));
  if (!got || !got->memory.valid()) return Handed::nothing;
  return says_something(got->memory, request, got->answer.stride, own) ? Handed::records
                                                                       : Handed::memory;
}

// Served before it executes it: up to there, and what the end of execve() itself does is the new
// program's.
TEST_P(DeboxGainTest, RecordsEndBeforeAProgramThatGains) {
  serve();
  const std::string program = copy("true");
  ASSERT_TRUE(make_privileged(program, GetParam())) << std::strerror(errno);
  EXPECT_EQ(served(nobody), 0);
  const int status = run_as(nobody, [&] {
    for (int i = 0; i < 6; ++i)
      if (const Handed handed = race(name_, program, std::chrono::milliseconds(200), i & 1);
          handed != Handed::memory)
        return 10 + static_cast<int>(handed);
    return 0;
  });
  EXPECT_EQ(status, 0);
}

// Whenever it does: before it is looked at, while it is, after that. A thousand times in all, each
// of which waits for RCU.
TEST_P(DeboxGainTest, NoRaceWithExecHandsOverRecords) {
  serve();
  const std::string program = copy("true");
  ASSERT_TRUE(make_privileged(program, GetParam())) << std::strerror(errno);
  EXPECT_EQ(served(nobody), 0);
  constexpr int most_tries = 334;  // of each way to gain
  const auto end = Clock::now() + std::chrono::seconds(20);
  const int status = run_as(nobody, [&] {
    std::minstd_rand random(1);
    std::uniform_int_distribution<int> us(0, in_guest() ? 200'000 : 30'000);
    int served = 0;
    int tries = 0;
    for (; tries < most_tries && Clock::now() < end; ++tries) {
      const Handed handed = race(name_, program, std::chrono::microseconds(us(random)), tries & 1);
      if (handed == Handed::records) return 1;
      served += handed == Handed::memory;
    }
    std::printf("%d tries, %d of them served\n", tries, served);
    return std::fflush(stdout);
  });
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(By, DeboxGainTest,
                         testing::Values(Gain::user, Gain::group, Gain::capability), gained_by);

}  // namespace
}  // namespace pkprof::live
