#include <sstream>
#include <string>

#include "ptxsim/isa/module.h"

namespace stitch::ptxsim {
namespace {

constexpr std::string_view kRoundings[] = {"",    "rn",  "rz",  "rm",  "rp",
                                           "rna", "rni", "rzi", "rmi", "rpi"};
constexpr std::string_view kCompares[] = {"",    "eq",  "ne",  "lt",  "le",  "gt",  "ge",
                                          "lo",  "ls",  "hi",  "hs",  "equ", "neu", "ltu",
                                          "leu", "gtu", "geu", "num", "nan"};
constexpr std::string_view kScopes[] = {"", "cta", "cluster", "gpu", "sys"};
constexpr std::string_view kOrders[] = {"", "relaxed", "acquire", "release", "acq_rel", "sc"};
constexpr std::string_view kSpaces[] = {"",      "generic", "global", "shared",
                                        "local", "const",   "param",  "reg"};
constexpr std::string_view kSpecials[] = {
    "tid.x",           "tid.y",       "tid.z",       "ntid.x",
    "ntid.y",          "ntid.z",      "ctaid.x",     "ctaid.y",
    "ctaid.z",         "nctaid.x",    "nctaid.y",    "nctaid.z",
    "laneid",          "warpid",      "nwarpid",     "smid",
    "nsmid",           "gridid",      "lanemask_eq", "lanemask_le",
    "lanemask_lt",     "lanemask_ge", "lanemask_gt", "dynamic_smem_size",
    "total_smem_size",
};

template <size_t n, class E>
std::string_view name_of(const std::string_view (&names)[n], E value) {
  return names[static_cast<size_t>(value)];
}

void print_word(std::ostream& out, std::string_view word) {
  if (!word.empty()) out << '.' << word;
}

void print_modifiers(std::ostream& out, const Modifiers& modifiers) {
  print_word(out, word_name(modifiers.word));
  print_word(out, name_of(kCompares, modifiers.compare));
  print_word(out, name_of(kRoundings, modifiers.rounding));
  if (modifiers.is_volatile) {
    out << ".volatile";
  } else {
    print_word(out, name_of(kOrders, modifiers.order));
    print_word(out, name_of(kScopes, modifiers.scope));
  }
  print_word(out, name_of(kSpaces, modifiers.space));
  const std::pair<bool, std::string_view> flags[] = {
      {modifiers.ftz, "ftz"},         {modifiers.sat, "sat"},
      {modifiers.approx, "approx"},   {modifiers.full, "full"},
      {modifiers.nan, "NaN"},         {modifiers.xorsign, "xorsign"},
      {modifiers.absolute, "abs"},    {modifiers.relu, "relu"},
      {modifiers.carry_out, "cc"},    {modifiers.non_coherent, "nc"},
      {modifiers.aligned, "aligned"}, {modifiers.uniform, "uni"},
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
  print_word(out, type_name(instruction.type));
  print_word(out, type_name(instruction.source_type));
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
  out << "  ." << name_of(kSpaces, variable.space) << " " << variable.name << " at "
      << variable.offset << ", " << variable.bytes << " bytes\n";
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
  for (const Variable& variable : function.variables) print_variable(out, variable);
  for (const Constant& constant : function.constants) {
    out << "  u" << constant.unit << " = " << type_name(constant.type) << " 0x" << std::hex
        << constant.bits << std::dec << (constant.is_global_address ? " + globals" : "") << "\n";
  }
  for (const SpecialUnit& special : function.specials) {
    out << "  u" << special.unit << " = " << type_name(special.type) << " %"
        << name_of(kSpecials, special.special) << "\n";
  }
  for (int i = function.first; i < function.end; ++i) print_instruction(out, module, i);
}

}  // namespace

std::string print_module(const Module& module) {
  std::ostringstream out;
  out << "PTX " << module.version / 10 << "." << module.version % 10 << " " << module.target
      << "\n";
  for (const Variable& variable : module.variables) print_variable(out, variable);
  for (const Function& function : module.functions) print_function(out, module, function);
  return out.str();
}

}  // namespace stitch::ptxsim
