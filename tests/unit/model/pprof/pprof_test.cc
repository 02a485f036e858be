// SPDX-License-Identifier: Apache-2.0
// The file: everything comes back, and nothing that is not a profile gets in.
#include "model/pprof/pprof.h"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "model/gzip.h"
#include "random_profile.h"
#include "report/ledger.h"
#include "report_fixture.h"

namespace pkprof {
namespace {

using protozero::pbf_writer;

Result<Profile> decode(std::string_view bytes) {
  return decode_pprof(std::as_bytes(std::span(bytes)));
}

std::string encode(const Profile& profile) {
  return encode_pprof(profile).value();
}

std::string inflate(std::string_view bytes) {
  return gunzip(bytes, 1 << 26).value();
}

// The sentence of the failure; one line, or the test fails.
std::string error_of(std::string_view bytes) {
  const Result<Profile> profile = decode(bytes);
  if (profile) return "(no error)";
  EXPECT_EQ(profile.error().message.find('\n'), std::string::npos);
  return profile.error().message;
}

#define EXPECT_FAILS(bytes, why) \
  EXPECT_NE(error_of(bytes).find(why), std::string::npos) << error_of(bytes)

TEST(Pprof, SmallMachineComesBackInOrder) {
  const Profile profile = test::small_machine();
  const Result<Profile> back = decode(encode(profile));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->meta, profile.meta);
  EXPECT_EQ(back->labels(), profile.labels());
  EXPECT_EQ(back->mappings(), profile.mappings());
  EXPECT_EQ(test::described(*back), test::described(profile));
}

TEST(Pprof, AnythingComesBack) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Profile profile = test::random_profile(seed, seed % 50);
    const Result<Profile> back = decode(encode(profile));
    ASSERT_TRUE(back) << seed << ": " << back.error().message;
    EXPECT_EQ(back->meta, profile.meta) << seed;
    EXPECT_EQ(test::described(*back), test::described(profile)) << seed;
  }
}

TEST(Pprof, GroupedMachineComesBack) {
  const Profile profile = test::grouped_machine();
  const Result<Profile> back = decode(encode(profile));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->labels(), profile.labels());
  EXPECT_EQ(back->thread_names(), profile.thread_names());
  EXPECT_EQ(test::described(*back), test::described(profile));
}

TEST(Pprof, FilesFromBeforeThereWereContainersAndThreads) {
  Profile profile;
  const std::string cgroup = "/docker/" + std::string(64, 'a');
  const LabelId id = profile.label(
      {.kind = LabelKind::process, .pid = 5, .start_ns = 1, .comm = "old", .cgroup = cgroup});
  profile.add({.ran_on = id, .served = id}, {.count = 1, .ns = 1});
  const std::string bytes = inflate(encode(profile));
  for (const char* key : {"container_id", "served-thread\x12", "\"threads\""})
    EXPECT_EQ(bytes.find(key), std::string::npos) << "nothing is written where nothing is known";
  const Profile back = decode(bytes).value();
  EXPECT_EQ(back.labels()[1].container, Container{});
  EXPECT_EQ(container_of(back.labels()[1]).id, std::string(64, 'a')) << "the path tells";
  EXPECT_TRUE(back.thread_names().empty());
}

// Replaces text in a file that is not compressed; what is shorter is filled up with spaces, which
// mean nothing in JSON.
void replace(std::string& bytes, const std::string& from, std::string to) {
  const size_t at = bytes.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  to.resize(from.size(), ' ');
  bytes.replace(at, to.size(), to);
}

TEST(Pprof, KeysOfOlderVersionsMeanNothing) {
  Profile profile = test::small_machine();
  ASSERT_NE(profile.meta.unwatched_ns, 0U);
  std::string bytes = inflate(encode(profile));
  replace(bytes, R"("not_watched_ns")", R"("unwatched_ns")");
  replace(bytes, R"("samples_taken":18500)", R"("sampled_hz":158)");
  replace(bytes, R"("cost_kernel_ns":18000000)", R"("disks_unwatched_ns":95)");
  const Result<Profile> back = decode(bytes);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(watched_share(back->meta), 1);
  profile.meta.unwatched_ns = profile.meta.samples_taken = profile.meta.cost_kernel_ns = 0;
  EXPECT_EQ(back->meta, profile.meta);
}

