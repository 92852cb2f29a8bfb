#include <cstring>

#include "base/error.h"
#include "base/lists.h"
#include "base/words.h"
#include "clock/walk/warp.h"

namespace stitch::clock {

namespace {

template <class Member>
struct Letter {
  char letter;
  Member Prepared::* member;
};
constexpr Letter<Source> kSources[] = {
    {'a', &Prepared::a}, {'b', &Prepared::b}, {'c', &Prepared::c}, {'C', &Prepared::c},
    {'t', &Prepared::t}, {'x', &Prepared::b}, {'y', &Prepared::c}, {'s', &Prepared::b}};
constexpr Letter<Condition> kConditions[] = {
    {'p', &Prepared::p}, {'q', &Prepared::q}, {'r', &Prepared::r}, {'z', &Prepared::q}};
constexpr Letter<Truth*> kTruths[] = {{'P', &Prepared::P}, {'Q', &Prepared::Q}};

class Preparer {
 public:
  explicit Preparer(Warp& warp) : warp_(warp) { keep(Value::of(0), Value::of(0)); }

  Prepared prepare(const Instruction& instruction) {
    const Row& row = *instruction.row;
    Prepared step;
    step.instruction = &instruction;
    step.warp = &warp_;
    step.runs_once = row.pipe == Pipe::uniform || row.opcode == Opcode::s2ur;
    step.a = step.b = step.c = {zeros()};
    step.guard = {&predicates(instruction.guard_uniform)[instruction.guard],
                  instruction.guard_negated};
    for (const Operand& operand : instruction.operands) add(instruction, operand, step);
    return step;
  }

 private:
  std::array<Truth, 8>& predicates(bool uniform) {
    return uniform ? warp_.registers.uniform_predicates : warp_.registers.predicates;
  }

  // And what lies behind it: RZ and immediates have zero there.
  const Value* source(const Operand& operand) {
    switch (operand.kind) {
      case OperandKind::reg:
        return operand.index == kZeroRegister ? zeros() : &warp_.registers.lane[operand.index];
      case OperandKind::uniform:
        return operand.index == kZeroRegister ? zeros() : &warp_.registers.uniform[operand.index];
      case OperandKind::immediate:
        return keep(Value::of(static_cast<uint32_t>(operand.value)), Value::of(0));
      case OperandKind::constant:
        if (operand.uniform != 0) return keep({}, {});
        return keep(warp_.constants.read(operand.value),
                    warp_.constants.read(operand.value + kWordBytes));
      default:
        return special(operand.index);
    }
  }
  const Value* special(uint8_t index) {
    if (index >= 0x21 && index <= 0x23) return &warp_.place.thread[index - 0x21];
    if (index >= 0x25 && index <= 0x27) return &warp_.place.block[index - 0x25];
    if (index == 0x88 || index == 0xff) return zeros();
    Value lane;  // or those below it; others are unknown
    if (index == 0x00 || index == 0x39) lane.known = kAllLanes;
    for (uint32_t i = 0; i < kLanes; ++i) lane.lanes[i] = index == 0x39 ? (1u << i) - 1 : i;
    return keep(lane, {});
  }
  const Value* keep(const Value& value, const Value& behind) {
    return warp_.pool.emplace_back(std::array{value, behind}).data();
  }
  const Value* zeros() const { return warp_.pool.front().data(); }

  void add(const Instruction& instruction, const Operand& operand, Prepared& step) {
    const char letter = operand.letter;
    if (is_predicate(operand.kind)) {
      Truth* truth = &predicates(operand.kind == OperandKind::uniform_predicate)[operand.index];
      if (const auto* written = find_by(kTruths, letter, &Letter<Truth*>::letter))
        step.*written->member = operand.index == kTruePredicate ? nullptr : truth;
      if (const auto* read = find_by(kConditions, letter, &Letter<Condition>::letter))
        step.*read->member = {truth, operand.negated};
    } else if (operand.is_destination && operand.index != kZeroRegister) {
      const bool uniform = operand.kind == OperandKind::uniform;
      step.d = &(uniform ? warp_.registers.uniform : warp_.registers.lane)[operand.index];
      step.results = std::min(register_count(instruction, operand), 255 - operand.index);
    } else if (operand.kind == OperandKind::memory) {
      const bool has_uniform = operand.uniform != kZeroRegister;
      step.address = &warp_.registers.lane[operand.index];
      step.uniform_address = has_uniform ? &warp_.registers.uniform[operand.uniform] : nullptr;
    } else if (const auto* read = find_by(kSources, letter, &Letter<Source>::letter)) {
      step.*read->member = {source(operand), operand.negated};
    }
  }

