// Philox 4x32-10 (Salmon et al., SC 2011): random words as a function of a key and a counter.
//
// No state: any thread, lane or kernel that asks for an element gets the same number, so masks are
// made again where they are needed.  Four neighbouring elements are the four words of one counter;
// where one thread holds them in unrolled lanes, the counter is computed once.
#pragma once

#include "device/stitch/prelude.cuh"

namespace stitch {

// Words are the low 32 bits.  AVX-512 multiplies lanes of 64 bits, and gcc packs and unpacks 32-bit
// ones around it: 5.3 ns a number instead of 4.0.  Without it, 64-bit words take 13.4 ns, not 9.5.
#if !STITCH_CUDA && defined(__AVX512DQ__)
using PhiloxWord = u64;
#else
using PhiloxWord = u32;
#endif

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
  const u64 from = static_cast<u64>(stream);
  const PhiloxWords words =
      philox({static_cast<PhiloxWord>(block), static_cast<PhiloxWord>(block >> 32),
              static_cast<PhiloxWord>(from), static_cast<PhiloxWord>(from >> 32)},
             static_cast<u32>(key), static_cast<u32>(static_cast<u64>(key) >> 32));
  const bool is_odd = lane & 1;
  const PhiloxWord low = is_odd ? words.b : words.a;
  const PhiloxWord high = is_odd ? words.d : words.c;
  return static_cast<u32>(lane & 2 ? high : low);
}
STITCH_DEVICE u32 random_word(i64 key, i64 stream, i64 index) {
  return random_word_of(key, stream, static_cast<u64>(index) >> 2, index);
}
#if STITCH_CUDA
// Of element first + lane, where `first` is a multiple of 4 and the lanes are those of an unrolled
// loop: four of them have one block, which NVRTC sees where nothing but one value is shifted.
STITCH_DEVICE u32 random_word(i64 key, i64 stream, i64 first, int lane) {
  u64 block;
  asm("shr.u64 %0, %1, 2;" : "=l"(block) : "l"(first));
  return random_word_of(key, stream, block + static_cast<u64>(lane >> 2), lane);
}
#endif

// The element as a number, uniform in [0, 1) in steps of 2^-24: exact in f32.
template <class... Place>
STITCH_DEVICE f32 random_uniform(i64 key, i64 stream, Place... place) {
  const u32 word = random_word(key, stream, place...);
  return static_cast<f32>(static_cast<i32>(word >> 8)) * 0x1p-24f;
}

}  // namespace stitch
