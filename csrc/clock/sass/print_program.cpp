#include <iomanip>
#include <sstream>

#include "clock/sass/program.h"

namespace stitch::clock {

namespace {

std::string hex(int64_t value) {
  std::ostringstream text;
  if (value < 0) text << '-';
  text << "0x" << std::hex << (value < 0 ? -value : value);
  return text.str();
}

std::string numbered(std::string_view prefix, uint8_t index, uint8_t zero, std::string_view name) {
  return std::string(prefix) + (index == zero ? std::string(name) : std::to_string(index));
}
std::string reg(uint8_t index) { return numbered("R", index, kZeroRegister, "Z"); }
std::string uniform(uint8_t index) { return numbered("UR", index, kZeroRegister, "Z"); }

std::string_view special_name(uint8_t index) {
  switch (index) {
    case 0x00:
      return "SR_LANEID";
    case 0x21:
      return "SR_TID.X";
    case 0x22:
      return "SR_TID.Y";
    case 0x23:
      return "SR_TID.Z";
    case 0x25:
      return "SR_CTAID.X";
    case 0x26:
      return "SR_CTAID.Y";
    case 0x27:
      return "SR_CTAID.Z";
    case 0x39:
      return "SR_LTMASK";
    case 0x88:
      return "SR_CgaCtaId";
    case 0xff:
      return "SRZ";
    default:
      return "";
  }
}

std::string print_memory(const Instruction& instruction, const Operand& operand) {
  const bool is_cas = instruction.row->opcode == Opcode::atomg_cas;
  const bool is_wide = has_wide_address(instruction, operand) && !is_cas;
  std::string inside;
  const auto add = [&](const std::string& part) { inside += (inside.empty() ? "" : "+") + part; };
  if (operand.index != kZeroRegister)
    add(reg(operand.index) + (is_wide ? ".64" : "") +
        (operand.scale ? ".X" + std::to_string(operand.scale) : ""));
  if (operand.uniform != kZeroRegister) add(uniform(operand.uniform));
  if (operand.value != 0)
    inside += (inside.empty() || operand.value < 0 ? "" : "+") + hex(operand.value);
  const std::string address = "[" + (inside.empty() ? "RZ" : inside) + "]";
  if (operand.descriptor == kZeroRegister) return address;
  return "desc[" + uniform(operand.descriptor) + "]" + address;
}

std::string print_operand(const Instruction& instruction, const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::reg:
      return reg(operand.index);
    case OperandKind::uniform:
      return uniform(operand.index);
    case OperandKind::predicate:
      return numbered("P", operand.index, kTruePredicate, "T");
    case OperandKind::uniform_predicate:
      return numbered("UP", operand.index, kTruePredicate, "T");
    case OperandKind::immediate:
      return hex(operand.value);
    case OperandKind::constant: {
      const bool has_register =
          operand.index != kZeroRegister ||
          (operand.value == 0 && operand.letter == 'k' && instruction.row->opcode == Opcode::ldc);
      return "c[" + hex(operand.uniform) + "][" + (has_register ? reg(operand.index) : "") +
             (has_register && operand.value != 0 ? "+" : "") +
             (operand.value != 0 || !has_register ? hex(operand.value) : "") + "]";
    }
    case OperandKind::memory:
      return print_memory(instruction, operand);
    case OperandKind::special: {
      const std::string_view name = special_name(operand.index);
      return name.empty() ? "SR" + std::to_string(operand.index) : std::string(name);
    }
    case OperandKind::barrier:
      return "B" + std::to_string(operand.index);
    case OperandKind::scoreboard:
      return "SB" + std::to_string(operand.index);
    case OperandKind::target:
      return "`(" + hex(operand.value) + ")";
    case OperandKind::predicates:
      return "PR";
  }
  return "";
}

bool is_predicate(const Operand& operand) {
  return operand.kind == OperandKind::predicate || operand.kind == OperandKind::uniform_predicate;
}

// Of integers: a bitwise complement has the same bit, and is written so where a carry comes in.
std::string_view sign_of(const Operand& operand) {
  return !operand.negated ? "" : is_predicate(operand) ? "!" : "-";
}

}  // namespace

std::string print_instruction(const Program& program, size_t index) {
  const Instruction& instruction = program.code[index];
  std::ostringstream text;
  if (instruction.guard != kTruePredicate || instruction.guard_negated) {
    text << (instruction.guard_negated ? "@!" : "@") << (instruction.guard_uniform ? "UP" : "P")
         << (instruction.guard == kTruePredicate ? "T" : std::to_string(instruction.guard)) << " ";
  }
  text << instruction.row->name;
  if (instruction.row->opcode == Opcode::unknown) text << " " << hex(instruction.field(0, 12));
  const char* separator = " ";
  for (const Operand& operand : instruction.operands) {
    const std::string_view bars = operand.absolute ? "|" : "";
    text << separator << sign_of(operand) << bars << print_operand(instruction, operand) << bars;
    separator = ", ";
  }
  return text.str();
}

std::string print_program(const Program& program) {
  std::ostringstream text;
  for (size_t i = 0; i < program.code.size(); ++i) {
    const Control& control = program.code[i].control;
    text << std::hex << std::setw(4) << std::setfill('0') << i * kInstructionBytes << std::dec
         << " " << print_instruction(program, i) << "  ; stall " << int{control.stall_cycles}
         << " write " << int{control.write_scoreboard} << " read " << int{control.read_scoreboard}
         << " wait " << int{control.wait_mask} << "\n";
  }
  return text.str();
}

}  // namespace stitch::clock
