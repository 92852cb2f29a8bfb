// Conversions between element types with eager PyTorch's results, and the types of registers.
//
//  * to f16, bf16 and e5m2: round to nearest even through f32, NaN stays NaN, overflow gives
//    infinity; to e4m3, which has none, the largest number;
//  * to bool: anything but zero is true, NaN included;
//  * float to integer: truncation.  u8 goes through i64, other narrow ones through i32, and then
//    wrap.  What does not fit is undefined in eager too: here it is what the processor's
//    instruction gives.
// All forms are free of branches, so that the host compiler vectorises them.
#pragma once

#include "device/stitch/prelude.cuh"

namespace stitch {

// The type in which a stored T is computed: f32 where T is one of the floats that have `bits`.
template <class T>
struct ComputeType {
  using type = T;
};
template <class T>
  requires requires(T x) { x.bits; }
struct ComputeType<T> {
  using type = f32;
};
template <>
struct ComputeType<boolean> {
  using type = bool;
};
template <class T>
using compute_t = typename ComputeType<T>::type;

template <class T>
STITCH_DEVICE T widen(T x) {
  return x;
}
STITCH_DEVICE bool widen(boolean x) { return x.byte != 0; }
STITCH_DEVICE f32 widen(bf16 x) {
#if STITCH_CUDA
  // Of the upper half of a word one instruction, where a shift of what a shift yields takes three.
  f32 y;
  asm("mov.b32 %0, {%1, %2};" : "=f"(y) : "h"(u16(0)), "h"(x.bits));
  return y;
#else
  return bit_cast<f32>(static_cast<u32>(x.bits) << 16);
#endif
}

#if STITCH_CUDA

STITCH_DEVICE f32 widen(f16 x) {
  f32 y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
STITCH_DEVICE i32 round_to_i32(f32 x) { return __float2int_rn(x); }  // half to even
STITCH_DEVICE f16 narrow_f16(f32 x) {
  f16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
STITCH_DEVICE bf16 narrow_bf16(f32 x) {
  bf16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}

#else

// f16 to f32: moving exponent and mantissa into place and multiplying by 2^-112 is exact for
// normal, infinite and NaN inputs; subnormals are the low bits of a float in [0.5, 1) less 0.5.
STITCH_DEVICE f32 widen(f16 x) {
  const u32 sign = static_cast<u32>(x.bits & 0x8000u) << 16;
  const u32 magnitude = static_cast<u32>(x.bits & 0x7fffu);
  const f32 normal = bit_cast<f32>((magnitude << 13) + (0xe0u << 23)) * 0x1p-112f;
  const f32 subnormal = bit_cast<f32>(magnitude | (126u << 23)) - 0.5f;
  const u32 bits = magnitude < 0x400u ? bit_cast<u32>(subnormal) : bit_cast<u32>(normal);
  return bit_cast<f32>(sign | bits);
}

// f32 to f16: adding a power of two 2^13 times the ulp that f16 has at x makes the float adder
// round at the right bit; the two multiplications turn overflow into infinity.
STITCH_DEVICE f16 narrow_f16(f32 x) {
  const u32 bits = bit_cast<u32>(x);
  const u32 magnitude = bits & 0x7fffffffu;
  const f32 saturated = bit_cast<f32>(magnitude) * 0x1p112f * 0x1p-110f;
  const u32 exponent = magnitude & 0x7f800000u;
  const u32 at_least = exponent < 0x38800000u ? 0x38800000u : exponent;
  const u32 rounded = bit_cast<u32>(bit_cast<f32>(at_least + 0x07800000u) + saturated);
  const u32 finite = ((rounded >> 13) & 0x7c00u) + (rounded & 0xfffu);
  const u32 result = magnitude > 0x7f800000u ? 0x7e00u : finite;
  return {static_cast<u16>(result | ((bits >> 16) & 0x8000u))};
}

// One choice in 32 bits: of two results of 16, compilers make vectors of both and widen them again.
STITCH_DEVICE bf16 narrow_bf16(f32 x) {
  const u32 bits = bit_cast<u32>(x);
  const u32 rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return {static_cast<u16>((x != x ? bits | 0x400000u : rounded) >> 16)};
}

#endif

// 8-bit floats from magnitudes of f32: subnormals are rounded by the adder, which a power of two
// brings to their last bit, the others in their bits.
template <int kSignificand, int kBias>
STITCH_DEVICE u32 narrow_f8(u32 magnitude) {
  constexpr int kDropped = 23 - kSignificand;
  constexpr u32 kSmallest = static_cast<u32>(128 - kBias) << 23;
  constexpr u32 kPower = static_cast<u32>(128 - kBias + kDropped) << 23;
  const u32 subnormal = bit_cast<u32>(bit_cast<f32>(magnitude) + bit_cast<f32>(kPower)) - kPower;
  const u32 half = ((1u << (kDropped - 1)) - 1u) + ((magnitude >> kDropped) & 1u);
  const u32 normal = (magnitude - kSmallest + (1u << 23) + half) >> kDropped;
  return magnitude < kSmallest ? subnormal : normal;
}
STITCH_DEVICE e4m3 narrow_e4m3(f32 x) {
  const u32 bits = bit_cast<u32>(x), magnitude = bits & 0x7fffffffu;
  const u32 rounded = narrow_f8<3, 7>(magnitude), finite = rounded < 0x7eu ? rounded : 0x7eu;
  const u32 result = magnitude > 0x7f800000u ? 0x7fu : finite;
  return {static_cast<u8>(result | ((bits >> 24) & 0x80u))};
}
STITCH_DEVICE e5m2 narrow_e5m2(f32 x) {
  const u32 bits = bit_cast<u32>(x), magnitude = bits & 0x7fffffffu;
  const u32 infinite = magnitude > 0x7f800000u ? 0x7fu : 0x7cu;
  const u32 result = magnitude >= 0x47800000u ? infinite : narrow_f8<2, 15>(magnitude);
  return {static_cast<u8>(result | ((bits >> 24) & 0x80u))};
}
STITCH_DEVICE f32 widen(e5m2 x) { return widen(f16{static_cast<u16>(x.bits << 8)}); }
STITCH_DEVICE f32 widen(e4m3 x) {
  const u32 magnitude = x.bits & 0x7fu, sign = static_cast<u32>(x.bits & 0x80u) << 24;
  const f32 subnormal = static_cast<f32>(static_cast<i32>(magnitude)) * 0x1p-9f;
  const u32 normal = (magnitude << 20) + (120u << 23);
  const u32 bits = magnitude < 8u ? bit_cast<u32>(subnormal) : normal;
  return bit_cast<f32>(sign | (magnitude == 0x7fu ? 0x7fc00000u : bits));
}

template <class To, class From>
STITCH_DEVICE To convert(From stored) {
  const auto x = widen(stored);
  using X = compute_t<From>;
  if constexpr (kSame<To, From>)
    return stored;
  else if constexpr (kSame<To, bool>)
    return x != X(0);
  else if constexpr (kSame<To, boolean>)
    return {static_cast<u8>(x != X(0))};
  else if constexpr (kSame<To, f16>)
    return narrow_f16(static_cast<f32>(x));
  else if constexpr (kSame<To, bf16>)
    return narrow_bf16(static_cast<f32>(x));
  else if constexpr (kSame<To, e4m3>)
    return narrow_e4m3(static_cast<f32>(x));
  else if constexpr (kSame<To, e5m2>)
    return narrow_e5m2(static_cast<f32>(x));
  else if constexpr (kIsFloat<X> && kSame<To, u8>)
    return static_cast<u8>(static_cast<i64>(x));
  else if constexpr (kIsFloat<X> && sizeof(To) < 4)
    return static_cast<To>(static_cast<i32>(x));
  else if constexpr (kSame<X, bool>)
    return x ? To(1) : To(0);  // gcc does not vectorise the conversion of a comparison
  else
    return static_cast<To>(x);
}

// Of an integer that a conversion from the same type T has made.  gcc takes the two conversions for
// a trunc, which keeps the sign of -0.3 and what no integer holds; of two halves it does not.
template <class T, class Integer>
STITCH_DEVICE T convert_back(Integer x) {
#if !STITCH_CUDA
  if constexpr (sizeof(Integer) >= 4) {
    constexpr i64 kUnit = i64(1) << (4 * sizeof(Integer));
    const f64 high = static_cast<f64>(x >> (4 * sizeof(Integer)));
    const f64 low = static_cast<f64>(x & static_cast<Integer>(kUnit - 1));
    return static_cast<T>(high * static_cast<f64>(kUnit) + low);
  }
#endif
  return static_cast<T>(x);
}

// The f32 that storing x as T and loading it again would give.
template <class T>
STITCH_DEVICE f32 round_to(f32 x) {
#if STITCH_CUDA
  // The upper half of a pair: packing is twice to eight times as fast as converting one.
  if constexpr (kSame<T, bf16>) {
    u32 bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(x), "f"(0.0f));
    return bit_cast<f32>(bits);
  }
#endif
  return convert<f32>(convert<T>(x));
}

}  // namespace stitch
