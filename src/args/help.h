// SPDX-License-Identifier: Apache-2.0
// How --help looks: as wide as a terminal, each option in as few lines as that allows.
#pragma once

#include <CLI/CLI.hpp>

namespace pkprof {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(31); }

  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace pkprof
