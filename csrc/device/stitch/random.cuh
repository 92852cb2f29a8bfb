// Philox 4x32-10 (Salmon et al., SC 2011): random words as a function of a key and a counter.
//
// No state: any thread, lane or kernel that asks for an element gets the same number, so masks are
// made again where they are needed.  Four neighbouring elements are the four words of one counter,
// eight of a coarse stream their halves: computed once for unrolled lanes, and for a host's row.
#pragma once

#include "device/stitch/prelude.cuh"

namespace stitch {

// Words are the low 32 bits: a host's vectors multiply lanes of 64, and GCC packs and unpacks
// 32-bit ones around it, 0.9 ns a number instead of 0.55 with AVX-512; with AVX2 it is 1.7 or 1.8.
using PhiloxWord = Choose<STITCH_CUDA, u32, u64>::type;
struct PhiloxWords {
  PhiloxWord a, b, c, d;
};

struct PhiloxProduct {
  PhiloxWord low, high;
};

// In C++, NVRTC would keep all words in 64 bits and multiply those, in three steps.
STITCH_DEVICE PhiloxProduct multiply_words(u32 a, u32 b) {
#if STITCH_CUDA
  u64 product;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
#else
  const u64 product = static_cast<u64>(a) * b;
#endif
  return {static_cast<PhiloxWord>(product), static_cast<PhiloxWord>(product >> 32)};
}

STITCH_DEVICE PhiloxWords philox(PhiloxWords counter, u32 key_low, u32 key_high) {
  STITCH_UNROLL for (int round = 0; round < 10; ++round) {
    const PhiloxProduct first = multiply_words(static_cast<u32>(counter.a), 0xD2511F53u);
    const PhiloxProduct second = multiply_words(static_cast<u32>(counter.c), 0xCD9E8D57u);
    counter = {second.high ^ counter.b ^ key_low, second.low, first.high ^ counter.d ^ key_high,
               first.low};
    key_low += 0x9E3779B9u;
    key_high += 0xBB67AE85u;
  }
  return counter;
}

// Element 4 * block + (lane & 3) of a stream: 32 random bits.
STITCH_DEVICE u32 random_word_of(i64 key, i64 stream, u64 block, i64 lane) {
  const PhiloxWords words =
      philox({static_cast<PhiloxWord>(block), static_cast<PhiloxWord>(block >> 32),
              static_cast<PhiloxWord>(stream), static_cast<PhiloxWord>(stream >> 32)},
             static_cast<u32>(key), static_cast<u32>(static_cast<u64>(key) >> 32));
  const PhiloxWord low = lane & 1 ? words.b : words.a;
  const PhiloxWord high = lane & 1 ? words.d : words.c;
  return static_cast<u32>(lane & 2 ? high : low);
}
STITCH_DEVICE u32 random_word(i64 key, i64 stream, i64 index) {
  return random_word_of(key, stream, static_cast<u64>(index) >> 2, index);
}

// Element 8 * block + (lane & 7) of a coarse stream, whose numbers are compared with a probability:
// 16 random bits, above 16 that the block's elements share.  Those are spread evenly over blocks,
// and decide where the 16 equal the probability's: what is below it is so by all 32 bits.
struct CoarseBits {
  u32 upper, shared;
};
STITCH_DEVICE CoarseBits coarse_bits_of(i64 key, i64 stream, u64 block, i64 lane) {
  const u32 word = random_word_of(key, stream, block, lane >> 1);
  return {lane & 1 ? word : word << 16,
          (static_cast<u32>(block) * 0x9E3779B9u + static_cast<u32>(key)) >> 16};
}
STITCH_DEVICE CoarseBits coarse_bits(i64 key, i64 stream, i64 index) {
  return coarse_bits_of(key, stream, static_cast<u64>(index) >> 3, index);
}

#if STITCH_CUDA
// Of element first + lane, where `first` is a multiple of 4, or 8, and the lanes are those of an
// unrolled loop: so many have one block, which NVRTC sees where nothing but one value is shifted.
STITCH_DEVICE u32 random_word(i64 key, i64 stream, i64 first, int lane) {
  u64 block;
  asm("shr.u64 %0, %1, 2;" : "=l"(block) : "l"(first));
  return random_word_of(key, stream, block + static_cast<u64>(lane >> 2), lane);
}
STITCH_DEVICE CoarseBits coarse_bits(i64 key, i64 stream, i64 first, int lane) {
  u64 block;
  asm("shr.u64 %0, %1, 3;" : "=l"(block) : "l"(first));
  return coarse_bits_of(key, stream, block + static_cast<u64>(lane >> 3), lane);
}
#else
// The word of element first + lane, where kEach have one counter; and of `count` elements, each
// counter once: up to 7 words before theirs and behind are set too.
template <int kEach>
STITCH_DEVICE u32 draw_word(i64 key, i64 stream, i64 first, i64 lane = 0) {
  const u64 block = static_cast<u64>(first) / kEach;
  if constexpr (kEach == 4) return random_word_of(key, stream, block, first + lane);
  const CoarseBits bits = coarse_bits_of(key, stream, block, first + lane);
  return (bits.upper & 0xFFFF0000u) | bits.shared;
}
template <int kEach>
static __attribute__((noinline)) void draw_words(u32* words, i64 count, i64 key, i64 stream,
                                                 i64 first) {
  STITCH_SIMD for (i64 at = first & -kEach; at < first + count; at += kEach) {
    STITCH_UNROLL for (i64 lane = 0; lane < kEach; ++lane) words[at + lane - first] =
        draw_word<kEach>(key, stream, at, lane);
  }
}
#endif

// The element as a number, uniform in [0, 1) in steps of 2^-24: exact in f32.
STITCH_DEVICE f32 to_uniform(u32 word) {
  return static_cast<f32>(static_cast<i32>(word >> 8)) * 0x1p-24f;
}
template <class... Place>
STITCH_DEVICE f32 random_uniform(i64 key, i64 stream, Place... place) {
  return to_uniform(random_word(key, stream, place...));
}
template <class... Place>
STITCH_DEVICE f32 coarse_uniform(i64 key, i64 stream, Place... place) {
  const CoarseBits bits = coarse_bits(key, stream, place...);
  return to_uniform((bits.upper & 0xFFFF0000u) | bits.shared);
}
// Whether the 32 bits are at least `bound`.
template <class... Place>
STITCH_DEVICE bool random_least(i64 bound, i64 key, i64 stream, Place... place) {
  return random_word(key, stream, place...) >= static_cast<u32>(bound);
}
// The same of one from 2^16 to 2^32 - 2^17: 16 of them at least what is left of it, rounded up.
template <class... Place>
STITCH_DEVICE bool coarse_least(i64 bound, i64 key, i64 stream, Place... place) {
  const CoarseBits bits = coarse_bits(key, stream, place...);
  return bits.upper >= ((static_cast<u32>(bound) - bits.shared + 0xFFFFu) & 0xFFFF0000u);
}

}  // namespace stitch
