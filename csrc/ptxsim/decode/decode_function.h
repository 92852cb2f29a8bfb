// One function's instructions on units of its own frame, before functions are placed.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptxsim/decode/parse_ptx.h"
#include "ptxsim/isa/module.h"

namespace stitch::ptxsim {

// A constant that is the address of a variable, known once the variables of an entry are placed.
struct AddressUse {
  size_t constant;    // in FunctionCode::constants
  uint32_t variable;  // in PtxModule::variables
  uint64_t added;
};

constexpr int kPredicate = 0;  // the width of a predicate, as the others are in bytes

// Where an operand is; bytes: 2, 4, 8, 16 or kPredicate.
struct Slot {
  uint32_t unit = kNoUnit;
  int bytes = kPredicate;
  uint32_t count() const { return bytes < 4 ? 1 : static_cast<uint32_t>(bytes) / 4; }
};

constexpr uint32_t kReturnUnit = 0;  // of each device function, in its own frame

// What the words of a module's instructions say: few differ.
using Dictionary = std::unordered_map<std::string_view, std::vector<Spelling>>;

// Units count from 0, branch targets from the function's first instruction, branch tables from
// its first table.
struct FunctionCode {
  std::vector<Instruction> code;
  std::vector<Constant> constants;
  std::vector<SpecialUnit> specials;
  std::vector<AddressUse> addresses;
  std::vector<std::vector<int>> tables;
  std::vector<uint32_t> callees;  // in PtxModule::functions, as the immediate of a call
  std::vector<Slot> slots;        // all that operands name, in the order of their units
  uint32_t units = 0;
  int registers = 0;
};

// Where an instruction that is not guarded sends all lanes elsewhere; calls come back.
bool leaves(Opcode opcode);

// `dictionary` is shared by all functions of a module.
FunctionCode decode_function(const PtxModule& module, const PtxFunction& function,
                             Dictionary& dictionary);

}  // namespace stitch::ptxsim
