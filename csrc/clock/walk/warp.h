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

  static Value of(uint32_t bits) {
    Value value;
    value.lanes.fill(bits);
    value.known = kAllLanes;
    return value;
  }
};

struct Truth {
  uint32_t value = 0, known = 0;
};
// Known wherever one side decides.
inline Truth both(Truth a, Truth b) {
  const uint32_t is_false = (a.known & ~a.value) | (b.known & ~b.value);
  return {a.value & b.value & ~is_false, (a.known & b.known) | is_false};
}
inline Truth negate(Truth a) { return {~a.value, a.known}; }
inline Truth either(Truth a, Truth b) { return negate(both(negate(a), negate(b))); }
inline Truth differ(Truth a, Truth b) { return {a.value ^ b.value, a.known & b.known}; }

// An instruction with its operands found: registers of the warp, or constants of the launch.
struct Prepared {
  const Instruction* instruction = nullptr;
  const Value *a = nullptr, *b = nullptr, *c = nullptr;
  const Value* c_high = nullptr;  // the upper half of c where 64 bits are added
  bool negates_a = false, negates_b = false, negates_c = false;
  Value* d = nullptr;
  int results = 0;                                             // registers from d on
  const Value* data = nullptr;                                 // of stores
  const Value *address = nullptr, *uniform_address = nullptr;  // of the last memory operand
  Truth *P = nullptr, *Q = nullptr;
  Truth *p = nullptr, *q = nullptr, *r = nullptr, *guard = nullptr;
  bool negates_p = false, negates_q = false, negates_r = false;
  bool runs_once = false;  // of the uniform datapath: the mask does not matter
};

struct Registers {
  std::array<Value, 256> lane, uniform;
  std::array<Truth, 8> predicates, uniform_predicates;

  Registers();
  void forget();  // all but those that read as zero or true
};

// What special registers hold for one warp.
struct WarpPlace {
  std::array<Value, 3> thread;
  std::array<uint32_t, 3> block = {};
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
};

// Points into the warp, and to constants that the pool keeps.
std::vector<Prepared> prepare(const Program& program, Warp& warp, std::deque<Value>& pool);

// Computes `mask` lanes of the destination; what is not an integer operation becomes unknown.
void evaluate(const Prepared& step, uint32_t mask, Warp& warp);
void become_unknown(const Prepared& step, uint32_t mask);
// Lanes of `mask` alone.
void store(Value& to, const Value& result, uint32_t mask);
void store(Truth* to, Truth result, uint32_t mask);

inline Truth read_truth(const Truth* truth, bool negated) {
  return negated ? negate(*truth) : *truth;
}

}  // namespace stitch::clock
