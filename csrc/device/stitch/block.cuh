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

STITCH_DEVICE constexpr unsigned highest_bit(unsigned mask) {
  while ((mask & (mask - 1)) != 0) mask &= mask - 1;
  return mask;
}

// Of kN values, a power of two, the one whose number is this thread's bits of kLanes: two lanes
// exchange halves, so that N values take N - 1 shuffles and not N for each bit.  [8 values, 32
// lanes]: 4 + 2 + 1 shuffles leave one value a lane, and all_reduce_lanes two more bits.
template <class Op, unsigned kLanes, int kN, class T>
STITCH_DEVICE T exchange_halves(const T* values) {
  if constexpr (kN == 1) {
    return values[0];
  } else {
    constexpr unsigned kBit = highest_bit(kLanes);
    const bool is_upper = static_cast<unsigned>(tid()) & kBit;
    T half[kN / 2];
    STITCH_UNROLL
    for (int n = 0; n < kN / 2; ++n) {
      const T own = is_upper ? values[n + kN / 2] : values[n];
      const T other = is_upper ? values[n] : values[n + kN / 2];
      half[n] = Op::apply(own, shuffle_xor(other, static_cast<int>(kBit)));
    }
    return exchange_halves<Op, (kLanes ^ kBit), kN / 2>(half);
  }
}
// The inverse: all values for each of the lanes, from one value a lane.
template <unsigned kLanes, int kN, class T>
STITCH_DEVICE void gather_halves(T value, T* values) {
  if constexpr (kN == 1) {
    values[0] = value;
  } else {
    constexpr unsigned kBit = highest_bit(kLanes);
    const bool is_upper = static_cast<unsigned>(tid()) & kBit;
    T half[kN / 2];
    gather_halves<(kLanes ^ kBit), kN / 2>(value, half);
    STITCH_UNROLL
    for (int n = 0; n < kN / 2; ++n) {
      const T other = shuffle_xor(half[n], static_cast<int>(kBit));
      values[n] = is_upper ? other : half[n];
      values[n + kN / 2] = is_upper ? half[n] : other;
    }
  }
}

STITCH_DEVICE constexpr int count_subsets(unsigned mask) {
  return mask == 0 ? 1 : 2 * count_subsets(mask & (mask - 1));
}
// The highest bits of `mask`, which number `values`, a power of two.
STITCH_DEVICE constexpr unsigned bits_for(int values, unsigned mask) {
  unsigned bits = 0;
  for (; values > 1; values /= 2, mask ^= highest_bit(mask)) bits |= highest_bit(mask);
  return bits;
}

// kN values of a group of whole warps, in shared[kN * kThreads]: each warp combines one.  [8
// values, 8 warps]: 3 barriers and 24 accesses a thread, where each value by itself takes 16
// and 72.
template <class Op, unsigned kWarpMask, int kThreads, int kN, class T>
STITCH_DEVICE void share_out(T* values, T* shared) {
  constexpr unsigned kTaken = bits_for(kN, kWarpMask);  // which of the values a thread combines
  const unsigned thread = static_cast<unsigned>(tid()), first = thread & ~kWarpMask;
  T* const own = shared + move_bits<kTaken, static_cast<unsigned>(kN - 1)>(thread) * kThreads;
  STITCH_UNROLL
  for (int n = 0; n < kN; ++n) shared[n * kThreads + static_cast<int>(thread)] = values[n];
  block_barrier();
  const T value = combine_slots<Op, kWarpMask>(own, first);
  if constexpr (kTaken != kWarpMask) block_barrier();  // others combine the same
  if ((thread & (kWarpMask ^ kTaken)) == 0) own[first] = value;
  block_barrier();
  STITCH_UNROLL
  for (int n = 0; n < kN; ++n) values[n] = shared[n * kThreads + static_cast<int>(first)];
  block_barrier();
}

// Every thread gets the combinations of its group: of values[0], of values[1], ...  kThreads is the
// size of the block, a power of two from 32 to 1024.  shared holds kSlots times kThreads values and
// may be used again right after.  Every thread of the block must call.
template <class Op, unsigned kMask, int kThreads, int kN, int kSlots = 1, class T>
STITCH_DEVICE void all_reduce_each(T* values, T* shared) {
  static_assert(kThreads >= 32 && kThreads <= 1024 && (kThreads & (kThreads - 1)) == 0);
  static_assert(kMask < static_cast<unsigned>(kThreads));
  constexpr unsigned kLaneMask = kMask & 31u;
  constexpr unsigned kWarpMask = kMask & ~31u;
  // Values that lanes can hold apart, or that whole warps share out.
  constexpr int kMost = kLaneMask == 0 ? kSlots : count_subsets(kLaneMask);
  constexpr int kWhole = static_cast<int>(highest_bit(kN));
  constexpr int kFirst = kWhole < kMost ? kWhole : kMost;
  if constexpr (kFirst < kN) {
    all_reduce_each<Op, kMask, kThreads, kFirst, kSlots>(values, shared);
    all_reduce_each<Op, kMask, kThreads, kN - kFirst, kSlots>(values + kFirst, shared);
  } else if constexpr (kLaneMask == 0 && kN > 1) {
    share_out<Op, kWarpMask, kThreads, kN>(values, shared);
  } else {
    constexpr unsigned kApart = bits_for(kN, kLaneMask);
    constexpr unsigned kAgreed = kLaneMask ^ kApart;  // lanes that hold the same value
    T value = all_reduce_lanes<Op, kAgreed>(exchange_halves<Op, kApart, kN>(values));
    if constexpr (kWarpMask != 0) {
      // Lanes that agree share out the warps: each reads a part of the slots.
      constexpr unsigned kLanes = paired_bits(kAgreed, kWarpMask);
      constexpr unsigned kParts = paired_bits(kWarpMask, kAgreed);
      const unsigned thread = static_cast<unsigned>(tid());
      const unsigned first = (thread & ~kWarpMask) | move_bits<kLanes, kParts>(thread);
      if constexpr (kLaneMask == 31u) {  // one slot per value and warp
        const unsigned row = (thread & kApart) / (32 / kN) * (kThreads / 32);
        if ((thread & kAgreed) == 0) shared[row + (thread >> 5)] = value;
        block_barrier();
        value = combine_slots<Op, ((kWarpMask ^ kParts) >> 5)>(shared, row + (first >> 5));
      } else {
        shared[thread] = value;
        block_barrier();
        value = combine_slots<Op, (kWarpMask ^ kParts)>(shared, first);
      }
      value = all_reduce_lanes<Op, kLanes>(value);
      block_barrier();
    }
    gather_halves<kApart, kN>(value, values);
  }
}

// As above, of one value: shared holds kThreads / 32 values when kMask holds all five lane bits.
template <class Op, unsigned kMask, int kThreads, class T>
STITCH_DEVICE T all_reduce(T value, T* shared) {
  all_reduce_each<Op, kMask, kThreads, 1>(&value, shared);
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
