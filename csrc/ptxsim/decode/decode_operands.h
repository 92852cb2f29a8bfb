// Operands to units: registers, immediates, special registers and addresses of one function.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptxsim/decode/decode_function.h"

namespace stitch::ptxsim {

// The width of a unit's lanes for a type: 8-bit types are kept in 16 bits.
int lane_bytes(Type type);
bool is_clock(std::string_view name);
// Whether the name is a register that is constant over the life of a lane.
bool find_special(std::string_view name, Special& special);

class FunctionOperands {
 public:
  FunctionOperands(const PtxModule& module, FunctionCode& code) : module_(module), code_(code) {}

  // `line`, for errors, and `scope` of the instruction whose operands come next.
  void start(const PtxInstruction& instruction) { instruction_ = &instruction; }
  [[noreturn]] void fail(const std::string& what) const;

  // A call's variable is the callee's own.
  void alias(uint32_t variable, uint32_t of) { aliases_[variable] = of; }

  Slot register_of(std::string_view name);
  Slot temporary(int bytes);
  // Immediates, special registers, addresses of variables and registers.  `bytes` is what the
  // instruction takes: immediates and special registers come in that width, registers in theirs.
  Slot source(const PtxOperand& operand, int bytes, Type type);
  // The base of an address; `variable` is set if it is one.
  Slot base(const PtxOperand& address, const PtxVariable*& variable);
  const PtxSymbol& symbol(std::string_view name, PtxSymbol::Kind kind, const char* wanted);

 private:
  const PtxSymbol& find(std::string_view name, uint32_t& number);
  uint32_t resolve(uint32_t variable) const;
  template <class Declare>
  Slot intern(const std::string& key, int bytes, Declare declare);
  Slot constant(uint64_t bits, int bytes);
  Slot special(Special special, int bytes);
  Slot address(uint32_t variable, uint64_t added, int bytes);
  uint64_t immediate(const PtxOperand& operand, Type type) const;

  const PtxModule& module_;
  FunctionCode& code_;
  const PtxInstruction* instruction_ = nullptr;
  std::unordered_map<uint32_t, uint32_t> aliases_;
  std::unordered_map<uint64_t, Slot> registers_;  // by symbol and number
  std::unordered_map<std::string, Slot> constants_;
};

}  // namespace stitch::ptxsim
