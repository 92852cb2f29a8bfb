// atom and red: each operation and type by itself, then lanes that contend.
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

#include "ptxsim/launch_ptx.h"
#include "ptxsim/machine/memory_operations.h"

namespace stitch::ptxsim {
namespace {

uint64_t update(Word word, Type type, uint64_t old, uint64_t a, uint64_t b = 0,
                Space space = Space::global) {
  const AtomicUpdate function = find_atomic(word, type, space);
  EXPECT_NE(function, nullptr);
  return function ? function(old, a, b) : 0;
}

uint64_t bits(float x) { return std::bit_cast<uint32_t>(x); }
uint64_t bits(double x) { return std::bit_cast<uint64_t>(x); }

TEST(InterpretAtomics, Integers) {
  EXPECT_EQ(update(Word::add, Type::u32, 0xffffffffu, 2), 1u);
  EXPECT_EQ(update(Word::add, Type::s32, 0x7fffffffu, 1), 0x80000000u);
  EXPECT_EQ(update(Word::add, Type::u64, ~0ull, 2), 1u);
  EXPECT_EQ(update(Word::min, Type::s32, 0x80000000u, 1), 0x80000000u);
  EXPECT_EQ(update(Word::min, Type::u32, 0x80000000u, 1), 1u);
  EXPECT_EQ(update(Word::max, Type::s32, 0x80000000u, 1), 1u);
  EXPECT_EQ(update(Word::max, Type::u32, 0x80000000u, 1), 0x80000000u);
  EXPECT_EQ(update(Word::min, Type::s64, 1ull << 63, 1), 1ull << 63);
  EXPECT_EQ(update(Word::min, Type::u64, 1ull << 63, 1), 1u);
  EXPECT_EQ(update(Word::max, Type::s64, 1ull << 63, 1), 1u);
  EXPECT_EQ(update(Word::max, Type::u64, 1ull << 63, 1), 1ull << 63);
  EXPECT_EQ(update(Word::and_, Type::b32, 12, 10), 8u);
  EXPECT_EQ(update(Word::or_, Type::b64, 12, 10), 14u);
  EXPECT_EQ(update(Word::xor_, Type::b32, 12, 10), 6u);
  EXPECT_EQ(update(Word::exch, Type::b64, 12, 10), 10u);
  EXPECT_EQ(update(Word::cas, Type::b32, 12, 12, 5), 5u);
  EXPECT_EQ(update(Word::cas, Type::b64, 12, 11, 5), 12u);
  EXPECT_EQ(update(Word::cas, Type::b16, 0xffff, 0xffff, 5), 5u);
  EXPECT_EQ(update(Word::inc, Type::u32, 4, 5), 5u);
  EXPECT_EQ(update(Word::inc, Type::u32, 5, 5), 0u);
  EXPECT_EQ(update(Word::inc, Type::u32, 6, 5), 0u);
  EXPECT_EQ(update(Word::dec, Type::u32, 4, 5), 3u);
  EXPECT_EQ(update(Word::dec, Type::u32, 0, 5), 5u);
  EXPECT_EQ(update(Word::dec, Type::u32, 6, 5), 5u);
}

TEST(InterpretAtomics, FloatsRoundOnceAndFlushOnlyFp32InGlobalMemory) {
  EXPECT_EQ(update(Word::add, Type::f32, bits(1.0f), bits(0x1p-24f)), bits(1.0f));
  EXPECT_EQ(update(Word::add, Type::f32, bits(1.0f), bits(0x1.8p-24f)), bits(1.0f + 0x1p-23f));
  const uint64_t subnormal = 3;
  EXPECT_EQ(update(Word::add, Type::f32, subnormal, subnormal), 0u);
  EXPECT_EQ(update(Word::add, Type::f32, 0x80000003u, 0x80000003u), 0x80000000u);
  EXPECT_EQ(update(Word::add, Type::f32, subnormal, subnormal, 0, Space::shared), 6u);
  EXPECT_EQ(update(Word::add, Type::f32, bits(INFINITY), bits(-INFINITY)), 0x7fffffffu);
  EXPECT_EQ(update(Word::add, Type::f64, bits(1.0), bits(0x1p-52)), bits(1.0 + 0x1p-52));
  EXPECT_EQ(update(Word::add, Type::f64, 3, 4), 7u);
  // fp16: 1 + 2^-11 is a tie, to even; subnormals stay; 65504 + 32 overflows.
  EXPECT_EQ(update(Word::add, Type::f16, 0x3c00, 0x1000), 0x3c00u);
  EXPECT_EQ(update(Word::add, Type::f16, 0x3c01, 0x1000), 0x3c02u);
  EXPECT_EQ(update(Word::add, Type::f16, 0x0001, 0x0001), 0x0002u);
  EXPECT_EQ(update(Word::add, Type::f16, 0x7bff, 0x5000), 0x7c00u);
  EXPECT_EQ(update(Word::add, Type::f16, 0x7c00, 0xfc00), 0x7fffu);
  EXPECT_EQ(update(Word::add, Type::bf16, 0x3f80, 0x3b80), 0x3f80u);  // 1 + 2^-8
  EXPECT_EQ(update(Word::add, Type::bf16, 0x3f81, 0x3b80), 0x3f82u);
  EXPECT_EQ(update(Word::add, Type::bf16, 0x7f7f, 0x7f7f), 0x7f80u);
  EXPECT_EQ(update(Word::add, Type::bf16, 0x0001, 0x0001), 0x0002u);
  EXPECT_EQ(update(Word::add, Type::f16x2, 0x3c01'4000, 0x1000'3c00), 0x3c02'4200u);
  EXPECT_EQ(update(Word::add, Type::bf16x2, 0x3f81'3f80, 0x3b80'3f80), 0x3f82'4000u);
}

TEST(InterpretAtomics, WhatIsNotDefinedIsRefusedByItsLine) {
  EXPECT_EQ(find_atomic(Word::and_, Type::f32, Space::global), nullptr);
  EXPECT_EQ(find_atomic(Word::inc, Type::s32, Space::global), nullptr);
  EXPECT_EQ(find_atomic(Word::min, Type::f64, Space::global), nullptr);
  Buffer out = buffer<uint32_t>(1);
  EXPECT_THROW(run_ptx({.body = "red.global.inc.s32 [%d1], 1;", .buffers = {&out}}),
               std::runtime_error);
}

TEST(InterpretAtomics, LanesThatContendEachGetAnotherOldValue) {
  Buffer count = buffer<uint32_t>(1), out = buffer<uint32_t>(128, kScratch);
  expect_clean({.body = "atom.global.add.u32 %r20, [%d1], 1; add.u64 %d11, %d2, %d10;"
                        "st.global.u32 [%d11], %r20;",
                .buffers = {&count, &out},
                .grid = 2,
                .block = 64});
  EXPECT_EQ(count.as<uint32_t>()[0], 128u);
  std::set<uint32_t> seen(out.as<uint32_t>(), out.as<uint32_t>() + 128);
  EXPECT_EQ(seen.size(), 128u);
  EXPECT_EQ(*seen.rbegin(), 127u);
}

TEST(InterpretAtomics, OrdersDifferInWhoIsFirst) {
  Buffer count = buffer<uint32_t>(1), out = buffer<uint32_t>(32, kOutput);
  expect_finding({.body = "atom.global.add.u32 %r20, [%d1], 1; add.u64 %d11, %d2, %d10;"
                          "st.global.u32 [%d11], %r20;",
                  .buffers = {&count, &out}},
                 FindingKind::nondeterministic, "arg 1[0]");
}

TEST(InterpretAtomics, FloatSumsInShuffledOrderDiffer) {
  std::vector<float> values(256);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::ldexp(1.1f, static_cast<int>(i % 40));
  Buffer in = buffer_of(values), sum = buffer<float>(1);
  expect_finding({.body = "add.u64 %d11, %d1, %d10; ld.global.f32 %f1, [%d11];"
                          "red.global.add.f32 [%d2], %f1;",
                  .buffers = {&in, &sum},
                  .grid = 2,
                  .block = 128},
                 FindingKind::nondeterministic, "arg 1[0]");
}

TEST(InterpretAtomics, SharedGenericAndSixtyFourBitForms) {
  Buffer out = buffer<uint64_t>(3, kOutput);
  expect_clean({.body = R"(
      .shared .align 8 .b8 sh[16];
      setp.eq.u32 %p1, %r1, 0; mov.u64 %d20, 0;
      @%p1 st.shared.u64 [sh], %d20; @%p1 st.shared.u64 [sh+8], %d20;
      bar.sync 0;
      cvt.u64.u32 %d21, %r1; red.shared.max.u64 [sh], %d21;
      mov.u64 %d22, sh; cvta.shared.u64 %d22, %d22; mov.u64 %d23, 3;
      atom.add.u64 %d24, [%d22+8], %d23;
      bar.sync 0;
      @%p1 ld.shared.u64 %d25, [sh]; @%p1 ld.shared.u64 %d26, [sh+8];
      @%p1 st.global.u64 [%d1], %d25; @%p1 st.global.u64 [%d1+8], %d26;
      setp.eq.u32 %p2, %r1, 40; mov.u16 %h1, 7;
      @%p2 st.global.u64 [%d1+16], %d21;)",
                .buffers = {&out},
                .block = 64});
  EXPECT_EQ(out.as<uint64_t>()[0], 63u);
  EXPECT_EQ(out.as<uint64_t>()[1], 192u);
  EXPECT_EQ(out.as<uint64_t>()[2], 40u);
}

// A lock: lanes of one warp take turns.
TEST(InterpretAtomics, ASpinLockInsideAWarpEnds) {
  Buffer lock = buffer<uint32_t>(2);
  expect_clean({.body = R"(
      again: atom.acquire.gpu.global.cas.b32 %r20, [%d1], 0, 1;
      setp.ne.u32 %p1, %r20, 0; @%p1 bra again;
      ld.global.u32 %r21, [%d1+4]; add.u32 %r21, %r21, 1; st.global.u32 [%d1+4], %r21;
      atom.release.gpu.global.exch.b32 %r22, [%d1], 0;)",
                .buffers = {&lock},
                .grid = 2,
                .block = 64});
  EXPECT_EQ(lock.as<uint32_t>()[0], 0u);
  EXPECT_EQ(lock.as<uint32_t>()[1], 128u);
}

}  // namespace
}  // namespace stitch::ptxsim
