// What every kernel starts with: types, bit casts, limits and the words that differ per target.
//
// One text serves two targets.  Under NVRTC a function is a device function and a block has
// kThreads threads; under the host compiler a block is one thread and loops vectorise.  Kernel
// text lives inside `namespace stitch`, so that its overloads hide the compiler's own `exp`.
// Nothing here includes a header: the host half uses compiler builtins only.
#pragma once

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)
#define STITCH_CUDA 1
#else
#define STITCH_CUDA 0
#endif

#define STITCH_PRAGMA(text) _Pragma(#text)

#if STITCH_CUDA
#define STITCH_DEVICE __device__ __forceinline__
#define STITCH_KERNEL(name, threads, min_blocks) \
  extern "C" __global__ void __launch_bounds__(threads, min_blocks) name
#define STITCH_SHARED(T, name, count) __shared__ alignas(16) T name[count]
// Shared memory beyond 48 KB; the launch says how much.
#define STITCH_DYNAMIC_SHARED(name, bytes) alignas(16) extern __shared__ unsigned char name[]
#define STITCH_ARRAY(T, name, count) T name[count]
#define STITCH_SIMD
#define STITCH_DEVICE_MEMBER static STITCH_DEVICE
#define STITCH_UNROLL STITCH_PRAGMA(unroll)
#define STITCH_UNROLL_IN_PART STITCH_PRAGMA(unroll 8)
#define STITCH_LIBM(name) ::name
#define STITCH_LIBM_F32(name) ::name##f
#else
#define STITCH_DEVICE static inline __attribute__((always_inline, unused))
#define STITCH_DEVICE_MEMBER STITCH_DEVICE
// GCC 12 misplaces a leaf's frame by 8 bytes where only copies of the stack pointer reach aligned
// arrays in it, such as the partial results of `omp simd`.  A kernel that expects nothing of its
// caller's stack aligns its own: one instruction.
#if defined(__x86_64__)
#define STITCH_ALIGN_STACK __attribute__((force_align_arg_pointer))
#else
#define STITCH_ALIGN_STACK
#endif
#define STITCH_KERNEL(name, threads, min_blocks) extern "C" STITCH_ALIGN_STACK void name
#define STITCH_SHARED(T, name, count) alignas(64) T name[count]
#define STITCH_DYNAMIC_SHARED(name, bytes) alignas(64) unsigned char name[bytes]
#define STITCH_ARRAY(T, name, count) alignas(64) T name[count]
// An array in the scratch of the thread that runs the kernel.
#define STITCH_SCRATCH(T, name, offset) \
  T* const __restrict__ name = static_cast<T*>(__builtin_assume_aligned(scratch + (offset), 64))
#define STITCH_SIMD STITCH_PRAGMA(omp simd)
#define STITCH_UNROLL STITCH_PRAGMA(GCC unroll 16)
#define STITCH_LIBM(name) __builtin_##name
#define STITCH_LIBM_F32(name) __builtin_##name##f
#endif

namespace stitch {

using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long long;
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using f32 = float;
using f64 = double;

#if !STITCH_CUDA
// The same number, which compilers no longer know.
STITCH_DEVICE i64 hide(i64 number) {
  asm("" : "+r"(number));
  return number;
}
#endif

// Storage only: values of these types are converted where they are loaded (convert.cuh).
struct alignas(2) f16 {
  u16 bits;
};
struct alignas(2) bf16 {
  u16 bits;
};
struct e4m3 {  // no infinities: what overflows is the largest number
  u8 bits;
};
struct e5m2 {
  u8 bits;
};
struct boolean {  // any non-zero byte is true
  u8 byte;
};

template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;

template <class T>
inline constexpr bool kIsFloat = kSame<T, f32> || kSame<T, f64>;
template <class T>
inline constexpr bool kIsSigned = T(-1) < T(1);

template <bool kCondition, class A, class B>
struct Choose {
  using type = A;
};
template <class A, class B>
struct Choose<false, A, B> {
  using type = B;
};
// The unsigned type of T's bits, in which arithmetic on integers wraps.
template <class T>
using wrap_t = typename Choose<sizeof(T) == 8, u64, u32>::type;

// False for NaN.  Compilers warn where an unsigned number is compared with zero.
template <class T>
STITCH_DEVICE constexpr bool is_negative(T x) {
  if constexpr (kIsSigned<T>)
    return x < T(0);
  else
    return false;
}

template <class To, class From>
STITCH_DEVICE constexpr To bit_cast(From value) {
  return __builtin_bit_cast(To, value);
}

template <class T>
inline constexpr T kInfinity = static_cast<T>(__builtin_bit_cast(f64, 0x7ff0000000000000ull));
template <class T>
inline constexpr T kQuietNan = static_cast<T>(__builtin_bit_cast(f64, 0x7ff8000000000000ull));

template <class T>
STITCH_DEVICE constexpr T infinity() {
  return kInfinity<T>;
}
template <class T>
STITCH_DEVICE constexpr T quiet_nan() {
  return kQuietNan<T>;
}

// The values from which a maximum and a minimum start: infinities for floats.
template <class T>
STITCH_DEVICE constexpr T find_highest() {
  if constexpr (kIsFloat<T>)
    return kInfinity<T>;
  else if constexpr (kSame<T, bool>)
    return true;
  else if constexpr (kIsSigned<T>)
    return static_cast<T>((1ull << (8 * sizeof(T) - 1)) - 1);
  else
    return static_cast<T>(~0ull);
}
template <class T>
STITCH_DEVICE constexpr T find_lowest() {
  if constexpr (kIsFloat<T>)
    return -kInfinity<T>;
  else if constexpr (!kSame<T, bool> && kIsSigned<T>)
    return static_cast<T>(-find_highest<T>() - 1);
  else
    return T(0);
}
template <class T>
inline constexpr T kHighest = find_highest<T>();
template <class T>
inline constexpr T kLowest = find_lowest<T>();

STITCH_DEVICE constexpr i64 min_index(i64 a, i64 b) { return a < b ? a : b; }
STITCH_DEVICE constexpr i64 max_index(i64 a, i64 b) { return a > b ? a : b; }

#if STITCH_CUDA
STITCH_DEVICE int tid() { return static_cast<int>(threadIdx.x); }
STITCH_DEVICE i64 block_index() { return static_cast<i64>(blockIdx.x); }
STITCH_DEVICE void block_barrier() { __syncthreads(); }
#else
STITCH_DEVICE constexpr int tid() { return 0; }
STITCH_DEVICE void block_barrier() {}
#endif

}  // namespace stitch
