// The registers of one warp while its integer half is run: 32 lanes, of which each is known or not.
//
// Floats are unknown, and so is what is loaded from memory unless a launch says which integers lie
// there.  What is unknown stays so through every operation that needs it.
#pragma once

#include <deque>

#include "clock/walk/trace.h"

namespace stitch::clock {

constexpr uint32_t kAllLanes = 0xffffffffu;
constexpr int kWordBytes = 4;
constexpr uint32_t kStackEnd = 1 << 20;  // of a thread's local memory

struct Value {
  std::array<uint32_t, kLanes> lanes = {};
  uint32_t known = 0;

  static Value of(uint32_t bits, bool is_known = true) {
    Value value;
    value.lanes.fill(bits);
    value.known = is_known ? kAllLanes : 0;
    return value;
  }
};

struct Truth {
  uint32_t value = 0, known = 0;

  static Truth of(bool holds, bool is_known = true) {
    return {holds ? kAllLanes : 0, is_known ? kAllLanes : 0};
  }
  bool at(int lane) const { return value >> lane & 1; }
};
// Known wherever one side decides.
inline Truth both(Truth a, Truth b) {
  const uint32_t is_false = (a.known & ~a.value) | (b.known & ~b.value);
  return {a.value & b.value & ~is_false, (a.known & b.known) | is_false};
}
inline Truth negate(Truth a) { return {~a.value, a.known}; }
inline Truth either(Truth a, Truth b) { return negate(both(negate(a), negate(b))); }
inline Truth differ(Truth a, Truth b) { return {a.value ^ b.value, a.known & b.known}; }

// A register of the warp, or a constant of the launch, and the one behind it.
struct Source {
  const Value* value = nullptr;
  bool negated = false;

  const Value* operator->() const { return value; }
};
struct Condition {
  const Truth* truth = nullptr;
  bool negated = false;

  Truth read() const { return negated ? negate(*truth) : *truth; }
};
struct Warp;

// An instruction with its operands found, by their letters of sass.def.
struct Prepared {
  const Instruction* instruction = nullptr;
  Warp* warp = nullptr;
  Source a, b, c;
  Source t;  // data of stores
  Condition p, q, r, guard;
  Value* d = nullptr;
  int results = 0;  // registers from d on
  Truth *P = nullptr, *Q = nullptr;
  const Value *address = nullptr, *uniform_address = nullptr;  // of the last memory operand
  bool runs_once = false;  // a result is the same in all lanes, whatever the mask
};

struct Registers {
  std::array<Value, 256> lane, uniform;
  std::array<Truth, 8> predicates, uniform_predicates;

  Registers();
  void forget();  // all but those that read as zero or true
};

// What special registers hold for one warp.
struct WarpPlace {
  std::array<Value, 3> thread, block;
};

// Constant bank 0 as a launch fills it; other banks are unknown.
struct ConstantBank {
  std::vector<uint8_t> bytes, known;
  Value read(uint64_t at, int count = 4, bool is_signed = false) const;
};
ConstantBank fill_constants(const Program& program, const Launch& launch);

// One warp at a time is run, in the same registers.
struct Warp {
  Registers registers;
  WarpPlace place;
  ConstantBank constants;
  std::deque<std::array<Value, 2>> pool;  // constants of instructions, zeros first
};

// Points into the warp.
std::vector<Prepared> prepare(const Program& program, Warp& warp);

// Computes `mask` lanes of the destination; what is not an integer operation becomes unknown.
void evaluate(const Prepared& step, uint32_t mask);
// Its results become unknown.
void forget(const Prepared& step, uint32_t mask);
// Lanes of `mask` alone.
void store(Value& to, const Value& result, uint32_t mask);
void store(Truth* to, Truth result, uint32_t mask);

}  // namespace stitch::clock