TEST(Pprof, StealOfOlderVersionsIsNotOfOthers) {
  Profile old;
  old.meta.slot_ns = 1;
  const LabelId other = old.label({.kind = LabelKind::other});
  const LabelId idle = old.label({.kind = LabelKind::idle});
  const StringId steal = old.string("steal");
  const StringId user = old.string("user");
  old.add({.ran_on = other, .served = other, .source = steal}, {.count = 2, .ns = 20});
  old.add({.ran_on = other, .served = other, .source = user}, {.count = 3, .ns = 30});
  old.add({.ran_on = idle, .served = idle, .source = old.string("idle")}, {.count = 1, .ns = 10});
  old.timeline = {{0, other, other, steal, 20}, {0, other, other, user, 30}};
  const Result<Profile> back = decode(encode(old));
  ASSERT_TRUE(back) << back.error().message;
  const auto name = [&](LabelId id) { return back->labels()[id].name(); };
  ASSERT_EQ(back->samples().size(), 3U);
  for (const auto& [key, value] : back->samples()) {
    EXPECT_EQ(name(key.ran_on), name(key.served));
    EXPECT_EQ(name(key.served), value.ns == 20 ? "STEAL" : value.ns == 30 ? "OTHER" : "IDLE");
  }
  ASSERT_EQ(back->timeline.size(), 2U);
  EXPECT_EQ(name(back->timeline[0].ran_on), "STEAL");
  EXPECT_EQ(name(back->timeline[0].served), "STEAL");
  EXPECT_EQ(name(back->timeline[1].served), "OTHER");
  EXPECT_EQ(test::described(decode(encode(*back)).value()), test::described(*back));
}

TEST(Pprof, TheSameProfileIsTheSameFile) {
  EXPECT_EQ(encode(test::small_machine()), encode(test::small_machine()));
  const std::string once = encode(test::random_profile(3, 30));
  EXPECT_EQ(encode(decode(once).value()).size(), once.size());
}

TEST(Pprof, EmptyProfile) {
  const Result<Profile> back = decode(encode(Profile()));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(test::described(*back), test::described(Profile()));
}

TEST(Pprof, NotCompressedIsFine) {
  EXPECT_TRUE(decode(inflate(encode(test::small_machine()))));
}

TEST(Pprof, TwoProcessesOfOneNameStayTwo) {
  Profile profile;
  for (uint64_t start = 1; start <= 3; ++start) {
    const LabelId id =
        profile.label({.kind = LabelKind::process, .pid = 5, .start_ns = start, .comm = "again"});
    profile.add({.ran_on = id, .served = id}, {.count = start, .ns = start});
  }
  // And one that is called what the second one is renamed to.
  profile.label({.kind = LabelKind::unclaimed, .reason = "x"});
  const Profile back = decode(encode(profile)).value();
  EXPECT_EQ(test::described(back), test::described(profile));
  EXPECT_NE(inflate(encode(profile)).find("again:5#3"), std::string::npos);
}

TEST(Pprof, SampleTypesOnlyWhenMeasured) {
  Profile profile;
  profile.add({}, {.count = 1, .ns = 1});
  EXPECT_EQ(inflate(encode(profile)).find("exact"), std::string::npos);
  profile.add({}, {.exact_ns = 1});
  EXPECT_NE(inflate(encode(profile)).find("exact"), std::string::npos);
  EXPECT_EQ(inflate(encode(profile)).find("calls"), std::string::npos);
}

TEST(Pprof, ForeignProfileIsNamedAsSuch) {
  std::string bytes;
  pbf_writer out(bytes);
  out.add_string(6, "");
  EXPECT_FAILS(bytes, "not one of pkprof's");
  EXPECT_FAILS(gzip(bytes).value(), "not one of pkprof's");
}

TEST(Pprof, NotAProfileAtAll) {
  EXPECT_FAILS("", "empty");
  EXPECT_FAILS("hello, world\n", "not a readable profile");
  EXPECT_FAILS(std::string(1000, '\0'), "not a readable profile");
  EXPECT_FAILS(
      "\x7f"
      "ELF\x02\x01\x01",
      "not a readable profile");
}

TEST(Pprof, EveryTruncationIsAnError) {
  const std::string packed = encode(test::small_machine());
  for (size_t n = 0; n < packed.size(); ++n)
    ASSERT_FALSE(decode(std::string_view(packed).substr(0, n))) << n;
  // Of the plain message some prefixes are whole messages; none may do harm.
  const std::string plain = inflate(packed);
  for (size_t n = 0; n < plain.size(); n += 7) {
    const Result<Profile> harmless = decode(std::string_view(plain).substr(0, n));
    ASSERT_TRUE(!harmless || !harmless->labels().empty());
  }
  EXPECT_FAILS(packed.substr(0, packed.size() / 2), "truncated");
  EXPECT_FAILS(packed + "x", "after the end");
}

TEST(Pprof, EveryFlippedByteIsHarmless) {
  const std::string plain = inflate(encode(test::small_machine()));
  for (size_t i = 0; i < plain.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string bytes = plain;
      bytes[i] = static_cast<char>(bytes[i] ^ flip);
      const Result<Profile> back = decode(bytes);
      // What gets in must be sound: build the ledger, which uses every id there is.
      if (!back) continue;
      ASSERT_GE(build_ledger(*back).sum_ns(), build_ledger(*back).sampled_ns);
    }
  }
}

