#include <algorithm>
#include <bit>
#include <cmath>

#include "clock/walk/lanes.h"

namespace stitch::clock {

void store(Value& to, const Value& result, uint32_t mask) {
  if (mask == kAllLanes) {
    to = result;
    return;
  }
  for (int i = 0; i < kLanes; ++i) to.lanes[i] = mask >> i & 1 ? result.lanes[i] : to.lanes[i];
  to.known = (to.known & ~mask) | (result.known & mask);
}
void store(Truth* to, Truth result, uint32_t mask) {
  if (!to) return;
  to->value = (to->value & ~mask) | (result.value & mask);
  to->known = (to->known & ~mask) | (result.known & mask);
}

void become_unknown(const Prepared& step, uint32_t mask) {
  for (int k = 0; k < step.results; ++k) (step.d + k)->known &= ~mask;
  for (Truth* truth : {step.P, step.Q})
    if (truth) truth->known &= ~mask;
}

namespace {

Value read_special(uint8_t index, const WarpPlace& place) {
  if (index >= 0x21 && index <= 0x23) return place.thread[index - 0x21];
  if (index >= 0x25 && index <= 0x27) return Value::of(place.block[index - 0x25]);
  Value lane = Value::of(0);
  for (int i = 0; i < kLanes; ++i) lane.lanes[i] = index == 0x39 ? (1u << i) - 1 : i;
  if (index == 0x00 || index == 0x39) return lane;  // the lane, and those below it
  return index == 0x88 || index == 0xff ? Value::of(0) : Value();
}

void read_constant(const Prepared& step, uint32_t mask, const Warp& warp) {
  const Operand& operand = *step.instruction->find('k');
  const bool is_fixed = operand.index == kZeroRegister;
  const Value index = warp.registers.lane[operand.index];  // a copy: it may be the destination
  const int bytes = std::min(4, access_bytes(*step.instruction));
  const bool is_signed = bytes < 4 && field(step, 73, 1);
  for (int k = 0; k < step.results; ++k) {
    const uint64_t at = operand.value + 4 * k;
    Value value;
    if (operand.uniform == 0 && is_fixed) value = warp.constants.read(at, bytes, is_signed);
    for (int i = 0; operand.uniform == 0 && !is_fixed && !step.runs_once && i < kLanes; ++i) {
      const Value one = warp.constants.read(at + index.lanes[i], bytes, is_signed);
      value.lanes[i] = one.lanes[i];
      value.known |= one.known & index.known & 1u << i;
    }
    store(*(step.d + k), value, mask);
  }
}

// What division by a number known at run time needs: a reciprocal that is corrected afterwards.
bool evaluate_division(const Prepared& step, uint32_t mask) {
  constexpr uint64_t reciprocal = 4;
  const auto map = [&](auto make) {
    map_lanes(step, mask, [&](uint32_t, uint32_t b, uint32_t, int) { return make(b); });
    return true;
  };
  switch (step.instruction->row->opcode) {
    case Opcode::i2f:
      return map([&](uint32_t b) {
        const double exact = field(step, 74, 1) ? static_cast<int32_t>(b) : static_cast<double>(b);
        float rounded = static_cast<float>(exact);
        const bool rounds_up = field(step, 78, 2) == 2;
        if (rounds_up && rounded < exact) rounded = std::nextafter(rounded, INFINITY);
        return std::bit_cast<uint32_t>(rounded);
      });
    case Opcode::mufu:
      if (field(step, 74, 4) != reciprocal) return false;
      return map([](uint32_t b) { return std::bit_cast<uint32_t>(1 / std::bit_cast<float>(b)); });
    case Opcode::f2i:
      if (field(step, 72, 1)) return false;  // signed: not part of it
      return map([](uint32_t b) {
        const float number = std::bit_cast<float>(b);
        return number >= 0 && number < 4294967296.0f ? static_cast<uint32_t>(number) : 0;
      });
    default:
      return false;
  }
}

// P2R and R2P: predicates as bits of a register, where b has ones.
void pack_predicates(const Prepared& step, uint32_t mask, const Registers& registers) {
  map_lanes(step, mask, [&](uint32_t a, uint32_t b, uint32_t, int i) {
    uint32_t bits = 0;
    for (int k = 0; k < kTruePredicate; ++k) bits |= (registers.predicates[k].value >> i & 1) << k;
    return (a & ~b) | (bits & b);
  });
  for (int k = 0; step.d && k < kTruePredicate; ++k)
    if (step.b->lanes[0] >> k & 1) step.d->known &= registers.predicates[k].known | ~mask;
}
void unpack_predicates(const Prepared& step, uint32_t mask, Registers& registers) {
  for (int k = 0; k < kTruePredicate; ++k) {
    if (!(step.b->lanes[0] >> k & 1)) continue;
    Truth truth{0, step.a->known & step.b->known};
    for (int i = 0; i < kLanes; ++i) truth.value |= (step.a->lanes[i] >> k & 1) << i;
    store(&registers.predicates[k], truth, mask);
  }
}

// Products with zero move the constant that is added.
void move_constant(const Prepared& step, uint32_t mask) {
  const Operand *a = step.instruction->find('a'), *b = step.instruction->find('b');
  const auto is_zero = [](const Operand* operand) {
    return operand->kind == OperandKind::reg && operand->index == kZeroRegister;
  };
  if (!is_zero(a) || !is_zero(b)) return become_unknown(step, mask);
  map_lanes(step, mask, [](uint32_t, uint32_t, uint32_t c, int) { return c; });
}

}  // namespace

void evaluate(const Prepared& step, uint32_t mask, Warp& warp) {
  using enum Opcode;
  if (step.runs_once) mask = kAllLanes;
  switch (step.instruction->row->opcode) {
    case ldc:
    case uldc:
    case ldcu:
      return read_constant(step, mask, warp);
    case s2r:
    case s2ur:
    case cs2r: {
      const uint8_t index = step.instruction->find('s')->index;
      const bool is_uniform = step.instruction->row->opcode == s2ur;
      for (int k = 0; k < step.results; ++k)
        store(*(step.d + k), read_special(index, warp.place), is_uniform ? kAllLanes : mask);
      return;
    }
    case p2r:
      return pack_predicates(step, mask, warp.registers);
    case r2p:
      return unpack_predicates(step, mask, warp.registers);
    case hfma2:
    case hfma2_mma:
      return move_constant(step, mask);
    case unknown: {  // it may write to either kind of register
      const auto index = field(step, 16, 8);
      if (index == kZeroRegister) return;
      warp.registers.lane[index].known = warp.registers.uniform[index].known = 0;
      return;
    }
    default:
      if (!evaluate_integer(step, mask) && !evaluate_division(step, mask))
        become_unknown(step, mask);
  }
}

}  // namespace stitch::clock
