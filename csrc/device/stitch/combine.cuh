// What reductions combine with: an identity and an associative, commutative apply.
//
// Sum, Prod, Max, Min, Any and All work on register types; ArgMax and ArgMin on Indexed values,
// where the first index wins ties and NaN wins over numbers.  Max and Min hand NaN on.
#pragma once

#include "device/stitch/math_basic.cuh"

namespace stitch {

struct Sum {
  template <class T>
  STITCH_DEVICE_MEMBER T identity() {
    return T(0);
  }
  template <class T>
  STITCH_DEVICE_MEMBER T apply(T a, T b) {
    return add(a, b);
  }
};

// sum += term, and rest += what that rounds off (Knuth's TwoSum): the two hold a sum of many terms
// to an ULP of the largest partial sum, whatever their order.
STITCH_DEVICE void add_exactly(f64& sum, f64& rest, f64 term) {
  const f64 both = sum + term, added = both - sum;
  rest += (sum - (both - added)) + (term - added);
  sum = both;
}
// What an infinite sum rounds off is NaN.
STITCH_DEVICE f64 join_sum(f64 sum, f64 rest) { return isnan(rest) ? sum : sum + rest; }

#if !STITCH_CUDA
// A sum for each lane of a vector, in registers over the whole row, and in the end by halves: GCC
// adds the lanes of an `omp simd` reduction one after the other.
template <int n>
struct LaneSums {
  alignas(64) f64 at[n] = {};
  f64& operator[](i64 lane) { return at[lane]; }
};
template <int n>
STITCH_DEVICE f64 add_lanes(const LaneSums<n>& lanes) {
  if constexpr (n == 1) {
    return lanes.at[0];
  } else {
    typedef f64 Half __attribute__((vector_size(n / 2 * sizeof(f64))));
    Half low, high;
    __builtin_memcpy(&low, lanes.at, sizeof(Half));
    __builtin_memcpy(&high, lanes.at + n / 2, sizeof(Half));
    low += high;
    LaneSums<n / 2> half;
    __builtin_memcpy(half.at, &low, sizeof(Half));
    return add_lanes(half);
  }
}
#endif

struct Prod {
  template <class T>
  STITCH_DEVICE_MEMBER T identity() {
    return T(1);
  }
  template <class T>
  STITCH_DEVICE_MEMBER T apply(T a, T b) {
    return mul(a, b);
  }
};

struct Max {
  template <class T>
  STITCH_DEVICE_MEMBER T identity() {
    return kLowest<T>;
  }
  template <class T>
  STITCH_DEVICE_MEMBER T apply(T a, T b) {
    return maximum(a, b);
  }
};

struct Min {
  template <class T>
  STITCH_DEVICE_MEMBER T identity() {
    return kHighest<T>;
  }
  template <class T>
  STITCH_DEVICE_MEMBER T apply(T a, T b) {
    return minimum(a, b);
  }
};

// Of values in order; it has no identity.
struct Last {
  template <class T>
  STITCH_DEVICE_MEMBER T apply(T, T b) {
    return b;
  }
};

struct Any {
  template <class T>
  STITCH_DEVICE_MEMBER T identity() {
    return T(0);
  }
  template <class T>
  STITCH_DEVICE_MEMBER T apply(T a, T b) {
    return logical_or(a, b);
  }
};

struct All {
  template <class T>
  STITCH_DEVICE_MEMBER T identity() {
    return T(1);
  }
  template <class T>
  STITCH_DEVICE_MEMBER T apply(T a, T b) {
    return logical_and(a, b);
  }
};

// A value and where it stands.
template <class T, class Index = i64>
struct Indexed {
  using value_type = T;
  T value;
  Index index;
};
template <class T>
using Indexed32 = Indexed<T, i32>;

// Whether a precedes b where `larger` is a.value > b.value, or < for ArgMin.
template <class I>
STITCH_DEVICE bool precedes(I a, I b, bool larger) {
  const bool a_nan = isnan(a.value), b_nan = isnan(b.value);
  const bool tie = (a.value == b.value) | (a_nan & b_nan);
  return (larger & !b_nan) | (a_nan & !b_nan) | (tie & (a.index < b.index));
}

// The identity stands first: what equals it everywhere is found there.  `next` combines with what
// stands behind all that has been seen, and so need not compare indices.
struct ArgMax {
  template <class I>
  STITCH_DEVICE_MEMBER I identity() {
    return {kLowest<typename I::value_type>, 0};
  }
  template <class I>
  STITCH_DEVICE_MEMBER I apply(I a, I b) {
    return precedes(a, b, a.value > b.value) ? a : b;
  }
  template <class I>
  STITCH_DEVICE_MEMBER I next(I seen, I b) {
    return isnan(seen.value) | (b.value <= seen.value) ? seen : b;
  }
};

struct ArgMin {
  template <class I>
  STITCH_DEVICE_MEMBER I identity() {
    return {kHighest<typename I::value_type>, 0};
  }
  template <class I>
  STITCH_DEVICE_MEMBER I apply(I a, I b) {
    return precedes(a, b, a.value < b.value) ? a : b;
  }
  template <class I>
  STITCH_DEVICE_MEMBER I next(I seen, I b) {
    return isnan(seen.value) | (b.value >= seen.value) ? seen : b;
  }
};

}  // namespace stitch
