// SPDX-License-Identifier: Apache-2.0
// DeBox's server and those whom it must not trust: another user's programs, which ask for what is
// not theirs, without end, or for all there is.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "debox/client.h"
#include "debox/debox.h"
#include "debox/strangers.h"
#include "scenario.h"

namespace pkprof::live {
namespace {

// What makes no sense, what is another's, what is too much.
TEST_F(DeboxStrangersTest, LiesAreRefused) {
  serve();
  const pid_t victim = fork_as(another, [] { return pause(); });
  const int status = run_as(nobody, [&] {
    const auto refused = [&](debox_wire_request request, int error) {
      const Fd socket = new_socket();
      if (connect_to(socket, name_)) return false;
      const auto got = ask(socket, request);
      return error ? got && got->answer.error == error && !got->memory.valid() : !got;
    };
    const debox_wire_request good = ask_for_all(getpid(), 16);
    const auto changed = [&](auto change) {
      debox_wire_request request = good;
      change(request);
      return request;
    };
    if (!refused(changed([](auto& r) { r.version = 2; }), 0)) return 1;
    if (!refused(changed([](auto& r) { r.what = 99; }), ENOSYS)) return 2;
    if (!refused(changed([](auto& r) { r.mode = 2; }), EINVAL)) return 3;
    for (const uint32_t records : {0U, 3U, 8192U, 1U << 31})
      if (!refused(changed([&](auto& r) { r.records = records; }), EINVAL)) return 4;
    for (const uint32_t traces : {62U * DEBOX_TRACES + 1, UINT32_MAX})
      if (!refused(changed([&](auto& r) { r.traces = traces; }), EINVAL)) return 5;
    for (const pid_t tid : {0, 1, -1, static_cast<int>(victim), static_cast<int>(getppid())})
      if (!refused(ask_for_all(tid, 16), ESRCH)) return 6;
    const Fd socket = new_socket();
    if (connect_to(socket, name_)) return 7;
    std::array<char, sizeof good + 1> longer{};
    std::memcpy(longer.data(), &good, sizeof good);
    if (send(socket.get(), longer.data(), longer.size(), 0) < 0) return 8;
    return recv(socket.get(), longer.data(), longer.size(), 0) == 0 ? 0 : 9;
  });
  kill(victim, SIGKILL);
  wait_for(victim);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(served(nobody), 0) << "what makes sense is served";
}

TEST_F(DeboxStrangersTest, WhatIsHandedOverCannotBeWrittenTo) {
  serve();
  const int status = run_as(nobody, [&] {
    const Fd socket = new_socket();
    if (connect_to(socket, name_)) return 1;
    const auto got = ask(socket, ask_for_all(getpid(), 16));
    if (!got || !got->memory.valid()) return 2;
    const size_t size = 4096;
    if (mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, got->memory.get(), 0) != MAP_FAILED)
      return 3;
    void* read_only = mmap(nullptr, size, PROT_READ, MAP_SHARED, got->memory.get(), 0);
    if (read_only == MAP_FAILED) return 4;
    if (!mprotect(read_only, size, PROT_READ | PROT_WRITE)) return 5;
    if (ftruncate(got->memory.get(), 0) == 0) return 6;
    return write(got->memory.get(), "", 1) < 0 ? 0 : 7;
  });
  EXPECT_EQ(status, 0);
}

size_t files_of(pid_t pid) {
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(pid) + "/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

// Descriptors that are sent along are closed.
TEST_F(DeboxStrangersTest, DescriptorsAreNotTaken) {
  serve();
  EXPECT_EQ(served(nobody), 0);
  const size_t before = files_of(pkprof_->pid());
  const int status = run_as(nobody, [&] {
    const Fd socket = new_socket();
    int ends[2];
    if (connect_to(socket, name_) || pipe(ends)) return 1;
    debox_wire_request request = ask_for_all(getpid(), 16);
    request.what = DEBOX_WIRE_OFF;
    iovec part{&request, sizeof request};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &ends[1], sizeof(int));
    if (sendmsg(socket.get(), &message, 0) < 0) return 2;
    close(ends[1]);
    debox_wire_answer answer{};
    if (recv(socket.get(), &answer, sizeof answer, 0) != sizeof answer) return 3;
    return read(ends[0], &answer, 1) == 0 ? 0 : 4;  // nobody else has the other end
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(served(nobody), 0);
  EXPECT_LE(files_of(pkprof_->pid()), before + 2) << "one client may be there still";
}

// In the middle of asking, with many threads' records.
TEST_F(DeboxStrangersTest, AClientMayDie) {
  serve();
  for (int i = 0; i < 5; ++i) {
    const int status = run_as(nobody, [&] {
      const Fd socket = new_socket();
      if (connect_to(socket, name_)) return 1;
      const debox_wire_request request = ask_for_all(getpid(), 4096);
      if (send(socket.get(), &request, sizeof request, 0) < 0) return 2;
      return raise(SIGKILL);
    });
    EXPECT_EQ(status, 128 + SIGKILL);
    EXPECT_EQ(served(nobody), 0);
  }
}

// A program that keeps its memory, and asks for more.
TEST_F(DeboxStrangersTest, MemoryIsBounded) {
  serve();
  constexpr uint64_t each = uint64_t{4096} * sizeof(debox_record);
  const auto take_all = [&](uint64_t bytes) {
    return run_as(nobody, [&] {
      const Fd socket = new_socket();
      if (connect_to(socket, name_)) return 1;
      std::vector<Answer> kept;
      while (kept.size() <= bytes / each) {
        auto got = ask(socket, ask_for_all(getpid(), 4096));
        if (!got) return 2;
        if (got->answer.error == EDQUOT) break;
        kept.push_back(std::move(*got));
      }
      if (kept.size() != bytes / each) return 3;
      kept.clear();
      const auto got = ask(socket, ask_for_all(getpid(), 4096));
      return got && got->memory.valid() ? 0 : 4;  // what it lets go of it may have again
    });
  };
  EXPECT_EQ(take_all(uint64_t{128} << 20), 0);
  EXPECT_EQ(served(another), 0);
  EXPECT_NE(end().find("1 times a thread was not served: its process, its user"), std::string::npos)
      << pkprof_->err();
}

// Without end: a client that asks for what there is none of, and others that come and go.
class DeboxFloodTest : public DeboxStrangersTest {
 protected:
  DeboxFloodTest() : DeboxStrangersTest(Turn::Kind::alone) {}
  void TearDown() override {
    for (const pid_t pid : flood_) {
      kill(pid, SIGKILL);
      wait_for(pid);
    }
    DeboxStrangersTest::TearDown();
  }

  void flood() {
    for (int i = 0; i < 4; ++i)
      flood_.push_back(fork_as(nobody, [this] {
        for (;;) (void)connect_to(new_socket(), name_);
        return 0;
      }));
    for (int i = 0; i < 4; ++i)
      flood_.push_back(fork_as(nobody, [this] {
        const Fd socket = new_socket();
        if (connect_to(socket, name_)) return 1;
        debox_wire_request request = ask_for_all(getpid(), 16);
        request.what = DEBOX_WIRE_PLACE;
        request.place = 16000;
        debox_wire_answer answer{};
        while (send(socket.get(), &request, sizeof request, MSG_NOSIGNAL) > 0)
          while (recv(socket.get(), &answer, sizeof answer, MSG_DONTWAIT) > 0) continue;
        return 2;
      }));
  }

  std::vector<pid_t> flood_;
};

TEST_F(DeboxFloodTest, OthersAreServedMeanwhile) {
  serve();
  flood();
  poll(nullptr, 0, 500);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(served(another), 0);
}

TEST_F(DeboxFloodTest, ASignalEndsItMeanwhile) {
  serve();
  flood();
  poll(nullptr, 0, 500);
  pkprof_->signal(SIGTERM);
  EXPECT_EQ(pkprof_->wait(in_guest() ? 60s : 5s), 0);
}

// Whoever guesses what a socket is going to be called.
TEST_F(DeboxStrangersTest, ItsNameIsNotForetold) {
  std::vector<Fd> taken;
  const pid_t now = getpid();
  for (pid_t pid = now; pid < now + 500; ++pid) {
    taken.push_back(new_socket());
    const int error = take_name(taken.back(), "pkprof-debox-" + std::to_string(pid));
    ASSERT_TRUE(error == 0 || error == EADDRINUSE) << std::strerror(error);
  }
  serve();
  EXPECT_EQ(served(nobody), 0);
}

// The name by which a program looks for whoever attaches to it can be foretold. Nobody is to stop
// the program by taking it and letting it wait.
TEST_F(DeboxStrangersTest, WhoTakesAProgramsNameDoesNotStopIt) {
  const TempDir dir;
  const Fd listener = new_socket();
  std::vector<Fd> waiting;
  Running program({testnet::sibling("pk_debox"), "--naps", "100"},
                  {.env = {}, .out_path = {}, .before_exec = [&] {
                     const std::string name = DEBOX_WIRE_ATTACHED + std::to_string(getpid());
                     waiting.push_back(new_socket());
                     if (take_name(listener, name) || listen(listener.get(), 0) ||
                         connect_to(waiting.back(), name))
                       _exit(99);
                   }});
  EXPECT_EQ(program.wait(4s), 0) << program.err();
}

}  // namespace
}  // namespace pkprof::live
