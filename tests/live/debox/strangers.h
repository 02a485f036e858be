// SPDX-License-Identifier: Apache-2.0
// pkprof debox serves, and whom it must not trust asks.
#pragma once

#include <gtest/gtest.h>

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "debox/client.h"
#include "scenario.h"

namespace pkprof::live {

inline constexpr uid_t another = 65533;

class DeboxStrangersTest : public testing::Test {
 protected:
  explicit DeboxStrangersTest(Turn::Kind kind = Turn::Kind::beside_others) : turn_(kind) {}
  void SetUp() override { skip_unless_able(); }
  void TearDown() override {
    if (command_) kill(command_, SIGKILL);
  }

  // pkprof serves, until the test ends, whoever knows its name.
  void serve(const Argv& options = {"--serve"}) {
    Argv words{"debox", "--no-async"};
    words.insert(words.end(), options.begin(), options.end());
    for (const char* word : {"--", "sh", "-c", "echo $$ $PKPROF_DEBOX; exec sleep 600"})
      words.emplace_back(word);
    pkprof_.emplace(pkprof_argv(words));
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (name_.empty() && std::chrono::steady_clock::now() < deadline) {
      std::istringstream(pkprof_->out()) >> command_ >> name_;
      poll(nullptr, 0, 10);
    }
    ASSERT_FALSE(name_.empty()) << pkprof_->err();
  }

  // As a program of this user's that does nothing wrong: what debox_on() says.
  [[nodiscard]] int served(uid_t user) const {
    return run_as(user, [this] {
      const Fd socket = new_socket();
      if (const int error = connect_to(socket, name_)) return error;
      const auto got = ask(socket, ask_for_all(getpid(), 16));
      if (!got) return ECONNRESET;
      return got->answer.error || got->memory.valid() ? got->answer.error : EBADMSG;
    });
  }

  // Ends the command; what pkprof says at the end.
  std::string end() {
    kill(std::exchange(command_, 0), SIGKILL);
    EXPECT_EQ(pkprof_->wait(), 128 + SIGKILL) << pkprof_->err();
    return pkprof_->err();
  }

  // A copy of a program that another user may execute.
  std::string copy(const char* program) {
    const std::string file = dir_.file(program);
    std::filesystem::copy_file(find_program(program), file);
    for (const std::string& path : {dir_.path(), file}) EXPECT_EQ(chmod(path.c_str(), 0755), 0);
    return file;
  }

  TempDir dir_;
  std::optional<Running> pkprof_;
  pid_t command_ = 0;
  std::string name_;
  Turn turn_;
};

}  // namespace pkprof::live
