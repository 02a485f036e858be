// SPDX-License-Identifier: Apache-2.0
// Somebody else's code, compiled with -pg: nlohmann's JSON library parses and writes a text, over
// and over.
//
//   pk_parse [TIMES]
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

int main(int argc, char** argv) {
  const int times = argc > 1 ? std::atoi(argv[1]) : 100;
  nlohmann::json object;
  for (int i = 0; i < 2000; ++i) {
    object["rows"].push_back({{"number", i},
                              {"half", i / 2.0},
                              {"name", "row " + std::to_string(i)},
                              {"none", nullptr}});
  }
  const std::string text = object.dump();
  size_t bytes = 0;
  for (int i = 0; i < times; ++i) bytes += nlohmann::json::parse(text).dump(2).size();
  return bytes == 0;
}
