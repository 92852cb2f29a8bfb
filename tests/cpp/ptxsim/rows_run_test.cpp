// Every row of ptx.def that is no lane operation runs in some test, with every type it takes; and
// the rows and types that no other test needs.
#include <bit>
#include <sstream>

#include "ptxsim/launch_ptx.h"

namespace stitch::ptxsim {
namespace {

std::set<Type> types_of(const Row& row) {
  std::set<Type> types;
  std::istringstream words{std::string(row.types)};
  for (std::string word; words >> word;) {
    for (int t = 0; t <= static_cast<int>(Type::s16x2); ++t) {
      if (name_of(static_cast<Type>(t)) == word.substr(word[0] == '='))
        types.insert(static_cast<Type>(t));
    }
  }
  if (types.empty()) types.insert(Type::none);
  return types;
}

// After all tests: a filter leaves rows out, so only a full run is judged.
class RowsAreRun : public testing::Environment {
 public:
  void TearDown() override {
    if (GTEST_FLAG_GET(filter) != "*") return;
    for (const Row& row : all_rows()) {
      if (row.flow == Flow::lanes) continue;
      for (Type type : types_of(row)) {
        EXPECT_TRUE(rows_run().count({row.opcode, type}))
            << row.name << '.' << name_of(type) << " has no test";
      }
    }
  }
};
const auto* const kRowsAreRun = testing::AddGlobalTestEnvironment(new RowsAreRun);

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

struct AtomicCase {
  const char* form;  // "add.f16x2"
  uint64_t old, operand, expected;
};
// By each type once or more; edges of the operations themselves are in interpret_atomics_test.cpp.
constexpr AtomicCase kAtomics[] = {
    {"and.b32", 12, 10, 8},
    {"or.b64", uint64_t{12} << 40, uint64_t{10} << 40, uint64_t{14} << 40},
    {"add.u32", 0xffffffff, 2, 1},
    {"min.s32", 0x80000000, 1, 0x80000000},
    {"add.u64", 0xffffffff, 2, 0x100000001},
    {"max.s64", uint64_t{1} << 63, 1, 1},
    {"add.noftz.f16", 0x3c00, 0x4000, 0x4200},
    {"add.noftz.f16x2", 0x3c004000, 0x40003c00, 0x42004200},
    {"add.noftz.bf16", 0x3f80, 0x4000, 0x4040},
    {"add.noftz.bf16x2", 0x3f804000, 0x40003f80, 0x40404040},
    {"add.f32", 0x3f800000, 0x40000000, 0x40400000},
    {"add.f64", uint64_t{0x3ff0} << 48, uint64_t{0x4000} << 48, uint64_t{0x4008} << 48},
    {"exch.b32", 1, 2, 2},
    {"exch.b64", 1, 2, 2},
};

// Register of the type's width, with the name of its moves.
const char* register_of(int bytes) { return bytes == 2 ? "%h" : bytes == 4 ? "%r" : "%d"; }

TEST(RowsRun, AtomicsOfEveryTypeGiveTheOldValueAndLeaveTheSum) {
  for (const AtomicCase& atomic : kAtomics) {
    SCOPED_TRACE(atomic.form);
    const std::string form = atomic.form;
    const std::string type = form.substr(form.rfind('.') + 1);
    Type decoded = Type::none;
    for (Type t : types_of(row_of(Opcode::atom))) {
      if (name_of(t) == type) decoded = t;
    }
    const int bytes = type_bytes(decoded);
    const std::string bits = "b" + std::to_string(8 * bytes);
    for (bool wants_old : {true, false}) {
      if (!wants_old && form.starts_with("exch")) continue;
      Buffer place = buffer<uint64_t>(1, kAny, atomic.old),
             in = buffer_of<uint64_t>({atomic.operand});
      Buffer old = buffer<uint64_t>(1, kAny);
      const std::string text =
          "setp.eq.u32 %p1, %r1, 0; ld.global.$B $R20, [%d2];" +
          std::string(wants_old
                          ? "@%p1 atom.global.$F $R21, [%d1], $R20; @%p1 st.global.$B [%d3], $R21;"
                          : "@%p1 red.global.$F [%d1], $R20;");
      expect_clean(
          {.body = replace_all(replace_all(replace_all(text, "$B", bits), "$R", register_of(bytes)),
                               "$F", form),
           .buffers = {&place, &in, &old}});
      EXPECT_EQ(place.as<uint64_t>()[0], atomic.expected);
      if (wants_old) {
        EXPECT_EQ(old.as<uint64_t>()[0], atomic.old);
      }
    }
  }
}

TEST(RowsRun, CompareAndSwapOfSixteenBits) {
  Buffer place = buffer<uint16_t>(2, kAny, uint16_t{7});
  expect_clean({.body = "setp.eq.u32 %p1, %r1, 0; mov.b16 %h1, 7; mov.b16 %h2, 9;"
                        "@%p1 atom.global.cas.b16 %h3, [%d1], %h1, %h2;"
                        "@%p1 atom.global.cas.b16 %h3, [%d1+2], %h2, %h1;",
                .buffers = {&place}});
  EXPECT_EQ(place.as<uint16_t>()[0], 9);
  EXPECT_EQ(place.as<uint16_t>()[1], 7);
}

TEST(RowsRun, RegistersOfSixteenBytes) {
  Buffer in = buffer_of<uint64_t>({1, 2, 3, 4}), out = buffer<uint64_t>(2, kOutput);
  expect_clean({.body = ".reg .b128 %q<2>; setp.eq.u32 %p1, %r1, 0;"
                        "@%p1 ld.global.b128 %q0, [%d1+16]; @%p1 st.global.b128 [%d2], %q0;",
                .buffers = {&in, &out}});
  EXPECT_EQ(out.as<uint64_t>()[0], 3u);
  EXPECT_EQ(out.as<uint64_t>()[1], 4u);
}

TEST(RowsRun, UniformLoadsAreLoads) {
  for (Type type : types_of(row_of(Opcode::ldu))) {
    SCOPED_TRACE(name_of(type));
    const std::string name(name_of(type));
    const int bytes = type_bytes(type);
    Buffer in = buffer_of<uint64_t>({0x1122334455667788u, 0x99aabbccddeeff00u});
    Buffer out = buffer<uint64_t>(2);
    std::string text =
        "setp.eq.u32 %p1, %r1, 0; ldu.global.$T $R, [%d1]; @%p1 st.global.$T [%d2], $R;";
    const std::string reg = type == Type::f32   ? "%f1"
                            : type == Type::f64 ? "%g1"
                            : bytes == 16       ? "%q1"
                            : bytes == 1        ? "%h1"
                                                : std::string(register_of(bytes)) + "20";
    if (bytes == 16) text = ".reg .b128 %q<2>; " + text;
    expect_clean(
        {.body = replace_all(replace_all(text, "$T", name), "$R", reg), .buffers = {&in, &out}});
    EXPECT_EQ(std::memcmp(in.as<char>(), out.as<char>(), bytes), 0);
    EXPECT_EQ(out.as<char>()[bytes], 0);
  }
}

TEST(RowsRun, ClocksGoOn) {
  Buffer out = buffer<uint32_t>(2, kAny);
  expect_clean(
      {.body = "mov.b32 %r20, %clock; mov.b64 %d20, %clock64; mov.b64 %d21, %clock64;"
               "mov.b32 %r21, %clock; setp.ge.u64 %p1, %d21, %d20; setp.ge.u32 %p2, %r21, %r20;"
               "selp.u32 %r22, 1, 0, %p1; selp.u32 %r23, 1, 0, %p2; setp.eq.u32 %p3, %r1, 0;"
               "@%p3 st.global.u32 [%d1], %r22; @%p3 st.global.u32 [%d1+4], %r23;",
       .buffers = {&out},
       .options = {.deterministic = false}});
  EXPECT_EQ(out.as<uint32_t>()[0], 1u);
  EXPECT_EQ(out.as<uint32_t>()[1], 1u);
}

// What each lane stores as its 32-bit result %r20.
std::vector<uint32_t> lanes_of(const std::string& body) {
  Buffer out = buffer<uint32_t>(32, kOutput);
  expect_clean(
      {.body = body + "add.u64 %d20, %d1, %d10; st.global.u32 [%d20], %r20;", .buffers = {&out}});
  return {out.as<uint32_t>(), out.as<uint32_t>() + 32};
}

TEST(RowsRun, MatchesOfSixtyFourBits) {
  const auto all = lanes_of("mov.u64 %d21, 5; match.all.sync.b64 %r20|%p1, %d21, -1;");
  EXPECT_EQ(all, std::vector<uint32_t>(32, 0xffffffffu));
  const auto none = lanes_of("cvt.u64.u32 %d21, %r1; match.all.sync.b64 %r20|%p1, %d21, -1;");
  EXPECT_EQ(none, std::vector<uint32_t>(32, 0u));
}

TEST(RowsRun, FloatReductionsOfAWarp) {
  const std::string values = "cvt.rn.f32.u32 %f1, %r1; sub.f32 %f1, %f1, 0f41200000;";  // lane - 10
  const auto reduce = [&](const std::string& form) {
    return std::bit_cast<float>(
        lanes_of(values + "redux.sync." + form + ".f32 %f2, %f1, -1; mov.b32 %r20, %f2;")[7]);
  };
  EXPECT_EQ(reduce("min"), -10.0f);
  EXPECT_EQ(reduce("max"), 21.0f);
  EXPECT_EQ(reduce("min.abs"), 0.0f);
  EXPECT_EQ(reduce("max.abs"), 21.0f);
  const auto with_nan = [&](const std::string& form) {
    return lanes_of(values +
                    "setp.eq.u32 %p1, %r1, 3; selp.f32 %f1, 0f7fc00000, %f1, %p1; redux.sync." +
                    form + ".f32 %f2, %f1, -1; mov.b32 %r20, %f2;")[0];
  };
  EXPECT_EQ(with_nan("max"), std::bit_cast<uint32_t>(21.0f));
  EXPECT_EQ(with_nan("max.NaN"), 0x7fffffffu);
}

TEST(RowsRun, OneLaneIsElected) {
  const auto elected =
      lanes_of("elect.sync %r21|%p1, -1; selp.u32 %r22, 100, 0, %p1; add.u32 %r20, %r21, %r22;");
  int count = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t leader = elected[lane] >= 100 ? elected[lane] - 100 : elected[lane];
    EXPECT_EQ(leader, elected[0] % 100);
    count += elected[lane] >= 100 && leader == lane;
  }
  EXPECT_EQ(count, 1);
}

TEST(RowsRun, UnalignedBarriersArriveAndReduce) {
  Buffer out = buffer<uint32_t>(64, kOutput);
  expect_clean({.body = ".shared .align 4 .b8 sh[4]; setp.lt.u32 %p1, %r1, 32; @!%p1 bra consume;"
                        "setp.eq.u32 %p2, %r1, 0; mov.u32 %r20, 77; @%p2 st.shared.u32 [sh], %r20;"
                        "barrier.arrive 1, 64; bra met;"
                        "consume: barrier.sync 1, 64; ld.shared.u32 %r20, [sh];"
                        "met: setp.eq.u32 %p3, %r1, 40; barrier.red.or.pred %p4, 0, %p3;"
                        "selp.u32 %r21, 1000, 0, %p4; add.u32 %r20, %r20, %r21;"
                        "add.u64 %d20, %d1, %d10; st.global.u32 [%d20], %r20;",
                .buffers = {&out},
                .block = 64});
  for (int thread = 0; thread < 64; ++thread) EXPECT_EQ(out.as<uint32_t>()[thread], 1077u);
}

TEST(RowsRun, HintsMoveNothing) {
  Buffer data = buffer<uint32_t>(64, kAny, 3u);
  expect_clean({.body = "applypriority.global.L2::evict_normal [%d1], 128;", .buffers = {&data}});
  EXPECT_EQ(data.as<uint32_t>()[0], 3u);
  // What is discarded may hold anything; it is not written after.
  expect_clean({.body = "discard.global.L2 [%d1], 128;", .buffers = {&data}});
}

TEST(RowsRun, BreakpointsEndTheLaunch) {
  EXPECT_THROW(run_ptx({.body = "brkpt;"}), std::runtime_error);
}

}  // namespace
}  // namespace stitch::ptxsim
