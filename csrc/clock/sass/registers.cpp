#include <algorithm>

#include "clock/sass/program.h"

namespace stitch::clock {

namespace {

// Bytes of memory and constants by bits 73 to 75: u8 s8 u16 s16 32 64 128.
constexpr int kSizes[8] = {1, 1, 2, 2, 4, 8, 16, 16};

int matrix_bytes(const Instruction& instruction) { return 4 << instruction.field(72, 2); }

}  // namespace

int access_bytes(const Instruction& instruction) {
  const Opcode opcode = instruction.row->opcode;
  if (opcode == Opcode::ldsm || opcode == Opcode::stsm) return matrix_bytes(instruction);
  if (opcode == Opcode::red || instruction.row->flow == Flow::atomic)
    return instruction.field(73, 3) == 2 || instruction.field(73, 3) == 5 ? 8 : 4;
  return kSizes[instruction.field(73, 3)];
}

bool is_weak(const Instruction& instruction) {
  const auto order = instruction.field(77, 4);
  return order == 0 || order == 4;
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
  const bool is_data = operand.letter == 'd' || operand.letter == 'D' || operand.letter == 't';
  if (is_data && (row.flow == Flow::load || row.flow == Flow::store || row.flow == Flow::atomic ||
                  row.operands.find('k') != std::string_view::npos))
    return std::max(1, access_bytes(instruction) / 4);
  if (row.pipe == Pipe::fp64) return 2;
  switch (row.opcode) {
    case Opcode::imad_wide:
    case Opcode::uimad_wide:
      return operand.is_destination || operand.letter == 'c' ? 2 : 1;
    case Opcode::cs2r:
      return instruction.bit(80) ? 2 : 1;
    case Opcode::i2f_64:
      return operand.letter == 'b' && instruction.field(84, 2) == 3 ? 2 : 1;
    default:
      return 1;
  }
}

}  // namespace stitch::clock
