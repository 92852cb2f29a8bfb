#include "print_module.h"

#include <sstream>
#include <utility>

namespace stitch::ptxsim {
namespace {

void print_word(std::ostream& out, std::string_view word) {
  if (!word.empty()) out << '.' << word;
}

void print_modifiers(std::ostream& out, const Modifiers& modifiers) {
  print_word(out, name_of(modifiers.word));
  print_word(out, name_of(modifiers.compare));
  print_word(out, name_of(modifiers.rounding));
  if (modifiers.is_volatile) {
    out << ".volatile";
  } else {
    print_word(out, name_of(modifiers.order));
    print_word(out, name_of(modifiers.scope));
  }
  print_word(out, name_of(modifiers.space));
  const std::pair<bool, std::string_view> flags[] = {
      {modifiers.ftz, "ftz"},         {modifiers.sat, "sat"},
      {modifiers.approx, "approx"},   {modifiers.full, "full"},
      {modifiers.nan, "NaN"},         {modifiers.xorsign, "xorsign"},
      {modifiers.absolute, "abs"},    {modifiers.relu, "relu"},
      {modifiers.carry_out, "cc"},    {modifiers.non_coherent, "nc"},
      {modifiers.aligned, "aligned"},
  };
  for (const auto& [set, word] : flags)
    if (set) print_word(out, word);
}

void print_unit(std::ostream& out, uint32_t unit) {
  if (unit == kNoUnit)
    out << " _";
  else
    out << " u" << unit;
}

void print_target(std::ostream& out, const Module& module, const Instruction& instruction) {
  if (instruction.opcode == Opcode::call) {
    out << " " << module.functions[static_cast<size_t>(instruction.immediate)].name;
  } else if (instruction.opcode == Opcode::bra) {
    out << " -> " << instruction.immediate;
  } else if (instruction.opcode == Opcode::brx_idx) {
    out << " ->";
    for (const int target : module.branch_tables[static_cast<size_t>(instruction.immediate)])
      out << " " << target;
  } else if (instruction.immediate != 0) {
    out << " +" << instruction.immediate;
  }
  if (instruction.source_offset != 0) out << " source+" << instruction.source_offset;
}

void print_instruction(std::ostream& out, const Module& module, int index) {
  const Instruction& instruction = module.code[static_cast<size_t>(index)];
  out << "  " << index << ": ";
  if (instruction.guard != kNoUnit)
    out << '@' << (instruction.guard_negated ? "!" : "") << 'u' << instruction.guard << ' ';
  out << row_of(instruction.opcode).name;
  print_modifiers(out, instruction.modifiers);
  if (instruction.vector > 1) out << ".v" << int{instruction.vector};
  print_word(out, name_of(instruction.type));
  print_word(out, name_of(instruction.source_type));
  for (size_t i = 0; i < instruction.operand_count; ++i) {
    if (i == instruction.destinations && i > 0) out << " <-";
    print_unit(out, instruction.operands[i]);
  }
  print_target(out, module, instruction);
  out << "  ; line " << instruction.line;
  if (instruction.source_line > 0) out << ", source " << instruction.source_line;
  out << "\n";
}

void print_variable(std::ostream& out, const Variable& variable) {
  out << "  ." << name_of(variable.space) << " " << variable.name << " at " << variable.offset
      << ", " << variable.bytes << " bytes\n";
}

void print_function(std::ostream& out, const Module& module, const Function& function) {
  out << (function.is_entry ? "entry " : "function ") << function.name << "\n";
  for (const Parameter& parameter : function.parameters) {
    out << "  parameter " << parameter.name << " at " << parameter.offset << ", " << parameter.bytes
        << " bytes\n";
  }
  if (function.is_entry) {
    out << "  shared " << function.shared_bytes << ", local " << function.local_bytes << ", units "
        << function.units << ", registers " << function.registers << "\n";
  }
  for (const Constant& constant : function.constants) {
    out << "  u" << constant.unit << " = " << name_of(constant.type) << " 0x" << std::hex
        << constant.bits << std::dec << (constant.is_global_address ? " + globals" : "") << "\n";
  }
  for (const SpecialUnit& special : function.specials) {
    out << "  u" << special.unit << " = " << name_of(special.type) << " %"
        << word_of(names_of(special.special), static_cast<size_t>(special.special)) << "\n";
  }
  for (int i = function.first; i < function.end; ++i) print_instruction(out, module, i);
}

}  // namespace

std::string print_module(const Module& module) {
  std::ostringstream out;
  out << "module of " << module.functions.size() << " functions\n";
  for (const Variable& variable : module.variables) print_variable(out, variable);
  for (const Function& function : module.functions) print_function(out, module, function);
  return out.str();
}

}  // namespace stitch::ptxsim
