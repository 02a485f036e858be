// SPDX-License-Identifier: Apache-2.0
// A program's command line, by CLI11. This header names nothing of it but its classes: its own take
// a compiler longer to read than any file of ours.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace pkprof {

// One option, or word, while it is described.
class Arg {
 public:
  explicit Arg(CLI::Option* option) : option_(option) {}

  Arg& type(const char* name);  // of its value, in the help
  Arg& show_default();
  Arg& required();
  Arg& positive();
  Arg& not_negative();
  Arg& seconds();  // a length of time that ends: nanoseconds of it are a number
  Arg& range(int from, int to);
  Arg& range(double from, double to);
  Arg& one_of(const std::vector<std::string>& words);
  Arg& separated_by(char separator);  // values of a list, in one word
  Arg& named_each_time();             // of a list: one value behind each `--name`
  Arg& excludes(const Arg& other);

 private:
  CLI::Option* option_;
};

// The options of a program, or of one of its subcommands. Copies are the same options.
class ArgParser {
 public:
  // How a program is to end at once.
  struct End {
    int status = 0;
    std::string error;  // "" after --help and --version, which have been printed
  };

  explicit ArgParser(const std::string& about, const std::string& name = "");

  // What is given is put into `value`, which lives until the line is parsed. A name without a dash
  // is a word's that needs none. T: bool is a flag; int, uint16_t, uint32_t, uint64_t, double,
  // std::string, and vectors of them all but double.
  template <typename T>
  Arg add(const char* names, T& value, const std::string& help);

  ArgParser subcommand(const char* name, const char* about);
  void require_subcommand();
  void show_defaults();  // of all that are added from here on
  void version(const std::string& text);
  void footer(const char* text);
  // Below the help, and below what the footer says: command lines.
  void examples(const std::vector<std::string>& lines);
  // What options are where the line does not name them, by subcommand: a file in TOML, `file` where
  // --config names none. It need not be there if it is not required; what is in it of no option is
  // an error.
  void config(const std::string& file, bool required);
  void when_used(std::function<void()> then);
  void long_help_alone();  // -h is free
  // The first word that is no option begins a command: it and all behind it are rest().
  void command_follows();
  [[nodiscard]] std::vector<std::string> rest() const;
  [[nodiscard]] bool used() const;  // a subcommand, after parsing

  std::optional<End> parse(std::vector<std::string> words);
  // The same of main()'s arguments; what is wrong is printed. The status to end with.
  std::optional<int> parse(int argc, char** argv);

 private:
  ArgParser(std::shared_ptr<CLI::App> root, CLI::App* app);

  std::shared_ptr<CLI::App> root_;
  CLI::App* app_;
};

}  // namespace pkprof
