// SPDX-License-Identifier: Apache-2.0
// Texts that are compared byte for byte with what is in tests/golden. After a change that is meant,
// PKPROF_UPDATE_GOLDEN=1 writes them anew; read the difference before committing it.
#pragma once

#include <cstddef>
#include <string>

namespace pkprof::test {

void expect_golden(const std::string& name, const std::string& got);
// No line may hold anything that a terminal acts upon, nor be wider than it.
void expect_harmless(const std::string& text, size_t width = 80);

}  // namespace pkprof::test
