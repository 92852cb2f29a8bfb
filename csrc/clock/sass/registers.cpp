#include <algorithm>

#include "clock/sass/program.h"

namespace stitch::clock {

namespace {

// Bytes of memory and constants by bits 73 to 75: u8 s8 u16 s16 32 64 128.
constexpr int kSizes[8] = {1, 1, 2, 2, 4, 8, 16, 16};

}  // namespace

int access_bytes(const Instruction& instruction) {
  const Opcode opcode = instruction.row->opcode;
  if (opcode == Opcode::ldsm || opcode == Opcode::stsm) return 4 << instruction.field(72, 2);
  if (opcode == Opcode::red || instruction.row->flow == Flow::atomic)
    return instruction.field(73, 3) == 2 || instruction.field(73, 3) == 5 ? 8 : 4;
  return kSizes[instruction.field(73, 3)];
}

bool has_wide_address(const Instruction& instruction, const Operand& operand) {
  const Latency latency = instruction.row->latency;
  const bool is_global = latency == Latency::global || latency == Latency::atomic;
  const Opcode opcode = instruction.row->opcode;
  if (!is_global || operand.letter == 'o' || opcode == Opcode::ldl || opcode == Opcode::stl)
    return false;
  return opcode == Opcode::ldgsts || instruction.bit(72);
}

int register_count(const Instruction& instruction, const Operand& operand) {
  const Row& row = *instruction.row;
  if (operand.kind == OperandKind::memory) return has_wide_address(instruction, operand) ? 2 : 1;
  const bool is_data = std::string_view("dDt").find(operand.letter) != std::string_view::npos;
  if (is_data && (row.flow == Flow::load || row.flow == Flow::store || row.flow == Flow::atomic ||
                  row.operands.find('k') != std::string_view::npos))
    return std::max(1, access_bytes(instruction) / 4);
  const bool is_product = row.opcode == Opcode::imad_wide;
  const bool is_pair =
      row.pipe == Pipe::fp64 || (is_product && (operand.is_destination || operand.letter == 'c')) ||
      (row.opcode == Opcode::cs2r && instruction.bit(80)) ||
      (row.opcode == Opcode::i2f_64 && operand.letter == 'b' && instruction.field(84, 2) == 3);
  return is_pair ? 2 : 1;
}

std::vector<std::string> registers_of(const Instruction& instruction, bool set) {
  std::vector<std::string> found;
  const auto add = [&](const char* prefix, int first, int count, int zero) {
    if (first == zero) return;
    for (int i = first; i < first + count; ++i) found.push_back(prefix + std::to_string(i));
  };
  const auto add_predicate = [&](bool uniform, int index) {
    add(uniform ? "UP" : "P", index, 1, kTruePredicate);
  };
  if (!set) add_predicate(instruction.guard_uniform, instruction.guard);
  for (const Operand& operand : instruction.operands) {
    if (operand.is_destination != set) continue;
    const int count = register_count(instruction, operand);
    if (is_predicate(operand.kind))
      add_predicate(operand.kind == OperandKind::uniform_predicate, operand.index);
    else if (operand.kind == OperandKind::uniform)
      add("UR", operand.index, count, kZeroRegister);
    else if (operand.kind == OperandKind::reg || operand.kind == OperandKind::memory)
      add("R", operand.index, count, kZeroRegister);
    else if (operand.kind == OperandKind::constant)
      add("R", operand.index, 1, kZeroRegister);
    else if (operand.kind == OperandKind::predicates)
      add("P", 0, kTruePredicate, kTruePredicate);
    if (operand.kind == OperandKind::memory) {
      add("UR", operand.uniform, 1, kZeroRegister);
      add("UR", operand.descriptor, 2, kZeroRegister);
    }
  }
  return found;
}

const char* queue_of(const Instruction& instruction) {
  constexpr const char* queues[] = {"",         "special", "convert", "",       "",
                                    "constant", "shared",  "shared",  "global", "atomic"};
  static_assert(std::size(queues) == static_cast<size_t>(Latency::atomic) + 1);
  return queues[static_cast<size_t>(instruction.row->latency)];
}

}  // namespace stitch::clock
