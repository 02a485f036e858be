// SPDX-License-Identifier: Apache-2.0
#include "args/arg_parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <type_traits>

#include "args/help.h"

namespace pkprof {

Arg& Arg::type(const char* name) {
  option_->type_name(name);
  return *this;
}

Arg& Arg::show_default() {
  option_->capture_default_str();
  return *this;
}

Arg& Arg::required() {
  option_->required();
  return *this;
}

Arg& Arg::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Arg& Arg::not_negative() {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}

Arg& Arg::seconds() {
  constexpr double shortest = 1e-9;
  constexpr double longest = 1e9;  // 31 years
  option_->type_name("SECONDS")->check([](const std::string& word) -> std::string {
    double value = 0;
    const bool is_good =
        CLI::detail::lexical_cast(word, value) && value >= shortest && value <= longest;
    return is_good ? "" : word + " is no number of seconds above 0";
  });
  return *this;
}

Arg& Arg::range(int from, int to) {
  option_->check(CLI::Range(from, to));
  return *this;
}

Arg& Arg::range(double from, double to) {
  option_->check(CLI::Range(from, to));
  return *this;
}

Arg& Arg::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

Arg& Arg::separated_by(char separator) {
  option_->delimiter(separator);
  option_->allow_extra_args(false);  // or it takes the words after it, too
  return *this;
}

Arg& Arg::named_each_time() {
  option_->allow_extra_args(false);
  return *this;
}

Arg& Arg::excludes(const Arg& other) {
  option_->excludes(other.option_);
  return *this;
}

ArgParser::ArgParser(const std::string& about, const std::string& name)
    : root_(std::make_shared<CLI::App>(about, name)), app_(root_.get()) {
  app_->formatter(std::make_shared<HelpFormatter>());  // subcommands take it over
}

ArgParser::ArgParser(std::shared_ptr<CLI::App> root, CLI::App* app)
    : root_(std::move(root)), app_(app) {}

namespace {

// Ranges are no bound to what is not a number: it is neither less than anything nor more.
std::string refuse_not_finite(const std::string& word) {
  double value = 0;
  if (CLI::detail::lexical_cast(word, value) && std::isfinite(value)) return "";
  return word + " is not a finite number";
}

}  // namespace

template <typename T>
Arg ArgParser::add(const char* names, T& value, const std::string& help) {
  if constexpr (std::is_same_v<T, bool>)
    return Arg(app_->add_flag(names, value, help));
  else if constexpr (std::is_same_v<T, double>)
    return Arg(app_->add_option(names, value, help)->check(refuse_not_finite));
  else
    return Arg(app_->add_option(names, value, help));
}

template Arg ArgParser::add(const char*, bool&, const std::string&);
template Arg ArgParser::add(const char*, int&, const std::string&);
template Arg ArgParser::add(const char*, uint16_t&, const std::string&);
template Arg ArgParser::add(const char*, uint32_t&, const std::string&);
template Arg ArgParser::add(const char*, uint64_t&, const std::string&);
template Arg ArgParser::add(const char*, double&, const std::string&);
template Arg ArgParser::add(const char*, std::string&, const std::string&);
template Arg ArgParser::add(const char*, std::vector<int>&, const std::string&);
template Arg ArgParser::add(const char*, std::vector<uint16_t>&, const std::string&);
template Arg ArgParser::add(const char*, std::vector<uint32_t>&, const std::string&);
template Arg ArgParser::add(const char*, std::vector<uint64_t>&, const std::string&);
template Arg ArgParser::add(const char*, std::vector<std::string>&, const std::string&);

ArgParser ArgParser::subcommand(const char* name, const char* about) {
  return {root_, app_->add_subcommand(name, about)};
}

void ArgParser::require_subcommand() {
  app_->require_subcommand(1);
}

void ArgParser::show_defaults() {
  app_->option_defaults()->always_capture_default();
}

void ArgParser::version(const std::string& text) {
  app_->set_version_flag("--version", text);
}

void ArgParser::footer(const char* text) {
  app_->footer(text);
}

void ArgParser::examples(const std::vector<std::string>& lines) {
  std::string text = app_->get_footer();
  if (!text.empty()) text += "\n\n";
  text += "Examples:";
  for (const std::string& line : lines) text += "\n  " + line;
  app_->footer(text);
}

void ArgParser::config(const std::string& file, bool required) {
  app_->set_config("--config", file, "Values of options; see pkprof(1)", required)
      ->type_name("FILE")
      ->take_last();
  app_->allow_config_extras(CLI::config_extras_mode::error);
}

void ArgParser::when_used(std::function<void()> then) {
  app_->callback(std::move(then));
}

void ArgParser::long_help_alone() {
  app_->set_help_flag("--help", "Print this help message and exit");
}

void ArgParser::command_follows() {
  app_->prefix_command();
}

std::vector<std::string> ArgParser::rest() const {
  return app_->remaining();
}

bool ArgParser::used() const {
  return app_->parsed();
}

std::optional<ArgParser::End> ArgParser::parse(std::vector<std::string> words) {
  std::ranges::reverse(words);  // as CLI11 wants them
  try {
    app_->parse(words);
  } catch (const CLI::Success& e) {
    return End{app_->exit(e), ""};
  } catch (const CLI::ConfigError& e) {
    // It says what it met, by the name of another format.
    std::string what = e.what();
    constexpr std::string_view known = "INI was not able to parse ";
    if (what.starts_with(known)) what = "no option has the name " + what.substr(known.size());
    // A descriptor is not what its user calls it by.
    auto file = app_->get_config_ptr()->as<std::string>();
    if (file.starts_with("/proc/self/fd/")) file = std::filesystem::read_symlink(file);
    return End{e.get_exit_code(), file + ": " + what};
  } catch (const CLI::ParseError& e) {
    return End{e.get_exit_code(), e.what()};
  }
  return {};
}

std::optional<int> ArgParser::parse(int argc, char** argv) {
  app_->name(argv[0]);
  const auto end = parse(std::vector<std::string>(argv + 1, argv + argc));
  if (!end) return {};
  if (end->error.empty()) return end->status;
  std::cerr << argv[0] << ": " << end->error << "; see --help\n";
  return 2;
}

}  // namespace pkprof
