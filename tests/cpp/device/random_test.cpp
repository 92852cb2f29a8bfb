// Philox against the vectors of its authors, and what kernels make of its words.
#include "device/stitch/random.cuh"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace stitch_test {

using namespace stitch;

// kat_vectors of Random123: counter, key, result.
struct Vector {
  PhiloxWords counter;
  u32 key_low, key_high;
  PhiloxWords expected;
};
constexpr Vector kVectors[] = {
    {{0, 0, 0, 0}, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{~0u, ~0u, ~0u, ~0u}, ~0u, ~0u, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     0xa4093822,
     0x299f31d0,
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

TEST(Philox, GivesTheWordsOfItsAuthors) {
  for (const Vector& vector : kVectors) {
    const PhiloxWords found = philox(vector.counter, vector.key_low, vector.key_high);
    EXPECT_EQ(static_cast<u32>(found.a), vector.expected.a);
    EXPECT_EQ(static_cast<u32>(found.b), vector.expected.b);
    EXPECT_EQ(static_cast<u32>(found.c), vector.expected.c);
    EXPECT_EQ(static_cast<u32>(found.d), vector.expected.d);
  }
}

f32 to_uniform(PhiloxWord word) {
  return static_cast<f32>(static_cast<u32>(word) >> 8) / 16777216.0f;
}

TEST(RandomUniform, IsAWordOfTheCounterOfItsBlock) {
  EXPECT_EQ(random_uniform(0, 0, 0), to_uniform(0x6627e8d5));
  EXPECT_EQ(random_uniform(0, 0, 1), to_uniform(0xe169c58d));
  EXPECT_EQ(random_uniform(0, 0, 2), to_uniform(0xbc57ac4c));
  EXPECT_EQ(random_uniform(0, 0, 3), to_uniform(0x9b00dbd8));
  const i64 index = 0x5234567890ll, stream = 0x123456789abll;
  const PhiloxWords words = philox({static_cast<u32>(index >> 2), static_cast<u32>(index >> 34),
                                    static_cast<u32>(stream), static_cast<u32>(stream >> 32)},
                                   0x89abcdefu, 0xfedcba98u);
  EXPECT_EQ(random_uniform(static_cast<i64>(0xfedcba9889abcdefull), stream, index),
            to_uniform(words.a));
}

// The loop is vectorised, so this is what kernels run.
TEST(RandomUniform, IsUniformAndBelowOne) {
  constexpr int kCount = 1 << 20, kBins = 256;
  std::vector<f32> numbers(kCount);
  STITCH_SIMD for (int i = 0; i < kCount; ++i) numbers[i] = random_uniform(42, 7, i);
  std::array<int, kBins> bins{};
  double sum = 0, squares = 0, products = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = numbers[i];
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    ++bins[static_cast<int>(x * kBins)];
    sum += x;
    squares += x * x;
    if (i > 0) products += (x - 0.5) * (numbers[i - 1] - 0.5);
  }
  double chi_square = 0;
  for (int found : bins) {
    chi_square += std::pow(found - kCount / kBins, 2) / (kCount / kBins);
  }
  EXPECT_NEAR(chi_square, kBins - 1, 5 * std::sqrt(2.0 * (kBins - 1)));
  EXPECT_NEAR(sum / kCount, 0.5, 5 / std::sqrt(12.0 * kCount));
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / kCount));
  EXPECT_NEAR(products / kCount, 0, 5 / (12 * std::sqrt(1.0 * kCount)));
}

TEST(RandomUniform, EveryWordOfKeyStreamAndIndexCounts) {
  const f32 first = random_uniform(1, 1, 4);
  for (int bit = 0; bit < 64; ++bit) {
    const i64 flipped = static_cast<i64>(1ull << bit);
    EXPECT_NE(random_uniform(1 ^ flipped, 1, 4), first) << bit;
    EXPECT_NE(random_uniform(1, 1 ^ flipped, 4), first) << bit;
    EXPECT_NE(random_uniform(1, 1, 4 ^ flipped), first) << bit;
  }
}

TEST(CoarseRandom, IsAHalfOfAWordAboveWhatItsBlockShares) {
  const PhiloxWords words = philox({2, 0, 7, 0}, 5, 0);
  const u32 halves[] = {static_cast<u32>(words.a) << 16, static_cast<u32>(words.a),
                        static_cast<u32>(words.b) << 16, static_cast<u32>(words.b),
                        static_cast<u32>(words.c) << 16, static_cast<u32>(words.c),
                        static_cast<u32>(words.d) << 16, static_cast<u32>(words.d)};
  for (int lane = 0; lane < 8; ++lane) {
    const CoarseBits bits = coarse_bits(5, 7, 16 + lane);
    EXPECT_EQ(bits.upper, halves[lane]) << lane;
    EXPECT_EQ(bits.shared, 0x3C6Eu) << "2 * 0x9E3779B9 + 5 wraps to 0x3C6EF377";
  }
}

TEST(CoarseRandom, IsAtLeastABoundIfItsNumberIs) {
  for (i64 bound :
       {i64{1} << 17, i64{429496832}, i64{0x12345678}, i64{0x80000000}, i64{0xFFFD0000}})
    for (i64 i = 0; i < 20000; ++i) {
      const CoarseBits bits = coarse_bits(42, 7, i);
      const u32 word = (bits.upper & 0xFFFF0000u) | bits.shared;
      ASSERT_EQ(coarse_least(bound, 42, 7, i), word >= static_cast<u64>(bound)) << i;
    }
}

// Of 2^20 numbers below p, five standard deviations; of their blocks' shared halves far fewer.
TEST(CoarseRandom, IsBelowAProbabilityAsOftenAsThatSays) {
  constexpr int kCount = 1 << 20;
  for (const double p : {0.1, 0.5, 1 / 256.0}) {
    int below = 0;
    for (int i = 0; i < kCount; ++i) below += coarse_uniform(3, 1, static_cast<i64>(i)) < p;
    EXPECT_NEAR(below, kCount * p, 5 * std::sqrt(kCount * p * (1 - p))) << p;
  }
  double mean = 0;
  for (i64 block = 0; block < kCount; ++block) mean += coarse_bits(3, 1, 8 * block).shared;
  EXPECT_NEAR(mean / kCount, 32767.5, 1) << "evenly spread";
}

template <int kEach>
void check_row(i64 first, i64 count) {
  constexpr i64 kBeside = 8;
  constexpr u32 kUntouched = 0xABCD1234;
  std::vector<u32> row(static_cast<size_t>(count + 2 * kBeside), kUntouched);
  draw_words<kEach>(row.data() + kBeside, count, -42, 1ll << 40, first);
  EXPECT_EQ(row.front(), kUntouched);
  EXPECT_EQ(row.back(), kUntouched);
  for (i64 i = 0; i < count; ++i) {
    const CoarseBits bits = coarse_bits(-42, 1ll << 40, first + i);
    const u32 word = kEach == 4 ? random_word(-42, 1ll << 40, first + i)
                                : (bits.upper & 0xFFFF0000u) | bits.shared;
    ASSERT_EQ(row[static_cast<size_t>(kBeside + i)], word) << first << " " << i << " " << count;
    ASSERT_EQ(draw_word<kEach>(-42, 1ll << 40, first + i), word);
  }
}

TEST(RowOfWords, HasTheWordsOfItsElementsWhereverItBegins) {
  for (const i64 count : {1, 3, 4, 8, 31, 64, 256})
    for (i64 first = 0; first < 17; ++first) {
      check_row<4>(first, count);
      check_row<8>((i64{1} << 35) - 8 + first, count);
    }
}

}  // namespace stitch_test
