// Reduction over threads of one block.
//
// A group of threads is named by bits of tid: threads whose tid differs only in bits of kMask
// combine.  Lane bits meet by shuffles, warp bits through shared memory.  The order of combination
// is fixed, so results repeat to the last bit.
#pragma once

#include "device/stitch/combine.cuh"

namespace stitch {

#if STITCH_CUDA

// The value of the lane whose number differs from this one's by lane_mask; all 32 lanes take part.
template <class T>
STITCH_DEVICE T shuffle_xor(T value, int lane_mask) {
  if constexpr (sizeof(T) == 8) {
    const u64 bits = bit_cast<u64>(value);
    const u64 low = __shfl_xor_sync(0xffffffffu, static_cast<u32>(bits), lane_mask);
    const u64 high = __shfl_xor_sync(0xffffffffu, static_cast<u32>(bits >> 32), lane_mask);
    return bit_cast<T>(low | (high << 32));
  } else if constexpr (sizeof(T) == 4) {
    return bit_cast<T>(__shfl_xor_sync(0xffffffffu, bit_cast<u32>(value), lane_mask));
  } else {
    return static_cast<T>(__shfl_xor_sync(0xffffffffu, static_cast<u32>(value), lane_mask));
  }
}
template <class T, class Index>
STITCH_DEVICE Indexed<T, Index> shuffle_xor(Indexed<T, Index> value, int lane_mask) {
  return {shuffle_xor(value.value, lane_mask), shuffle_xor(value.index, lane_mask)};
}

template <class Op, unsigned kMask, class T>
STITCH_DEVICE T all_reduce_lanes(T value) {
  STITCH_UNROLL
  for (int bit = 16; bit > 0; bit >>= 1)
    if (kMask & bit) value = Op::apply(value, shuffle_xor(value, bit));
  return value;
}

// shared[first | s] over all subsets s of kMask, combined pairwise: one order for a whole group.
template <class Op, unsigned kMask, class T>
STITCH_DEVICE T combine_slots(const T* shared, unsigned first) {
  if constexpr (kMask == 0) {
    return shared[first];
  } else {
    constexpr unsigned kLowest = kMask & (0u - kMask);
    constexpr unsigned kRest = kMask ^ kLowest;
    return Op::apply(combine_slots<Op, kRest>(shared, first),
                     combine_slots<Op, kRest>(shared, first | kLowest));
  }
}

// Bits of `mask` that have a partner of the same rank among those of `other`.
STITCH_DEVICE constexpr unsigned paired_bits(unsigned mask, unsigned other) {
  unsigned paired = 0;
  for (; mask != 0 && other != 0; mask &= mask - 1, other &= other - 1)
    paired |= mask & (0u - mask);
  return paired;
}
// The bits of kFrom in `value`, at the places of kTo: equally many.
template <unsigned kFrom, unsigned kTo>
STITCH_DEVICE unsigned move_bits(unsigned value) {
  constexpr unsigned kLowest = kFrom & (0u - kFrom), kTarget = kTo & (0u - kTo);
  if constexpr (kFrom == 0) {
    return 0;
  } else if constexpr (kFrom / kLowest == kTo / kTarget) {
    return (value & kFrom) / kLowest * kTarget;
  } else {
    const unsigned rest = move_bits<kFrom ^ kLowest, kTo ^ kTarget>(value);
    return rest | (value & kLowest ? kTarget : 0u);
  }
}

// Every thread gets the combination of its group.  kThreads is the size of the block, a power of
// two from 32 to 1024.  shared holds kThreads values, or kThreads / 32 when kMask holds all five
// lane bits, and may be used again right after.  Every thread of the block must call.
template <class Op, unsigned kMask, int kThreads, class T>
STITCH_DEVICE T all_reduce(T value, T* shared) {
  static_assert(kThreads >= 32 && kThreads <= 1024 && (kThreads & (kThreads - 1)) == 0);
  static_assert(kMask < static_cast<unsigned>(kThreads));
  constexpr unsigned kLaneMask = kMask & 31u;
  constexpr unsigned kWarpMask = kMask & ~31u;
  value = all_reduce_lanes<Op, kLaneMask>(value);
  if constexpr (kWarpMask != 0) {
    // Lanes that agree share out the warps: each reads a part of the slots.
    constexpr unsigned kLanes = paired_bits(kLaneMask, kWarpMask);
    constexpr unsigned kParts = paired_bits(kWarpMask, kLaneMask);
    const unsigned thread = static_cast<unsigned>(tid());
    const unsigned first = (thread & ~kWarpMask) | move_bits<kLanes, kParts>(thread);
    if constexpr (kLaneMask == 31u) {  // all lanes agree: one slot per warp
      if ((thread & 31u) == 0) shared[thread >> 5] = value;
      block_barrier();
      value = combine_slots<Op, ((kWarpMask ^ kParts) >> 5)>(shared, first >> 5);
    } else {
      shared[thread] = value;
      block_barrier();
      value = combine_slots<Op, (kWarpMask ^ kParts)>(shared, first);
    }
    value = all_reduce_lanes<Op, kLanes>(value);
    block_barrier();
  }
  return value;
}

#else

template <class Op, unsigned kMask, int kThreads, class T>
STITCH_DEVICE T all_reduce(T value, T*) {
  static_assert(kThreads == 1 && kMask == 0, "a block of the host is one thread");
  return value;
}

#endif

}  // namespace stitch
