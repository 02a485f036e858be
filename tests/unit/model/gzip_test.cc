// SPDX-License-Identifier: Apache-2.0
#include "model/gzip.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "model/pprof/pprof.h"
#include "report_fixture.h"

namespace pkprof {
namespace {

TEST(Gzip, SeveralMembersAreOneFile) {
  const std::string packed = gzip("one ").value() + gzip("").value() + gzip("two").value();
  EXPECT_EQ(gunzip(packed, 7).value(), "one two");
  EXPECT_FALSE(gunzip(packed, 6));
  EXPECT_FALSE(gunzip(packed.substr(0, packed.size() - 1), 7));
  EXPECT_FALSE(gunzip(packed + '\x1f', 7));
  const std::string plain = gunzip(encode_pprof(test::small_machine()).value(), 1 << 26).value();
  const size_t half = plain.size() / 2;
  const std::string again = gzip(plain.substr(0, half)).value() + gzip(plain.substr(half)).value();
  EXPECT_TRUE(decode_pprof(std::as_bytes(std::span(again))));
}

TEST(Gzip, StopsAtTheLimit) {
  const std::string packed = gzip(std::string(1000, 'a')).value();
  EXPECT_TRUE(gunzip(packed, 1000));
  EXPECT_FALSE(gunzip(packed, 999));
  EXPECT_FALSE(gunzip(packed, 0));
}

}  // namespace
}  // namespace pkprof
