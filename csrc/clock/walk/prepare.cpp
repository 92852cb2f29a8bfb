#include <cstring>

#include "base/error.h"
#include "base/lists.h"
#include "base/words.h"
#include "clock/walk/warp.h"

namespace stitch::clock {

namespace {

class Preparer {
 public:
  Preparer(Warp& warp, std::deque<Value>& pool)
      : constants_(warp.constants), registers_(warp.registers), pool_(pool) {}

  Prepared prepare(const Instruction& instruction) {
    Prepared step;
    step.instruction = &instruction;
    step.runs_once = instruction.row->pipe == Pipe::uniform;
    step.a = step.b = step.c = step.c_high = &zero();
    auto& guards =
        instruction.guard_uniform ? registers_.uniform_predicates : registers_.predicates;
    step.guard = &guards[instruction.guard];
    for (const Operand& operand : instruction.operands) add(instruction, operand, step);
    return step;
  }

 private:
  const Value& zero() { return registers_.lane[kZeroRegister]; }

  const Value& source(const Operand& operand) {
    switch (operand.kind) {
      case OperandKind::reg:
        return registers_.lane[operand.index];
      case OperandKind::uniform:
        return registers_.uniform[operand.index];
      case OperandKind::immediate:
        pool_.push_back(Value::of(static_cast<uint32_t>(operand.value)));
        break;
      case OperandKind::constant:
        pool_.push_back(operand.uniform == 0 ? constants_.read(operand.value) : Value());
        break;
      default:
        pool_.push_back({});
    }
    return pool_.back();
  }

  // What lies behind a register or a constant: RZ and immediates have nothing there.
  const Value& upper_half(Operand operand) {
    const bool is_register =
        operand.kind == OperandKind::reg || operand.kind == OperandKind::uniform;
    if (operand.kind == OperandKind::constant) operand.value += 4;
    if (is_register && operand.index < kZeroRegister - 1) ++operand.index;
    const bool has_one = is_register || operand.kind == OperandKind::constant;
    return has_one ? source(operand) : zero();
  }

  void add_predicate(const Operand& operand, Prepared& step) {
    auto& file = operand.kind == OperandKind::predicate ? registers_.predicates
                                                        : registers_.uniform_predicates;
    Truth* truth = &file[operand.index];
    if (operand.is_destination) {
      Truth* written = operand.index == kTruePredicate ? nullptr : truth;
      (operand.letter == 'P' ? step.P : step.Q) = written;
      return;
    }
    const bool is_q = operand.letter == 'q', is_r = operand.letter == 'r';
    (is_q ? step.q : is_r ? step.r : step.p) = truth;
    (is_q ? step.negates_q : is_r ? step.negates_r : step.negates_p) = operand.negated;
  }

  void add(const Instruction& instruction, const Operand& operand, Prepared& step) {
    if (is_predicate(operand.kind)) return add_predicate(operand, step);
    switch (operand.letter) {
      case 'd':
      case 'D':
        if (operand.index == kZeroRegister) break;
        step.d = &(operand.kind == OperandKind::uniform ? registers_.uniform
                                                        : registers_.lane)[operand.index];
        step.results = std::min(register_count(instruction, operand), 255 - operand.index);
        break;
      case 'a':
        step.a = &source(operand), step.negates_a = operand.negated;
        break;
      case 'b':
        step.b = &source(operand), step.negates_b = operand.negated;
        break;
      case 'c':
      case 'C':
        step.c = &source(operand), step.negates_c = operand.negated;
        step.c_high = &upper_half(operand);
        break;
      case 'm':
      case 'g':
        step.address = &registers_.lane[operand.index];
        step.uniform_address =
            operand.uniform == kZeroRegister ? nullptr : &registers_.uniform[operand.uniform];
        break;
      case 't':
        step.data = &source(operand);
        break;
      case 'x':
        (step.b == &zero() ? step.b : step.c) = &source(operand);
        break;
      default:
        break;
    }
  }

  const ConstantBank& constants_;
  Registers& registers_;
  std::deque<Value>& pool_;
};

void check_arguments(const CubinKernel& kernel, const Launch& launch) {
  if (launch.trips < 1) throw UserError(concat("trips is ", launch.trips, "; it is at least 1"));
  const size_t found = launch.arguments.size(), expected = kernel.parameters.size();
  if (found != 0 && found != expected)
    throw UserError(concat("kernel ", kernel.name, " takes ", expected, " arguments, found ", found,
                           "; give all of them, or none for pointers of any size and unknown "
                           "numbers"));
  for (size_t i = 0; i < found; ++i) {
    const Argument& argument = launch.arguments[i];
    const uint32_t bytes = kernel.parameters[i].bytes;
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
  check_arguments(kernel, launch);
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
  // Where the bank holds the sizes of block and grid, and the end of the stack.
  const size_t block_at = program.architecture >= 100 ? 0x360 : 0x0;
  const size_t grid_at = program.architecture >= 100 ? 0x370 : 0xc;
  put(program.architecture >= 100 ? 0x37c : 0x28, kStackEnd, 4);
  for (size_t d = 0; d < 3; ++d) {
    put(block_at + 4 * d, static_cast<uint64_t>(launch.block[d]), 4);
    put(grid_at + 4 * d, static_cast<uint64_t>(launch.grid[d]), 4);
  }
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const KernelParameter& parameter = kernel.parameters[i];
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

std::vector<Prepared> prepare(const Program& program, Warp& warp, std::deque<Value>& pool) {
  Preparer preparer(warp, pool);
  return map_to_vector(
      program.code, [&](const Instruction& instruction) { return preparer.prepare(instruction); });
}

}  // namespace stitch::clock
