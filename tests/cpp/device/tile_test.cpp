// Transposed copies of parts of matrices, all element sizes, extents whole and ragged.
#include "device/stitch/tile.cuh"

#include <gtest/gtest.h>

#include <vector>

namespace stitch_test {

using namespace stitch;

template <class T, int kStep>
void check_tiles() {
  constexpr int kPitch = 83;
  for (const i64 along : {1, 7, 16, 33, 64}) {
    for (const i64 across : {1, 5, 16, 47, 80}) {
      const i64 stride = along * kStep + 3;
      std::vector<T> memory(static_cast<size_t>(across * stride + 1));
      for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<T>(i % 251);
      constexpr T kUntouched = 252;
      std::vector<T> tile(static_cast<size_t>(along * kPitch), kUntouched);
      fill_tile<kPitch, kStep>(tile.data(), memory.data() + 1, stride, along, across);
      for (i64 j = 0; j < along; ++j) {
        for (i64 i = 0; i < kPitch; ++i) {
          const T wanted =
              i < across ? memory[static_cast<size_t>(1 + i * stride + j * kStep)] : kUntouched;
          ASSERT_EQ(tile[static_cast<size_t>(j * kPitch + i)], wanted)
              << sizeof(T) << " bytes, step " << kStep << ", " << along << " by " << across << ": "
              << j << ", " << i;
        }
      }
    }
  }
}

template <int kStep>
void check_types() {
  check_tiles<u8, kStep>();
  check_tiles<u16, kStep>();
  check_tiles<u32, kStep>();
  check_tiles<u64, kStep>();
}

TEST(Tile, HoldsTheTransposedPartAndNothingElse) { check_types<1>(); }

TEST(Tile, HoldsEverySecondAndEveryFourthElementAlong) {
  check_types<2>();
  check_types<4>();
}

}  // namespace stitch_test
