// Module: PTX text, decoded so that one instruction is one indirect call.
//
// Every register, immediate and special register of a kernel and of the functions it calls has a
// place in one register file: units of 32 lanes x 4 bytes, which registers of a function share that
// no lane needs at the same time.  16- and 32-bit registers take one unit,
// 64-bit ones two, 128-bit ones four; a predicate is one unit whose first word holds 32 bits.
// Immediates and %tid-like registers are units that are filled when a warp starts, so handlers see
// nothing but units.  PTX functions do not recurse here (decode refuses), so each has one static
// frame in the same file, and a lane's return address is a unit too.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ptxsim/isa/isa.h"

namespace stitch::ptxsim {

constexpr int kLanes = 32;
constexpr int kUnitBytes = kLanes * 4;
constexpr uint32_t kNoUnit = 0xffffffffu;

struct Warp;
struct Instruction;
// Computes the lanes of `mask`; other lanes of the destination keep their bits.
using Handler = void (*)(Warp& warp, const Instruction& instruction, uint32_t mask);

// Memory operands are an address unit; an address without a register is a Constant.  The .param
// space of calls is Space::local here; Space::param is what the launch passed.  call and the ret of
// a function have one operand, the function's unit of return addresses (indices in Module::code);
// the ret of an entry has none and exits.
struct Instruction {
  Handler handler = nullptr;  // of Flow::lanes instructions; null for what the interpreter does
  Opcode opcode{};
  Flow flow{};
  Type type = Type::none;         // of the operation
  Type source_type = Type::none;  // cvt, set: of the operand; else none
  Modifiers modifiers;
  uint8_t destinations = 0;   // operands[0, destinations) are written
  uint8_t operand_count = 0;  // the rest up to operand_count is read
  uint8_t vector = 1;         // elements of a vector load or store
  bool guard_negated = false;
  uint32_t guard = kNoUnit;                // unit of the predicate of @p
  std::array<uint32_t, 12> operands = {};  // units in the order of the text, vectors flattened;
                                           // kNoUnit: sink `_` or an operand left out
  int64_t immediate = 0;  // address offset; branch target (index in Module::code); call: function;
                          // brx.idx: index in Module::branch_tables; lop3: its table
  int64_t source_offset = 0;   // cp.async: offset of the second address, which is 64 bits wide
  uint8_t address_bytes = 8;   // of the (first) address register: 4 or 8
  uint8_t register_bytes = 0;  // ld st atom red: of a data register, at least type_bytes(type)
  bool reads_packed = false;   // the first operand read is a register that a mov packs
  int32_t line = 0;            // in the PTX text
  int32_t source_line = 0;     // of the CUDA text (.loc, outermost inlined_at); 0: not known
};

// A unit to fill when a warp starts, all lanes alike.  pred: all ones or zero.
struct Constant {
  uint32_t unit;
  Type type;
  uint64_t bits;
  // Of a .global variable: an offset in the module's globals, whose host address is added.
  // Addresses in other spaces are offsets in the space and stay so.
  bool is_global_address = false;
};
struct SpecialUnit {
  uint32_t unit;
  Type type;
  Special special;
};

// Eight bytes of a variable's initial value that are an address.
struct InitialAddress {
  uint64_t at;      // in the variable
  Space space;      // global: the host address of the module's globals is added
  uint64_t offset;  // in that space
  bool generic;     // of const: the window of generic addresses is added
};

// A variable at an offset of its space; its address is a Constant.
struct Variable {
  std::string name;
  Space space;
  uint64_t offset = 0;
  uint64_t bytes = 0;   // 0: what the launch adds to shared memory
  std::string initial;  // first bytes of .global and .const; zeros follow
  std::vector<InitialAddress> addresses;
};

struct Parameter {
  std::string name;
  Type type;  // b8 for arrays of bytes (structs)
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

struct Function {
  std::string name;
  bool is_entry = false;
  int first = 0;  // instructions [first, end) of Module::code
  int end = 0;
  std::vector<Parameter> parameters;                // entries: the launch's bytes, Space::param
  std::array<uint32_t, 3> max_threads = {0, 0, 0};  // .maxntid; 0: not given
  std::array<uint32_t, 3> required_threads = {0, 0, 0};  // .reqntid
  uint32_t min_blocks = 0;
  uint64_t parameter_bytes = 0;
  // Of an entry, with all it can call:
  uint64_t shared_bytes = 0;  // static
  uint64_t local_bytes = 0;   // per lane: .local variables and .param space of calls
  uint32_t units = 0;         // of the register file
  int registers = 0;          // 32-bit registers named, a bound for want of ptxas
  std::vector<Constant> constants;
  std::vector<SpecialUnit> specials;
};

struct Module {
  std::vector<Instruction> code;
  std::vector<Function> functions;
  std::vector<Variable> variables;              // of .global and .const
  std::vector<std::vector<int>> branch_tables;  // of brx.idx: indices in `code`
  uint64_t global_bytes = 0;                    // .global variables
  uint64_t const_bytes = 0;

  const Function* find_entry(std::string_view name) const;
};

// Parses and decodes PTX 7.8 onwards.  UserError naming the line: text that is no PTX, a target or
// instruction not in ptx.def, recursion, an undefined name.
std::shared_ptr<const Module> load_module(std::string_view ptx);

}  // namespace stitch::ptxsim
