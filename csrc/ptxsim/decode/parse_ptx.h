// PTX text as it is written: functions, variables, scopes, instructions with their operands.
//
// Nothing here knows an instruction.  Names are views into the text, which must stay.  All lists
// are flat and refer to each other by index, so nothing is built recursively.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptxsim/isa/isa.h"

namespace stitch::ptxsim {

struct PtxOperand {
  enum class Kind : uint8_t {
    name,     // register, special register, variable, label, function; bits: what is added
    integer,  // bits
    real32,
    real64,
    sink,     // _
    address,  // [name + bits]; no name: [bits]
    vector,   // {...}
    list,     // (...)
  };
  Kind kind = Kind::sink;
  bool negated = false;  // !p
  std::string_view name;
  std::string_view second;  // the q of p|q
  uint64_t bits = 0;
  uint32_t first = 0, count = 0;  // elements in PtxModule::operands
};

struct PtxInstruction {
  std::string_view words;  // "add.rn.f32"
  std::string_view guard;
  bool guard_negated = false;
  uint32_t scope = 0;
  uint32_t first = 0, count = 0;  // in PtxModule::operands
  int line = 0;
  int source_line = 0;
};

// `.reg .b32 %r<count>;` declares %r0 and so on; count 0: one register of just that name.
struct PtxRegisters {
  Type type;
  uint32_t count;
};

// An initial value that is the address of a variable.
struct PtxInitialAddress {
  uint64_t at;
  std::string_view name;
  uint64_t added;
  bool generic;
  int line;
};

struct PtxVariable {
  std::string_view name;
  Space space = Space::none;
  Type type = Type::none;
  uint32_t alignment = 1;
  uint64_t bytes = 0;
  std::string initial;
  std::vector<PtxInitialAddress> addresses;
  bool is_extern = false;  // of .shared: what the launch adds
  bool is_entry_parameter = false;
  int line = 0;
};

struct PtxSymbol {
  enum class Kind : uint8_t { registers, variable, label, table, prototype, function };
  Kind kind;
  uint32_t index;  // labels: in PtxModule::instructions
};

struct PtxScope {
  uint32_t parent = 0;  // of scope 0, the module's: itself
  std::unordered_map<std::string_view, PtxSymbol> names;
};

struct PtxFunction {
  std::string_view name;
  bool is_entry = false;
  bool has_body = false;
  std::vector<uint32_t> parameters, results;  // in PtxModule::variables
  std::array<uint32_t, 3> max_threads = {0, 0, 0};
  std::array<uint32_t, 3> required_threads = {0, 0, 0};
  uint32_t min_blocks = 0;
  uint32_t scope = 0;
  uint32_t first = 0, end = 0;  // in PtxModule::instructions
  int line = 0;
};

struct PtxTable {  // .branchtargets
  std::vector<std::string_view> labels;
  uint32_t scope = 0;
};

struct PtxModule {
  std::string_view text;
  int version = 0;
  std::string_view target;
  std::vector<PtxScope> scopes;
  std::vector<PtxRegisters> registers;
  std::vector<PtxVariable> variables;
  std::vector<PtxFunction> functions;
  std::vector<PtxTable> tables;
  std::vector<PtxInstruction> instructions;
  std::vector<PtxOperand> operands;

  // The symbol that a name means in a scope; null: none.  `number` is that of %r7 in %r<8>.
  const PtxSymbol* find(uint32_t scope, std::string_view name, uint32_t& number) const;
};

// UserError naming the line.
PtxModule parse_ptx(std::string_view text);

}  // namespace stitch::ptxsim