TEST(Pprof, ABombIsDefused) {
  const std::string bomb = gzip(std::string(size_t{200} << 20, '\0')).value();
  ASSERT_LT(bomb.size(), size_t{1} << 20);
  EXPECT_FAILS(bomb, "inflates to more than");
}

// Writes messages that our encoder never would.
class Forger {
 public:
  Forger() : out_(bytes_) {
    strings({"", "samples", "count", "cpu", "nanoseconds", "ran-on", "served", "a:1", "basis",
             "own", "thread",
             R"(#{"schema":"pkprof.meta/1","cpus":1,"labels":[{"name":"a:1","kind":"process"}]})"});
    out_.add_int64(13, 11);
    type(1, 2);
    type(3, 4);
  }
  void strings(std::initializer_list<std::string_view> list) {
    for (const auto text : list) out_.add_string(6, text.data(), text.size());
  }
  void type(int64_t type, int64_t unit) {
    pbf_writer to(out_, 1);
    to.add_int64(1, type);
    to.add_int64(2, unit);
  }
  void location(uint64_t id, uint64_t mapping = 0, uint64_t function = 0) {
    pbf_writer to(out_, 4);
    to.add_uint64(1, id);
    to.add_uint64(2, mapping);
    pbf_writer line(to, 4);
    line.add_uint64(1, function);
  }
  void function(uint64_t id, int64_t name) {
    pbf_writer to(out_, 5);
    to.add_uint64(1, id);
    to.add_int64(2, name);
  }
  void sample(const std::vector<uint64_t>& locations, const std::vector<int64_t>& values,
              int64_t served = 7, int64_t thread = 0, int64_t basis = 9) {
    pbf_writer to(out_, 2);
    to.add_packed_uint64(1, locations.begin(), locations.end());
    for (const int64_t value : values) to.add_int64(2, value);  // not packed, which is legal
    label(to, 5, 2, 7);
    label(to, 6, 2, served);
    label(to, 8, 2, basis);
    label(to, 10, 3, thread);
  }
  void label(pbf_writer& sample, int64_t key, uint32_t field, int64_t value) {
    pbf_writer to(sample, 3);
    to.add_int64(1, key);
    to.add_int64(field, value);
  }
  pbf_writer& out() { return out_; }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
  pbf_writer out_;
};

TEST(PprofForged, TheForgerIsGoodEnoughToGetIn) {
  Forger forger;
  forger.function(2, 4);
  forger.function(1, 3);
  forger.location(2, 0, 2);
  forger.location(1, 0, 1);
  forger.sample({1, 2}, {1, 2});
  const Result<Profile> profile = decode(forger.bytes());
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->samples()[0].value, (SampleValue{.count = 1, .ns = 2}));
  EXPECT_EQ(profile->text(profile->frames()[profile->frames_of(1)[0]].function), "cpu");
}

TEST(PprofForged, IdsOutOfRange) {
  const auto with = [](auto forge) {
    Forger forger;
    forge(forger);
    return forger.bytes();
  };
  EXPECT_FAILS(with([](Forger& f) { f.sample({1}, {1, 2}); }), "location id is out of range");
  EXPECT_FAILS(with([](Forger& f) { f.sample({0}, {1, 2}); }), "location id is out of range");
  EXPECT_FAILS(with([](Forger& f) { f.location(0); }), "locations are not unique");
  EXPECT_FAILS(with([](Forger& f) { f.location(9); }), "locations are not unique");
  EXPECT_FAILS(with([](Forger& f) { f.location(1), f.location(1); }), "locations are not unique");
  EXPECT_FAILS(with([](Forger& f) { f.location(1, 1); }), "mapping id is out of range");
  EXPECT_FAILS(with([](Forger& f) { f.location(1, 0, 1); }), "function id is out of range");
  EXPECT_FAILS(with([](Forger& f) { f.function(1, 99), f.location(1, 0, 1); }), "string index");
  EXPECT_FAILS(with([](Forger& f) { f.function(1, -1), f.location(1, 0, 1); }), "string index");
  EXPECT_FAILS(with([](Forger& f) { f.type(99, 0); }), "string index");
  EXPECT_FAILS(with([](Forger& f) { f.sample({}, {1, 2}, 8); }), "not in its table");
  EXPECT_FAILS(with([](Forger& f) { f.sample({}, {1, 2}, 99); }), "string index");
  EXPECT_FAILS(with([](Forger& f) { f.sample({}, {1, 2}, 7, 0, 5); }), "unknown basis");
  EXPECT_FAILS(with([](Forger& f) { f.sample({}, {1, 2}, 7, 1LL << 32); }), "thread id");
}

