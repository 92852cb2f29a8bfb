// Access to memory: scalars, vectors of up to 16 bytes, masked loads and checked indices.
//
// Loads give the stored type; convert.cuh turns it into a register's.  A Vec is aligned to its
// size (at most 16 bytes), so one access of the device moves it; wider ones take several.
#pragma once

#include "device/stitch/prelude.cuh"

namespace stitch {

template <class T, int N>
inline constexpr int kVecBytes =
    static_cast<int>(sizeof(T)) * N < 16 ? static_cast<int>(sizeof(T)) * N : 16;

template <class T, int N>
struct alignas(kVecBytes<T, N>) Vec {
  T v[N];
};

// p + offset is aligned to the size of the vector.
template <int N, class T>
STITCH_DEVICE Vec<T, N> load_vec(const T* p) {
#if STITCH_CUDA
  // Of bytes that are members of words, tests read the words.
  if constexpr (sizeof(T) == 1 && N % 4 == 0)
    return bit_cast<Vec<T, N>>(*reinterpret_cast<const Vec<u32, N / 4>*>(p));
#endif
  return *reinterpret_cast<const Vec<T, N>*>(p);
}
template <class T, int N>
STITCH_DEVICE void store_vec(T* p, Vec<T, N> value) {
  *reinterpret_cast<Vec<T, N>*>(p) = value;
}

#if STITCH_CUDA
// As load_vec of 16 bytes, but before the barriers that follow it in the text: compilers move loads
// of what nobody writes to where they are used.
template <int N, class T>
STITCH_DEVICE Vec<T, N> load_ahead(const T* p) {
  Vec<u32, 4> w;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.v[0]), "=r"(w.v[1]), "=r"(w.v[2]), "=r"(w.v[3])
               : "l"(__cvta_generic_to_global(p))
               : "memory");
  return bit_cast<Vec<T, N>>(w);
}
#else
// One streamed store; lines of 64 bytes are joined from narrower ones.
#if defined(__AVX512F__) && !defined(__clang__)
#define STITCH_STREAM __builtin_ia32_movntps512
inline constexpr i64 kStreamedBytes = 64;
#elif defined(__SSE2__) && !defined(__clang__)
#define STITCH_STREAM __builtin_ia32_movntps
inline constexpr i64 kStreamedBytes = 16;
#endif

// A row to memory, its whole lines past the caches; what has a part of a line is stored.  Ordered
// before what other threads do after end_streams().
template <class T>
STITCH_DEVICE void stream_out(T* to, const T* row, i64 count) {
  u8* const target = reinterpret_cast<u8*>(to);
  const u8* const source = reinterpret_cast<const u8*>(row);
  const i64 bytes = count * static_cast<i64>(sizeof(T));
  const i64 head = min_index(bytes, -reinterpret_cast<i64>(target) & 63);
  i64 at = head;
  if (head > 0) __builtin_memcpy(target, source, static_cast<u64>(head));
#ifdef STITCH_STREAM
  typedef f32 Piece __attribute__((vector_size(kStreamedBytes)));
  for (; at + kStreamedBytes <= bytes; at += kStreamedBytes) {
    Piece piece;
    __builtin_memcpy(&piece, source + at, sizeof(Piece));
    STITCH_STREAM(reinterpret_cast<f32*>(target + at), piece);
  }
#endif
  if (at < bytes) __builtin_memcpy(target + at, source + at, static_cast<u64>(bytes - at));
}
STITCH_DEVICE void end_streams() {
#if defined(__SSE2__)
  __builtin_ia32_sfence();
#endif
}
#endif

// What holds a T in registers, for long: whole words, so that 16-bit elements share one each.  A
// compiler gives every element of a Vec a register of its own.
template <class T>
struct Words {
  u32 word[sizeof(T) / 4];
};
template <class T>
using registers_t = typename Choose<sizeof(T) % 4 == 0, Words<T>, T>::type;
template <class T>
STITCH_DEVICE registers_t<T> to_registers(T value) {
  return bit_cast<registers_t<T>>(value);
}
template <class T>
STITCH_DEVICE T from_registers(registers_t<T> held) {
  return bit_cast<T>(held);
}