  Warp& warp_;
};

// A struct is one argument, or one for each of its words of 8 bytes.
std::vector<KernelParameter> list_parameters(const CubinKernel& kernel, size_t arguments) {
  std::vector<KernelParameter> words;
  for (const KernelParameter& parameter : kernel.parameters)
    for (uint32_t at = 0; at < parameter.bytes; at += 8)
      words.push_back({parameter.offset + at, std::min(parameter.bytes - at, 8u)});
  return words.size() == arguments ? words : kernel.parameters;
}

void check_arguments(const CubinKernel& kernel, const std::vector<KernelParameter>& parameters,
                     const Launch& launch) {
  if (launch.trips < 1) throw UserError(concat("trips is ", launch.trips, "; it is at least 1"));
  const size_t found = launch.arguments.size(), expected = parameters.size();
  if (found != 0 && found != expected)
    throw UserError(concat("kernel ", kernel.name, " takes ", expected, " arguments, found ", found,
                           "; give all of them, or none for pointers of any size and unknown "
                           "numbers"));
  for (size_t i = 0; i < found; ++i) {
    const Argument& argument = launch.arguments[i];
    const uint32_t bytes = parameters[i].bytes;
    const int64_t above = bytes < 8 ? static_cast<int64_t>(argument.bits) >> 8 * bytes : 0;
    if (argument.is_pointer ? bytes >= 8 : above == 0 || above == -1) continue;
    throw UserError(concat("argument ", i, " is a ", argument.is_pointer ? "pointer" : "number",
                           " of more than the ", bytes,
                           " bytes of the kernel's parameter; give a number that fits them"));
  }
}

}  // namespace

Registers::Registers() { forget(); }

void Registers::forget() {
  for (auto* file : {&lane, &uniform})
    file->fill(Value::of(0));  // bits that a compiler sets one by one are known from then on
  for (auto* file : {&predicates, &uniform_predicates}) {
    file->fill({});
    file->back() = {kAllLanes, kAllLanes};
  }
}

Value ConstantBank::read(uint64_t at, int count, bool is_signed) const {
  if (at + count > bytes.size() || std::count(&known[at], &known[at] + count, 1) != count)
    return {};
  uint32_t bits = 0;
  std::memcpy(&bits, &bytes[at], count);
  const int unused = is_signed ? 32 - 8 * count : 0;
  return Value::of(static_cast<int32_t>(bits << unused) >> unused);
}

ConstantBank fill_constants(const Program& program, const Launch& launch) {
  const CubinKernel& kernel = *program.kernel;
  const auto parameters = list_parameters(kernel, launch.arguments.size());
  check_arguments(kernel, parameters, launch);
  constexpr size_t bank_bytes = 64 << 10;
  ConstantBank bank{std::vector<uint8_t>(bank_bytes), std::vector<uint8_t>(bank_bytes)};
  const auto copy = [&](size_t at, const void* from, size_t bytes) {
    if (at + bytes > bank_bytes) return;
    std::memcpy(&bank.bytes[at], from, bytes);
    std::fill_n(&bank.known[at], bytes, uint8_t{1});
  };
  const auto put = [&](size_t at, uint64_t bits, size_t bytes) {
    copy(at, &bits, std::min<size_t>(bytes, 8));
  };
  // Where the bank holds the sizes of block and grid, the end of the stack, and the parameters.
  const size_t block_at = program.architecture >= 100 ? 0x360 : 0x0;
  const size_t grid_at = program.architecture >= 100 ? 0x370 : 0xc;
  put(program.architecture >= 100 ? 0x37c : 0x28, kStackEnd, 4);
  for (size_t d = 0; d < 3; ++d) {
    put(block_at + 4 * d, static_cast<uint64_t>(launch.block[d]), 4);
    put(grid_at + 4 * d, static_cast<uint64_t>(launch.grid[d]), 4);
  }
  if (program.architecture == 90) put(0x198, (launch.arguments.size() + 1) << kArgumentBits, 8);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const KernelParameter& parameter = parameters[i];
    const size_t at = kernel.parameters_at + parameter.offset;
    const uint64_t address = (uint64_t{i} + 1) << kArgumentBits;
    if (launch.arguments.empty()) {
      if (parameter.bytes == 8) put(at, address, 8);
      continue;
    }
    const Argument& argument = launch.arguments[i];
    const uint64_t pointer = argument.bytes > 0 ? address : 0;
    if (argument.data != 0 && !argument.is_pointer)
      copy(at, reinterpret_cast<const void*>(argument.data), parameter.bytes);
    else
      put(at, argument.is_pointer ? pointer : argument.bits, parameter.bytes);
  }
  return bank;
}

std::vector<Prepared> prepare(const Program& program, Warp& warp) {
  Preparer preparer(warp);
  return map_to_vector(
      program.code, [&](const Instruction& instruction) { return preparer.prepare(instruction); });
}

}  // namespace stitch::clock
