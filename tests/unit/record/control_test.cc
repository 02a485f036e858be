// SPDX-License-Identifier: Apache-2.0
#include "record/control.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

namespace pkprof {
namespace {

using Command = Control::Command;
using Commands = std::vector<Command>;

// By descriptors: what is written to `to` are commands, and answers can be read from `from`.
class ControlTest : public testing::Test {
 protected:
  void SetUp() override {
    for (Fd* ends : {commands_, answers_}) {
      int fds[2];
      ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
      ends[0] = Fd(fds[0]);
      ends[1] = Fd(fds[1]);
    }
    auto opened = Control::open(
        "fd:" + std::to_string(commands_[0].get()) + "," + std::to_string(answers_[1].get()),
        complain());
    ASSERT_TRUE(opened) << opened.error().message;
    control_.emplace(std::move(*opened));
    commands_[0].reset();
    answers_[1].reset();
  }

  Control::Complain complain() {
    return [this](const std::string& sentence) { complaints_.push_back(sentence); };
  }
  void write_command(std::string_view text) const {
    ASSERT_EQ(write(commands_[1].get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  [[nodiscard]] std::string read_answers() const {
    char buffer[256];
    const ssize_t got = read(answers_[0].get(), buffer, sizeof(buffer));
    return {buffer, static_cast<size_t>(got < 0 ? 0 : got)};
  }
  void expect_complaint(const std::string& part) const {
    ASSERT_EQ(complaints_.size(), 1u);
    EXPECT_NE(complaints_[0].find(part), std::string::npos) << complaints_[0];
  }

  Fd commands_[2];
  Fd answers_[2];
  std::vector<std::string> complaints_;
  std::optional<Control> control_;
};

TEST_F(ControlTest, TakesCommandsInOrder) {
  EXPECT_EQ(control_->take(), Commands());
  write_command("enable\nping\n\ndisable\nstop\n");
  EXPECT_EQ(control_->take(),
            (Commands{Command::enable, Command::ping, Command::disable, Command::stop}));
  EXPECT_EQ(control_->take(), Commands());
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(ControlTest, TakesALineThatComesInPieces) {
  write_command("ena");
  EXPECT_EQ(control_->take(), Commands());
  write_command("ble\ndis");
  EXPECT_EQ(control_->take(), Commands{Command::enable});
  write_command(std::string_view("able\0", 5));
  EXPECT_EQ(control_->take(), Commands{Command::disable});
}

TEST_F(ControlTest, TellsWhatIsNoCommandAndGoesOn) {
  write_command("enable cycles\nping\n");
  EXPECT_EQ(control_->take(), Commands{Command::ping});
  expect_complaint("no command \"enable cycles\"; there are enable, disable, stop and ping");
}

TEST_F(ControlTest, PassesOverALineWithoutEnd) {
  for (int i = 0; i < 1000; ++i) {
    write_command(std::string(64, 'x'));
    EXPECT_EQ(control_->take(), Commands());
  }
  write_command("\nping\n");
  EXPECT_EQ(control_->take(), Commands{Command::ping});
  expect_complaint("longer than any command");
}

TEST_F(ControlTest, Answers) {
  control_->answer();
  EXPECT_EQ(read_answers(), "ack\n");
  control_->answer();
  control_->answer();
  EXPECT_EQ(read_answers(), "ack\nack\n");
}

TEST_F(ControlTest, DoesNotWaitForWhoReadsNoAnswers) {
  for (int i = 0; i < 100'000; ++i) control_->answer();
  expect_complaint("nobody reads the answers");
}

TEST_F(ControlTest, OutlivesWhoReadNoAnswers) {
  answers_[0].reset();
  control_->answer();  // without dying of SIGPIPE
  control_->answer();
  expect_complaint("there will be no more");
  write_command("ping\n");
  EXPECT_EQ(control_->take(), Commands{Command::ping});
}

TEST_F(ControlTest, WhoWritesWithoutEndKeepsNobody) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "ping\n";
  write_command(text);
  size_t taken = 0;
  while (taken < 10'000) {
    const size_t now = control_->take().size();
    ASSERT_GT(now, 0u);
    ASSERT_LE(now, 20u);
    taken += now;
  }
  for (int i = 0; i < 100; ++i) write_command("pong\n");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(control_->take(), Commands());
  EXPECT_EQ(complaints_.size(), 10u);
}

TEST_F(ControlTest, GoesOnWithoutWhoHasGone) {
  write_command("disable\n");
  commands_[1].reset();
  EXPECT_EQ(control_->take(), Commands{Command::disable});
  EXPECT_EQ(control_->take(), Commands());
  expect_complaint("no more commands can come");
  EXPECT_EQ(control_->fd(), -1);
  EXPECT_EQ(control_->take(), Commands());
  EXPECT_EQ(complaints_.size(), 1u);
}

TEST_F(ControlTest, RefusesWhatItCannotUse) {
  const std::string dir = testing::TempDir() + "pkprof-control-" + std::to_string(getpid());
  std::filesystem::create_directory(dir);
  const std::string fifo = dir + "/fifo";
  const std::string file = dir + "/file";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const Fd regular(open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const auto refusal = [&](const std::string& spec) {
    const auto opened = Control::open(spec, complain());
    return opened ? std::string() : opened.error().message;
  };
  EXPECT_EQ(refusal("fifo:" + fifo), "");
  EXPECT_EQ(refusal("fifo:" + fifo + "," + fifo), "");
  EXPECT_EQ(refusal("fifo:" + dir + "/none"),
            "--control: there is no " + dir + "/none; make it with mkfifo");
  EXPECT_EQ(refusal("fifo:" + fifo + "," + file),
            "--control: " + file + " is no FIFO; make one with mkfifo");
  EXPECT_EQ(refusal("fifo:" + dir), "--control: opening " + dir + ": Is a directory");
  EXPECT_EQ(refusal("fd:4294967296"), "--control: \"4294967296\" is no descriptor");
  EXPECT_EQ(refusal("fd:1x"), "--control: \"1x\" is no descriptor");
  EXPECT_EQ(refusal("fd:-1"), "--control: \"-1\" is no descriptor");
  EXPECT_EQ(refusal("fd:" + std::to_string(regular.get())),
            "--control: descriptor " + std::to_string(regular.get()) + " is not open for reading");
  for (const char* spec : {"", "fifo", "pipe:x", ":"})
    EXPECT_EQ(refusal(spec), "--control: \"" + std::string(spec) +
                                 "\" is neither fifo:COMMANDS[,ANSWERS] nor fd:N[,M]");
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace pkprof
