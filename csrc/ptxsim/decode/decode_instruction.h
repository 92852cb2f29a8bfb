// One instruction: its words choose a row of ptx.def, its operands become units.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptxsim/decode/decode_operands.h"

namespace stitch::ptxsim {

struct Letter;

class InstructionDecoder {
 public:
  InstructionDecoder(const PtxModule& module, bool is_entry, Dictionary& dictionary,
                     FunctionOperands& operands, FunctionCode& code)
      : module_(module),
        is_entry_(is_entry),
        dictionary_(dictionary),
        operands_(operands),
        code_(code) {}

  // Appends it to FunctionCode::code, between what brings its operands into shape.  Labels and
  // branch tables are indices in PtxModule, for the caller to replace.
  void decode(const PtxInstruction& text);

 private:
  [[noreturn]] void fail(const std::string& what) const { operands_.fail(what); }
  const PtxOperand& operand(size_t index) const { return module_.operands[text_->first + index]; }
  const Spelling& choose();
  bool fits(const Row& row) const;
  void emit();
  void push(uint32_t unit);
  uint32_t predicate_register(std::string_view name);
  void check_width(const PtxOperand& given, int has, int wanted) const;
  int register_width(std::span<const PtxOperand> elements, int least);
  Type type_of(const Letter& letter) const;
  int bytes_of(const Letter& letter) const;
  Instruction lane_operation(Opcode opcode, Type type, Type source_type, const Slot& to,
                             const Slot& from) const;
  Instruction resize(const Slot& to, const Slot& from, bool is_signed) const;

  void bind_operands(const std::vector<Letter>& letters);
  void bind_letter(const Letter& letter, const PtxOperand& given);
  void bind_condition_code(const Letter& letter);
  void bind_destination(const PtxOperand& given, const Letter& letter);
  void bind_source(const PtxOperand& given, const Letter& letter);
  void bind_predicate(const PtxOperand& given, const Letter& letter);
  void bind_immediate(const PtxOperand& given, const Letter& letter);
  void bind_address(const PtxOperand& given, const Letter& letter);
  void bind_vector(const PtxOperand& given, const Letter& letter);
  void bind_target(const PtxOperand& given, const Letter& letter);
  void bind_clock(const PtxOperand& given, const Letter& letter);
  void bind_call();

  const PtxModule& module_;
  bool is_entry_;
  Dictionary& dictionary_;
  FunctionOperands& operands_;
  FunctionCode& code_;

  const PtxInstruction* text_ = nullptr;
  Instruction made_;
  bool wider_ = false;        // registers may be wider than the type
  bool names_space_ = false;  // of its address, or is generic
  int addresses_ = 0;         // bound
  uint32_t condition_code_ = kNoUnit;
  std::vector<Instruction> extensions_;  // of narrow results to their registers
};

}  // namespace stitch::ptxsim
