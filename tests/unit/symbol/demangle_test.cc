// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>

#include "fixture.h"
#include "symbol/elf/demangle.h"
#include "symbol/symbolizer.h"

namespace pkprof {
namespace {

TEST(Demangle, Cxx) {
  EXPECT_EQ(demangle("_ZNSt6vectorIiSaIiEE9push_backEOi"),
            "std::vector<int, std::allocator<int> >::push_back(int&&)");
  EXPECT_EQ(demangle("_Z3fooi.cold"), "foo(int) [clone .cold]");
  EXPECT_EQ(demangle("_ZN12_GLOBAL__N_13barEv"), "(anonymous namespace)::bar()");
}

TEST(Demangle, RustLegacy) {
  EXPECT_EQ(demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"),
            "core::fmt::Formatter::pad");
  EXPECT_EQ(demangle("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
                     "3bar17h930b740aa94f1d3aE"),
            "<Test + 'static as foo::Bar<Test>>::bar");
}

TEST(Demangle, RustV0) {
  EXPECT_EQ(demangle("_RNvCskwGfYPst2Cb_3foo16example_function"), "foo::example_function");
  EXPECT_EQ(demangle("_RNvC6_123foo3bar"), "123foo::bar");
  EXPECT_EQ(demangle("_RINvNtC3std3mem8align_ofdE"), "std::mem::align_of::<f64>");
}

TEST(Demangle, OthersComeBack) {
  for (const char* name : {"", "main", "_Z", "_ZN", "_R", "_start", "_ZNotMangled", "_Rust",
                           "__libc_start_main", "java.lang.String::hashCode"}) {
    EXPECT_EQ(demangle(name), name);
  }
  const std::string with_nul("_Z3foov\0x", 9);
  EXPECT_EQ(demangle(with_nul), with_nul);
}

TEST(Demangle, LongNamesHaveALimit) {
  const std::string fits = "_Z3000" + std::string(3000, 'x') + "v";
  EXPECT_EQ(demangle(fits), std::string(3000, 'x') + "()");
  const std::string too_long = "_Z5000" + std::string(5000, 'x') + "v";
  EXPECT_EQ(demangle(too_long), too_long);
}

// Every substitution doubles the one before it: 2^60 parameters in 400 bytes.
TEST(Demangle, ExpandingNamesEnd) {
  std::string name = "_Z1f1AIiiE";
  const std::string digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (int i = 0; i < 34; ++i) {
    const std::string last = i == 0 ? "S0_" : std::string{'S', digits[static_cast<size_t>(i)], '_'};
    name.append("1BI").append(last).append(last).append("E");
  }
  const auto start = std::chrono::steady_clock::now();
  const std::string text = demangle(name);
  EXPECT_LE(text.size(), 16384U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Demangle, DeepNamesEnd) {
  for (const char* piece :
       {"P",  "N",  "F",  "I",   "1AI",  "X",     "M1A", "dp",  "LZ", "Dp",  "nx",  "S_",
        "K",  "J",  "A_", "ad",  "sr",   "cv",    "on",  "T_",  "C",  "NvC", "INv", "B_",
        "ng", "cl", "tl", "pp_", "szcl", "ZN1aE", "St",  "UlP", "Tn", "u1aI"}) {
    for (const char* head :
         {"_Z1fI", "_Z1fIX", "_Z1fDT", "_Z1f", "_ZN", "_ZZ", "_ZTI", "_R", "_RNv", "_RINvC1a1b"}) {
      std::string name = head;
      while (name.size() < 4000) name += piece;
      (void)demangle(name);
      (void)demangle(name + std::string(90, 'E') + "v");
    }
  }
}

TEST(Demangle, SurvivesAnything) {
  const std::vector<std::string> seeds = {
      "_ZNSt6vectorIiSaIiEE9push_backEOi",
      "_ZNKSt8__detail9__variant16_Variant_storageILb0EJSt9monostateSsEE8_M_validEv",
      "_ZZN3foo3barIJidEEEvDpT_ENKUlvE_clEv",
      "_ZN1AIXsrSt7is_sameIT_T0_E5valueEE1fIiEEDTcl1gfp_EES1_",
      "_RINvNtC3std3mem8align_ofjNtNtC3std3mem12DiscriminantE",
      "_RNvMs_NtCs4fqI2P2rA04_4core3fmtINtB4_9FormatterE3pad",
      "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$GT$3bar17h930b740aa94f1d3aE"};
  constexpr std::string_view letters =
      "_ZNSIEJDpTX0123456789abcdefghiklmnoprstuvwxyzRBKLCMFAPGOUVWQHY";
  test::FuzzPlan plan(2);
  auto& random = plan.random;
  while (plan.more()) {
    std::string name = seeds[random() % seeds.size()];
    for (unsigned i = random() % 8; i > 0; --i) {
      const size_t at = 2 + random() % (name.size() - 2);
      switch (random() % 3) {
        case 0:
          name[at] = letters[random() % letters.size()];
          break;
        case 1:
          name.insert(at, 1, letters[random() % letters.size()]);
          break;
        default:
          name.insert(at, name.substr(random() % name.size(), random() % 12));
      }
    }
    EXPECT_LE(demangle(name).size(), std::max<size_t>(16384, name.size()));
  }
}

}  // namespace
}  // namespace pkprof
