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

}  // namespace stitch::clock
