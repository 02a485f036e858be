// SPDX-License-Identifier: Apache-2.0
#include "probe/core_types.h"

#include <bpf/btf.h>
#include <gtest/gtest.h>

#include <memory>

namespace pkprof {
namespace {

struct Free {
  void operator()(btf* b) const { btf__free(b); }
};
using Btf = std::unique_ptr<btf, Free>;

int32_t find(const Btf& types, const char* name, uint32_t kind = BTF_KIND_STRUCT) {
  return btf__find_by_name_kind(types.get(), name, kind);
}

class CoreTypesTest : public testing::Test {
 protected:
  // What the kernel has: a thing with a part in it, and a pointer to something large.
  void SetUp() override {
    btf* k = kernel_.get();
    const int number = btf__add_int(k, "int", 4, BTF_INT_SIGNED);
    btf__add_struct(k, "large", 4096);
    const int large = btf__add_ptr(k, find(kernel_, "large"));
    const int part = btf__add_struct(k, "part", 8);
    btf__add_field(k, "first", number, 0, 0);
    btf__add_field(k, "flag", number, 32, 1);
    const int parts = btf__add_array(k, number, part, 3);
    const int named = btf__add_typedef(k, "parts_t", parts);
    btf__add_struct(k, "thing", 40);
    btf__add_field(k, "leads_to", large, 0, 0);
    btf__add_field(k, "parts", named, 64, 0);
    btf__add_field(k, "number", number, 256, 0);
    btf__add_enum(k, "colour", 4);
    btf__add_enum_value(k, "RED", 7);
    // What the object names.
    btf* o = object_.get();
    btf__add_struct(o, "thing___older", 4);
    btf__add_enum(o, "colour", 4);
    btf__add_struct(o, "never_was", 4);
  }

  Btf kernel_{btf__new_empty()};
  Btf object_{btf__new_empty()};
};

TEST_F(CoreTypesTest, WhatIsNamedIsThereWithItsParts) {
  CoreTypes types;
  ASSERT_FALSE(types.path().empty());
  ASSERT_TRUE(types.write(object_.get(), kernel_.get()));
  const Btf read(btf__parse(types.path().c_str(), nullptr));
  ASSERT_TRUE(read);

  const btf_type* thing = btf__type_by_id(read.get(), find(read, "thing"));
  ASSERT_TRUE(thing);
  EXPECT_EQ(thing->size, 40);
  ASSERT_EQ(btf_vlen(thing), 3);
  EXPECT_EQ(btf_member_bit_offset(thing, 2), 256);
  // A typedef of an array of parts.
  EXPECT_EQ(btf__resolve_size(read.get(), btf_members(thing)[1].type), 24);
  const btf_type* part = btf__type_by_id(read.get(), find(read, "part"));
  ASSERT_TRUE(part);
  EXPECT_EQ(btf_member_bit_offset(part, 1), 32);
  EXPECT_EQ(btf_member_bitfield_size(part, 1), 1);
  EXPECT_GT(find(read, "colour", BTF_KIND_ENUM), 0);
}

TEST_F(CoreTypesTest, WhatIsOnlyPointedToIsNot) {
  CoreTypes types;
  ASSERT_TRUE(types.write(object_.get(), kernel_.get()));
  const Btf read(btf__parse(types.path().c_str(), nullptr));
  ASSERT_TRUE(read);
  EXPECT_LT(find(read, "large"), 0);
  EXPECT_LT(find(read, "never_was"), 0);
  const btf_type* thing = btf__type_by_id(read.get(), find(read, "thing"));
  ASSERT_TRUE(thing);
  const btf_type* pointer = btf__type_by_id(read.get(), btf_members(thing)[0].type);
  EXPECT_TRUE(btf_is_ptr(pointer));
  EXPECT_EQ(pointer->type, 0);
}

}  // namespace
}  // namespace pkprof
