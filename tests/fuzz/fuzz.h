// SPDX-License-Identifier: Apache-2.0
// What a fuzzer is made of. Every parser of outside data has one: a file with these two functions,
// linked with driver.cc for every build, and with libFuzzer where there is clang.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Feeds one input to the parser. Returns 0; anything wrong is a crash (abort, sanitizer).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Good inputs to start from, made by code so that they do not go stale.
std::vector<std::string> fuzz_seeds();
