// Tiles: a part of a matrix in memory, transposed on its way to memory on chip.
#pragma once

#include "device/stitch/load_store.cuh"

namespace stitch {

#if STITCH_CUDA

// tile[j * kPitch + i] = p[i * stride + j] for i < across <= kAcross and j < along, by all kThreads
// threads of a block.  Neighbouring lanes read a sector of 32 bytes, in vectors of kWidth elements,
// to which p, stride and along are aligned; the lanes of a warp have sectors of different i, so
// that they write to different banks.
template <int kPitch, int kAcross, int kWidth, int kThreads, class T>
STITCH_DEVICE void fill_tile(T* tile, const T* p, i64 stride, i64 along, i64 across) {
  constexpr int kBytes = kWidth * static_cast<int>(sizeof(T));
  constexpr int kLanes = kBytes < 32 ? 32 / kBytes : 1;
  const int sectors = static_cast<int>(along + kLanes * kWidth - 1) / (kLanes * kWidth);
  block_barrier();  // nobody reads what was there before
  STITCH_UNROLL_IN_PART
  for (int n = tid(); n < sectors * kAcross * kLanes; n += kThreads) {
    const int i = n / kLanes % kAcross;
    const int j = (n / kLanes / kAcross * kLanes + n % kLanes) * kWidth;
    if (i < across && j < along) {
      const Vec<T, kWidth> row = load_vec<kWidth>(p + i * stride + j);
      STITCH_UNROLL
      for (int k = 0; k < kWidth; ++k) tile[(j + k) * kPitch + i] = row.v[k];
    }
  }
  block_barrier();
}

#else

template <int kBytes>
using unsigned_t = typename Choose<
    kBytes == 8, u64,
    typename Choose<kBytes == 4, u32, typename Choose<kBytes == 2, u16, u8>::type>::type>::type;

// kCount elements of a vector register, anywhere in memory.
template <int kBytes, int kCount>
struct Lanes {
  using element = unsigned_t<kBytes>;
  typedef element type __attribute__((vector_size(kBytes * kCount)));
  typedef element loose __attribute__((vector_size(kBytes * kCount), aligned(kBytes), may_alias));
};

// Of a square of kCount rows, exchanges the quarters of each square of 2 * kStep that lie off its
// diagonal.
template <int kStep, int kCount, class V>
STITCH_DEVICE void exchange_quarters(V* rows) {
  V low{}, high{};
  STITCH_UNROLL
  for (int i = 0; i < kCount; ++i) {
    low[i] = i & kStep ? kCount + (i ^ kStep) : i;
    high[i] = i & kStep ? kCount + i : i ^ kStep;
  }
  STITCH_UNROLL
  for (int i = 0; i < kCount; ++i) {
    if (i & kStep) continue;
    const V upper = rows[i], lower = rows[i | kStep];
    rows[i] = __builtin_shuffle(upper, lower, low);
    rows[i | kStep] = __builtin_shuffle(upper, lower, high);
  }
  if constexpr (kStep > 1) exchange_quarters<kStep / 2, kCount>(rows);
}

// to[j / kStep * pitch + i] = from[i * stride + j] for a square of kCount by kCount, in registers,
// and each kStep-th j.
template <int kCount, int kStep, class T>
STITCH_DEVICE void transpose_square(T* to, i64 pitch, const T* from, i64 stride) {
  using Row = Lanes<sizeof(T), kCount>;
  typename Row::type rows[kCount];
  STITCH_UNROLL
  for (int i = 0; i < kCount; ++i)
    rows[i] = *reinterpret_cast<const typename Row::loose*>(from + i * stride);
  exchange_quarters<kCount / 2, kCount>(rows);
  STITCH_UNROLL
  for (int i = 0; i < kCount; i += kStep)
    *reinterpret_cast<typename Row::loose*>(to + i / kStep * pitch) = rows[i];
}

#ifdef __AVX512BW__
inline constexpr int kRegisterBytes = 64;
#else
inline constexpr int kRegisterBytes = 32;
#endif
template <class T>
inline constexpr int kSquare =
    kRegisterBytes / static_cast<int>(sizeof(T)) < 16 ? kRegisterBytes / static_cast<int>(sizeof(T))
                                                      : 16;

// tile[j * kPitch + i] = p[i * stride + j * kStep] for i < across and j < along; kStep is a power
// of two, at most 8.
template <int kPitch, int kStep, class T>
STITCH_DEVICE void fill_tile(T* tile, const T* p, i64 stride, i64 along, i64 across) {
  constexpr i64 kSide = kSquare<T>, kRows = kSide / kStep;  // of p, and of the tile
  const i64 reached = along > 0 ? (along - 1) * kStep + 1 : 0;
  const i64 whole_across = across - across % kSide, whole_along = reached / kSide * kRows;
  for (i64 i = 0; i < whole_across; i += kSide)
    for (i64 j = 0; j < whole_along; j += kRows)
      transpose_square<kSide, kStep>(tile + j * kPitch + i, kPitch, p + i * stride + j * kStep,
                                     stride);
  for (i64 i = 0; i < across; ++i) {
    const i64 begin = i < whole_across ? whole_along : 0;
    for (i64 j = begin; j < along; ++j) tile[j * kPitch + i] = p[i * stride + j * kStep];
  }
}

#endif

}  // namespace stitch
