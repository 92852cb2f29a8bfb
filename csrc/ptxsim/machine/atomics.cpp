#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ptxsim/machine/interpret.h"
#include "ptxsim/machine/memory_operations.h"

namespace stitch::ptxsim {
namespace {

// T: the type as the host computes it.
template <class T>
T value_of(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <class T>
uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class T>
uint64_t add_integers(uint64_t old, uint64_t a, uint64_t) {
  return static_cast<T>(old + a);
}

template <class T, bool kLeast>
uint64_t extreme(uint64_t old, uint64_t a, uint64_t) {
  return (value_of<T>(old) < value_of<T>(a)) == kLeast ? old : a;
}
uint64_t and_bits(uint64_t old, uint64_t a, uint64_t) { return old & a; }
uint64_t or_bits(uint64_t old, uint64_t a, uint64_t) { return old | a; }
uint64_t xor_bits(uint64_t old, uint64_t a, uint64_t) { return old ^ a; }
uint64_t exchange(uint64_t, uint64_t a, uint64_t) { return a; }
uint64_t compare_and_swap(uint64_t old, uint64_t a, uint64_t b) { return old == a ? b : old; }
uint64_t increment(uint64_t old, uint64_t a, uint64_t) { return old >= a ? 0 : old + 1; }
uint64_t decrement(uint64_t old, uint64_t a, uint64_t) { return old == 0 || old > a ? a : old - 1; }

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

template <bool kFlush>
uint64_t add_singles(uint64_t old, uint64_t a, uint64_t) {
  float x = value_of<float>(old), y = value_of<float>(a);
  if (kFlush) x = flushed(x), y = flushed(y);
  const float sum = kFlush ? flushed(x + y) : x + y;
  return std::isnan(sum) ? 0x7fffffffu : bits_of(sum);
}

uint64_t add_doubles(uint64_t old, uint64_t a, uint64_t) {
  const double sum = value_of<double>(old) + value_of<double>(a);
  return std::isnan(sum) ? 0xfff8000000000000u : bits_of(sum);
}

// fp32 has more than twice the digits of either 16-bit format, so rounding its sum again errs once.
uint64_t add_halves(uint64_t old, uint64_t a, uint64_t) {
  const auto sum = static_cast<_Float16>(static_cast<float>(value_of<_Float16>(old)) +
                                         static_cast<float>(value_of<_Float16>(a)));
  return std::isnan(static_cast<float>(sum)) ? 0x7fffu : bits_of(sum);
}

uint64_t add_bfloats(uint64_t old, uint64_t a, uint64_t) {
  const float sum = value_of<float>((old & 0xffff) << 16) + value_of<float>((a & 0xffff) << 16);
  if (std::isnan(sum)) return 0x7fffu;
  const uint64_t bits = bits_of(sum);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

template <AtomicUpdate kAdd>
uint64_t add_pairs(uint64_t old, uint64_t a, uint64_t b) {
  return kAdd(old & 0xffff, a & 0xffff, b) | kAdd(old >> 16, a >> 16, b) << 16;
}

// What is met often first.
struct Atomic {
  Word operation;
  std::array<Type, 3> types;  // the rest of them: none
  AtomicUpdate update;
};
constexpr Atomic kAtomics[] = {
    {Word::add, {Type::f32}, add_singles<false>},
    {Word::add, {Type::u32, Type::s32}, add_integers<uint32_t>},
    {Word::add, {Type::u64, Type::s64}, add_integers<uint64_t>},
    {Word::add, {Type::f16}, add_halves},
    {Word::add, {Type::bf16}, add_bfloats},
    {Word::add, {Type::f16x2}, add_pairs<add_halves>},
    {Word::add, {Type::bf16x2}, add_pairs<add_bfloats>},
    {Word::add, {Type::f64}, add_doubles},
    {Word::cas, {Type::b32, Type::b64, Type::b16}, compare_and_swap},
    {Word::exch, {Type::b32, Type::b64}, exchange},
    {Word::and_, {Type::b32, Type::b64}, and_bits},
    {Word::or_, {Type::b32, Type::b64}, or_bits},
    {Word::xor_, {Type::b32, Type::b64}, xor_bits},
    {Word::inc, {Type::u32}, increment},
    {Word::dec, {Type::u32}, decrement},
    {Word::min, {Type::u32}, extreme<uint32_t, true>},
    {Word::min, {Type::s32}, extreme<int32_t, true>},
    {Word::min, {Type::u64}, extreme<uint64_t, true>},
    {Word::min, {Type::s64}, extreme<int64_t, true>},
    {Word::max, {Type::u32}, extreme<uint32_t, false>},
    {Word::max, {Type::s32}, extreme<int32_t, false>},
    {Word::max, {Type::u64}, extreme<uint64_t, false>},
    {Word::max, {Type::s64}, extreme<int64_t, false>},
};

uint64_t read_bits(Warp& warp, uint32_t unit, int lane, uint32_t bytes) {
  if (unit == kNoUnit) return 0;
  if (bytes == 2) return warp.lanes<uint16_t>(unit)[lane];
  return bytes == 4 ? warp.lanes<uint32_t>(unit)[lane] : warp.lanes<uint64_t>(unit)[lane];
}

// One after the other in the order of lanes.
void update_lanes(Warp& warp, const Instruction& instruction, const WarpAccess& access,
                  AtomicUpdate update) {
  Grid& grid = *warp.block->grid;
  const uint32_t* sources = instruction.operands.data() + instruction.destinations + 1;
  uint32_t allowed = access.mask;
  const int last = instruction.operand_count - instruction.destinations - 1;
  if (grid.memory) {
    uint32_t known = warp.valid[sources[0]];
    if (last > 1 && sources[1] != kNoUnit) known &= warp.valid[sources[1]];
    allowed = grid.memory->check(warp, instruction, access, &known);
  }
  const Origin origin = origin_of(warp, access.space);
  const uint32_t result = instruction.destinations ? instruction.operands[0] : kNoUnit;
  for (LaneSet rest(allowed); rest; ++rest) {
    const int lane = *rest;
    auto* at = reinterpret_cast<unsigned char*>(static_cast<uintptr_t>(
        origin.base + origin.stride * static_cast<uint64_t>(lane) + access.addresses[lane]));
    uint64_t old = 0;
    std::memcpy(&old, at, access.bytes);
    if (grid.old) grid.old->stores.erase(reinterpret_cast<uintptr_t>(at));
    const uint64_t becomes = update(old, read_bits(warp, sources[0], lane, access.bytes),
                                    last > 1 ? read_bits(warp, sources[1], lane, access.bytes) : 0);
    std::memcpy(at, &becomes, access.bytes);
    if (result != kNoUnit) warp.set_bits(result, lane, access.bytes, old);
    if (becomes != old) ++grid.progress;
  }
  set_known(warp, result, access.mask);
}

}  // namespace

AtomicUpdate find_atomic(Word operation, Type type, Space space) {
  if (operation == Word::add && type == Type::f32 && space == Space::global)
    return add_singles<true>;
  for (const Atomic& atomic : kAtomics)
    if (atomic.operation == operation && std::ranges::count(atomic.types, type))
      return atomic.update;
  return nullptr;
}

void run_atomic(Warp& warp, const Instruction& instruction, const WarpAccess& access) {
  const AtomicUpdate update =
      find_atomic(instruction.modifiers.word, instruction.type, access.space);
  Grid& grid = *warp.block->grid;
  warp.observed = true;
  WarpAccess part = access;
  if (grid.lane_order == LaneOrder::descending) {
    for (int lane = kLanes - 1; lane >= 0; --lane) {
      part.mask = access.mask & 1u << lane;
      if (part.mask) update_lanes(warp, instruction, part, update);
    }
    return;
  }
  // Random: the lanes from some lane on are first.
  const uint32_t first =
      grid.lane_order == LaneOrder::random ? kAllLanes << next_random(grid) % kLanes : kAllLanes;
  for (const uint32_t lanes : {first, ~first}) {
    part.mask = access.mask & lanes;
    if (part.mask) update_lanes(warp, instruction, part, update);
  }
}

}  // namespace stitch::ptxsim