#if STITCH_CUDA
// What a thread keeps in shared memory: one value for each of its accesses, in units of up to 16
// bytes, [access][unit][thread].  Neighbouring lanes use neighbouring banks; a thread takes only
// what it has put itself, so no barrier is needed.
template <class T>
struct SlotUnits {
  Vec<u32, 4> unit[sizeof(T) / 16];
};
template <int kThreads, class T>
STITCH_DEVICE void put_slot(u8* slots, int access, T value) {
  if constexpr (sizeof(T) <= 16) {
    reinterpret_cast<T*>(slots)[access * kThreads + tid()] = value;
  } else {
    const auto parts = bit_cast<SlotUnits<T>>(value);
    STITCH_UNROLL
    for (int i = 0; i < static_cast<int>(sizeof(T) / 16); ++i) {
      const int slot = access * static_cast<int>(sizeof(T) / 16) + i;
      reinterpret_cast<Vec<u32, 4>*>(slots)[slot * kThreads + tid()] = parts.unit[i];
    }
  }
}
template <class T, int kThreads>
STITCH_DEVICE T take_slot(const u8* slots, int access) {
  if constexpr (sizeof(T) <= 16) {
    return reinterpret_cast<const T*>(slots)[access * kThreads + tid()];
  } else {
    SlotUnits<T> parts;
    STITCH_UNROLL
    for (int i = 0; i < static_cast<int>(sizeof(T) / 16); ++i) {
      const int slot = access * static_cast<int>(sizeof(T) / 16) + i;
      parts.unit[i] = reinterpret_cast<const Vec<u32, 4>*>(slots)[slot * kThreads + tid()];
    }
    return bit_cast<T>(parts);
  }
}
#endif

// p[offset], or zero without touching memory.
template <class T>
STITCH_DEVICE T load_if(bool inside, const T* p, i64 offset) {
  return inside ? p[offset] : T{};
}
template <int N, class T>
STITCH_DEVICE Vec<T, N> load_vec_if(bool inside, const T* p) {
  return inside ? load_vec<N>(p) : Vec<T, N>{};
}

// What a kernel tells the runtime through `error`; the runtime reads it after the launch.  No
// constants: each would be a variable of the module.
enum ErrorCode : int { kIndexOutOfRange = 1, kDivisionByZero = 2, kAssertionFailed = 3 };

STITCH_DEVICE void report_error(ErrorCode code, int* error) {
#if STITCH_CUDA
  *static_cast<volatile int*>(error) = code;
#else
  __atomic_store_n(error, code, __ATOMIC_RELAXED);
#endif
}
STITCH_DEVICE void report_zero_divisor(int found, int* error) {
  if (found) report_error(kDivisionByZero, error);
}
STITCH_DEVICE void report_bad_index(int found, int* error) {
  if (found) report_error(kIndexOutOfRange, error);
}

STITCH_DEVICE bool assert_true(bool x, int* error) {
  if (!x) report_error(kAssertionFailed, error);
  return x;
}

// The position that index means among size elements, negative ones counted from the end.
STITCH_DEVICE i64 wrap_index(i64 index, i64 size) { return index < 0 ? index + size : index; }
// A constant index is checked even where no element is read; of no rows none is (IndexedRows).
STITCH_DEVICE bool is_index(i64 position, i64 size) {
  return size == 0 || static_cast<u64>(position) < static_cast<u64>(size);
}
// One out of range yields 0, a safe address unless size is 0 (then no element is ever asked for).
STITCH_DEVICE i64 safe_index(i64 position, i64 size) {
  return is_index(position, size) ? position : 0;
}
// Both; one out of range is reported.
STITCH_DEVICE i64 check_index(i64 position, i64 size, int* error) {
  if (!is_index(position, size)) report_error(kIndexOutOfRange, error);
  return safe_index(position, size);
}

// The end of a segment.  A negative one says that an index which made the segments was out of
// range; it is reported, and no position comes before it.
STITCH_DEVICE i64 check_segment(i64 end, int* error) {
  if (end < 0) report_error(kIndexOutOfRange, error);
  return end;
}

}  // namespace stitch
