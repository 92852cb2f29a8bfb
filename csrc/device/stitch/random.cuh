// Philox 4x32-10 (Salmon et al., SC 2011): random words as a function of a key and a counter.
//
// No state: any thread, lane or kernel that asks for an element gets the same number, so masks are
// made again where they are needed.  Four neighbouring elements are the four words of one counter;
// where one thread holds them in unrolled lanes, the compiler computes that counter once.
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

// index / 4 as one value: NVRTC drops the two bits of an unrolled lane, after which four lanes have
// the same block, only where nothing but this shift reads what they are added to.
STITCH_DEVICE u64 quarter(u64 index) {
#if STITCH_CUDA
  u64 block;
  asm("mov.b64 %0, %1;" : "=l"(block) : "l"(index >> 2));
  return block;
#else
  return index >> 2;
#endif
}

// Element `index` of a stream: 32 random bits.
STITCH_DEVICE u32 random_word(i64 key, i64 stream, i64 index) {
  const u64 block = quarter(static_cast<u64>(index)), from = static_cast<u64>(stream);
  const PhiloxWords words =
      philox({static_cast<PhiloxWord>(block), static_cast<PhiloxWord>(block >> 32),
              static_cast<PhiloxWord>(from), static_cast<PhiloxWord>(from >> 32)},
             static_cast<u32>(key), static_cast<u32>(static_cast<u64>(key) >> 32));
  const bool is_odd = index & 1;
  const PhiloxWord low = is_odd ? words.b : words.a;
  const PhiloxWord high = is_odd ? words.d : words.c;
  return static_cast<u32>(index & 2 ? high : low);
}
// The element as a number, uniform in [0, 1) in steps of 2^-24: exact in f32.
STITCH_DEVICE f32 random_uniform(i64 key, i64 stream, i64 index) {
  return static_cast<f32>(static_cast<i32>(random_word(key, stream, index) >> 8)) * 0x1p-24f;
}

}  // namespace stitch