TEST(PprofForged, ValuesOutOfRange) {
  const auto with = [](auto forge) {
    Forger forger;
    forge(forger);
    return forger.bytes();
  };
  EXPECT_FAILS(with([](Forger& f) { f.sample({}, {1}); }), "one value of each type");
  EXPECT_FAILS(with([](Forger& f) { f.sample({}, {1, 2, 3}); }), "one value of each type");
  EXPECT_FAILS(with([](Forger& f) { f.sample({}, {1, -1}); }), "negative");
  EXPECT_FAILS(with([](Forger& f) {
                 f.sample({}, {1, INT64_MAX});
                 f.sample({}, {1, INT64_MAX}, 7, 1);
               }),
               "add up to too much");
  EXPECT_FAILS(with([](Forger& f) {
                 f.out().add_int64(10, -1);
                 f.bytes().replace(f.bytes().find("\"cpus\":1,"), 9, "\"cpus\":9,");
               }),
               "duration");
}

TEST(PprofForged, StacksTooDeep) {
  Forger forger;
  forger.location(1);
  forger.sample(std::vector<uint64_t>(5000, 1), {1, 2});
  EXPECT_FAILS(forger.bytes(), "too deep");
}

TEST(PprofForged, MetaThatIsNot) {
  const auto with = [](std::string_view comment) {
    std::string bytes;
    pbf_writer out(bytes);
    out.add_string(6, "");
    out.add_string(6, comment.data(), comment.size());
    out.add_int64(13, 1);
    return bytes;
  };
  const std::string start = R"({"schema":"pkprof.meta/1",)";
  EXPECT_FAILS(with(start), "not JSON");
  EXPECT_FAILS(with(start + R"("cpus":-1})"), "cpus is not a number in range");
  EXPECT_FAILS(with(start + R"("cpus":1e9})"), "cpus is not a number in range");
  EXPECT_FAILS(with(start + R"("cpus":4000000000})"), "cpus is not a number in range");
  EXPECT_FAILS(with(start + R"("kernel":[]})"), "kernel is not a string");
  EXPECT_FAILS(with(start + R"("labels":{}})"), "labels is not a list");
  EXPECT_FAILS(with(start + R"("labels":[1]})"), "a label is not an object");
  EXPECT_FAILS(with(start + R"("labels":[{"kind":"alien"}]})"), "unknown kind");
  EXPECT_FAILS(with(start + R"("labels":[{"kind":"kernel"}]})"), "without a name");
  EXPECT_FAILS(
      with(start + R"("labels":[{"kind":"kernel","name":"a"},{"kind":"idle","name":"a"}]})"),
      "same name");
  EXPECT_FAILS(
      with(start + R"("labels":[{"kind":"kernel","name":"a"}],"frame_kinds":[[1,"user"]]})"),
      "not there");
  EXPECT_FAILS(with(start + R"("labels":[{"kind":"kernel","name":"a"}],"threads":[["b",1,"c"]]})"),
               "a thread is of a process that is not in the table");
  for (const char* entry : {"1", "[]", R"([1,1,"c"])", R"(["a",1])"})
    EXPECT_FAILS(with(start + R"("threads":[)" + entry + "]}"), "threads is not made of");
  EXPECT_FAILS(with(start + R"("threads":[["a",-1,"c"]]})"), "a thread is not a number in range");
  EXPECT_FAILS(with(start + R"("threads":[["a",1,2]]})"), "a thread's name is not a string");
  EXPECT_FAILS(with(start + R"("labels":[{"kind":"kernel","name":"a","container":7}]})"),
               "container is not a string");
  EXPECT_FAILS(with(start + R"("x":)" + std::string(100'000, '[')), "nested too deeply");
  // Each key is compared with all before it.
  std::string keys;
  for (int i = 0; i < 500'000; ++i) keys += (i ? ",\"" : "\"") + std::to_string(i) + "\":1";
  EXPECT_FAILS(with(start + R"("counters":{)" + keys + "}}"), "too many keys");
  EXPECT_FAILS(with(start + keys + "}"), "too many keys");
  // Each takes many times its two letters.
  std::string lists = "[]";
  for (int i = 0; i < 23; ++i) lists += "," + lists;
  EXPECT_FAILS(with(start + R"("x":[)" + lists + "]}"), "too many values");
  // Hours, where each object's end has all that is before it looked through.
  std::string objects = "{}";
  for (int i = 0; i < 20; ++i) objects += "," + objects;
  const Result<Profile> profile =
      decode(with(start + R"("labels":[{"kind":"kernel","name":"a"}],"x":[)" + objects + "]}"));
  EXPECT_TRUE(profile) << profile.error().message;
  EXPECT_FAILS(with(R"({"schema":"pkprof.meta/2"})"), "use a newer pkprof");
}

}  // namespace
}  // namespace pkprof
