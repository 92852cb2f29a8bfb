#include "ptxsim/decode/decode_function.h"

#include <algorithm>
#include <string>

#include "ptxsim/decode/assign_units.h"
#include "ptxsim/decode/decode_calls.h"
#include "ptxsim/decode/decode_instruction.h"
#include "ptxsim/decode/lex_ptx.h"

namespace stitch::ptxsim {
namespace {

bool goes_on(const FunctionCode& code) {
  return code.code.empty() || code.code.back().guard != kNoUnit || !leaves(code.code.back().opcode);
}

// A function's text ends with a ret, where lanes come that fall off its end.
void append_return(const PtxFunction& function, FunctionCode& code) {
  Instruction ret;
  ret.opcode = Opcode::ret;
  ret.flow = Flow::branch;
  ret.line = code.code.empty() ? function.line : code.code.back().line;
  ret.source_line = code.code.empty() ? 0 : code.code.back().source_line;
  if (!function.is_entry) ret.operands[ret.operand_count++] = kReturnUnit;
  code.code.push_back(ret);
}

// Labels and tables of the text become positions in the code.
struct Targets {
  const PtxModule& module;
  const PtxFunction& function;
  const std::vector<int>& positions;  // of the function's instructions, and of its end
  FunctionCode& code;
  std::unordered_map<uint32_t, int64_t> tables;  // by index in PtxModule

  int furthest;  // the largest position asked for

  int position(uint32_t label) {
    const int target = positions[label - function.first];
    furthest = std::max(furthest, target);
    return target;
  }

  int64_t table(uint32_t index, int line) {
    const auto [known, is_new] = tables.try_emplace(index, code.tables.size());
    if (!is_new) return known->second;
    const PtxTable& text = module.tables[index];
    std::vector<int> targets;
    for (const std::string_view name : text.labels) {
      uint32_t number = 0;
      const PtxSymbol* const label = module.find(text.scope, name, number);
      if (!label || label->kind != PtxSymbol::Kind::label)
        fail_ptx(module.text, line, quote_ptx(name) + " of the branch table is not a label");
      targets.push_back(position(label->index));
    }
    code.tables.push_back(std::move(targets));
    return known->second;
  }

  void resolve() {
    for (size_t i = 0; i < code.code.size(); ++i) {
      Instruction& instruction = code.code[i];
      if (instruction.opcode == Opcode::bra) {
        instruction.immediate = position(static_cast<uint32_t>(instruction.immediate));
      } else if (instruction.opcode == Opcode::brx_idx) {
        instruction.immediate =
            table(static_cast<uint32_t>(instruction.immediate), instruction.line);
      } else if (instruction.opcode == Opcode::call) {
        code.callees.push_back(static_cast<uint32_t>(instruction.immediate));
      }
    }
  }
};

}  // namespace

bool leaves(Opcode opcode) {
  return opcode == Opcode::bra || opcode == Opcode::brx_idx || opcode == Opcode::ret ||
         opcode == Opcode::exit || opcode == Opcode::trap;
}

FunctionCode decode_function(const PtxModule& module, const PtxFunction& function,
                             Dictionary& dictionary) {
  FunctionCode code;
  FunctionOperands operands(module, code);
  if (!function.is_entry) operands.temporary(4);  // kReturnUnit
  bind_calls(module, function, operands);
  InstructionDecoder decoder(module, function.is_entry, dictionary, operands, code);
  std::vector<int> positions;
  for (uint32_t i = function.first; i < function.end; ++i) {
    positions.push_back(static_cast<int>(code.code.size()));
    decoder.decode(module.instructions[i]);
  }
  const int end = static_cast<int>(code.code.size());
  positions.push_back(end);
  Targets targets{module, function, positions, code, {}, -1};
  targets.resolve();
  const bool end_is_target = targets.furthest == end;
  if (goes_on(code) || end_is_target) append_return(function, code);
  assign_units(function.is_entry, code);
  return code;
}

}  // namespace stitch::ptxsim
