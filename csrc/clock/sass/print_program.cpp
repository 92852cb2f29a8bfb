#include "base/words.h"
#include "clock/sass/program.h"

namespace stitch::clock {

namespace {

std::string numbered(std::string_view prefix, uint8_t index, uint8_t zero, std::string_view name) {
  return index == zero ? concat(prefix, name) : concat(prefix, int{index});
}
std::string reg(uint8_t index) { return numbered("R", index, kZeroRegister, "Z"); }
std::string uniform(uint8_t index) { return numbered("UR", index, kZeroRegister, "Z"); }

struct Special {
  uint8_t index;
  std::string_view name;
};
constexpr Special kSpecials[] = {{0x00, "SR_LANEID"},  {0x21, "SR_TID.X"},   {0x22, "SR_TID.Y"},
                                 {0x23, "SR_TID.Z"},   {0x25, "SR_CTAID.X"}, {0x26, "SR_CTAID.Y"},
                                 {0x27, "SR_CTAID.Z"}, {0x39, "SR_LTMASK"},  {0x88, "SR_CgaCtaId"},
                                 {0xff, "SRZ"}};
std::string special(uint8_t index) {
  const Special* found = find_by(kSpecials, index, &Special::index);
  return found ? std::string(found->name) : concat("SR", int{index});
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
    inside += (inside.empty() || operand.value < 0 ? "" : "+") + to_hex(operand.value);
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
      return to_hex(operand.value);
    case OperandKind::constant: {
      const bool has_register =
          operand.index != kZeroRegister ||
          (operand.value == 0 && operand.letter == 'k' && instruction.row->opcode == Opcode::ldc);
      return "c[" + to_hex(operand.uniform) + "][" + (has_register ? reg(operand.index) : "") +
             (has_register && operand.value != 0 ? "+" : "") +
             (operand.value != 0 || !has_register ? to_hex(operand.value) : "") + "]";
    }
    case OperandKind::memory:
      return print_memory(instruction, operand);
    case OperandKind::special:
      return special(operand.index);
    case OperandKind::barrier:
      return "B" + std::to_string(operand.index);
    case OperandKind::scoreboard:
      return "SB" + std::to_string(operand.index);
    case OperandKind::target:
      return "`(" + to_hex(operand.value) + ")";
    case OperandKind::predicates:
      return "PR";
  }
  return "";
}

// Of integers: a bitwise complement has the same bit, and is written so where a carry comes in.
std::string_view sign_of(const Operand& operand) {
  return !operand.negated ? "" : is_predicate(operand.kind) ? "!" : "-";
}

}  // namespace

std::string to_hex(int64_t value) {
  std::ostringstream text;
  if (value < 0) text << '-';
  text << "0x" << std::hex << (value < 0 ? -value : value);
  return text.str();
}

std::string print_instruction(const Program& program, size_t index) {
  const Instruction& instruction = program.code[index];
  std::ostringstream text;
  if (instruction.guard != kTruePredicate || instruction.guard_negated)
    text << (instruction.guard_negated ? "@!" : "@")
         << numbered(instruction.guard_uniform ? "UP" : "P", instruction.guard, kTruePredicate, "T")
         << " ";
  const Opcode opcode = instruction.row->opcode;
  text << instruction.row->name;
  if (opcode == Opcode::unknown) text << " " << to_hex(instruction.field(0, 12));
  const char* separator = " ";
  const bool is_vote = opcode == Opcode::vote || opcode == Opcode::voteu;
  for (const Operand& operand : instruction.operands) {
    if (is_vote && operand.is_destination && operand.index == kZeroRegister) continue;
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
