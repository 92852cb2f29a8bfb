// Program: the SASS of one kernel, decoded.
//
// Comes in: the code of a CubinKernel.  Goes out: an Instruction for each 128 bits.  Holds: branch
// targets lie on instructions of the program; an opcode that no row of sass.def has is the row
// `unknown`, and is listed.
#pragma once

#include "base/lists.h"
#include "clock/sass/cubin.h"
#include "clock/sass/isa.h"

namespace stitch::clock {

constexpr int kInstructionBytes = 16;
constexpr uint8_t kZeroRegister = 255, kTruePredicate = 7, kNoScoreboard = 7;
constexpr int kScoreboards = 6;

enum class OperandKind : uint8_t {
  reg,
  uniform,
  predicate,
  uniform_predicate,
  immediate,
  constant,  // byte `value` of bank `uniform`, plus register `index`
  memory,    // register, uniform register and offset
  special,
  barrier,
  scoreboard,
  target,  // byte of the program
  predicates,
};
constexpr bool is_predicate(OperandKind kind) {
  return kind == OperandKind::predicate || kind == OperandKind::uniform_predicate;
}

struct Operand {
  OperandKind kind{};
  bool is_destination = false;
  bool negated = false, absolute = false;
  uint8_t index = kZeroRegister;       // of the register, predicate, barrier
  uint8_t uniform = kZeroRegister;     // memory: a second register, uniform; a bank
  uint8_t descriptor = kZeroRegister;  // memory: a uniform register that the walk ignores
  uint8_t scale = 0;                   // memory in shared: the register counts 4, 8 or 16 times
  char letter = 0;                     // of sass.def
  int64_t value = 0;                   // bits; offset in bytes
};

struct Control {
  uint8_t stall_cycles = 0;
  uint8_t write_scoreboard = kNoScoreboard;  // taken until the result is there
  uint8_t read_scoreboard = kNoScoreboard;   // taken until the operands are read
  uint8_t wait_mask = 0;                     // scoreboards to wait for before
};

struct Instruction {
  const Row* row = nullptr;
  uint64_t low = 0, high = 0;  // all 128 bits: modifiers are read from them
  uint8_t guard = kTruePredicate;
  bool guard_negated = false, guard_uniform = false;
  Control control;
  std::vector<Operand> operands;

  uint64_t field(int first, int bits) const {
    const uint64_t word = first >= 64  ? high >> (first - 64)
                          : first == 0 ? low
                                       : low >> first | high << (64 - first);
    return bits == 64 ? word : word & ((uint64_t{1} << bits) - 1);
  }
  bool bit(int at) const { return field(at, 1); }
  int form() const { return static_cast<int>(field(9, 3)); }
  // Null: the row has no such operand.
  const Operand* find(char letter) const { return find_by(operands, letter, &Operand::letter); }
};

struct Program {
  const CubinKernel* kernel = nullptr;  // of the Cubin that was decoded
  int architecture = 0;
  std::vector<Instruction> code;
  std::vector<std::string> unknown;  // opcodes that no row has, each once: "0x3c4 at 0x120"
};

// UserError where the code is no multiple of an instruction or a branch leaves it.
Program decode(const Cubin& cubin, const CubinKernel& kernel);

// An access that other blocks need not see in order: weak, or of constants.
inline bool is_weak(const Instruction& instruction) {
  const auto order = instruction.field(77, 4);
  return order == 0 || order == 4;
}
// Of a thread's own memory: spills and arrays.
inline bool is_local(const Instruction& instruction) {
  return instruction.row->opcode == Opcode::ldl || instruction.row->opcode == Opcode::stl;
}
// BAR.RED: a predicate of all threads of the block.
inline bool reduces_over_block(const Instruction& instruction) {
  return instruction.row->flow == Flow::barrier && instruction.field(77, 3) == 2;
}
// Bytes that each lane moves: of memory and constants.
int access_bytes(const Instruction& instruction);
// An address of global memory in two registers.
bool has_wide_address(const Instruction& instruction, const Operand& operand);
// Registers [first, first + count) that an instruction writes or reads, of the kind of the operand.
int register_count(const Instruction& instruction, const Operand& operand);
// "R4", "UP0", ... that an instruction sets, or that it reads.
std::vector<std::string> registers_of(const Instruction& instruction, bool set);
// Whose results come in the order of issue, so that a scoreboard of one stands for those before it;
// "" where stall counts may do.
const char* queue_of(const Instruction& instruction);

std::string to_hex(int64_t value);  // "-0x1f"
// One line an instruction, as the disassembler writes it but without modifiers.
std::string print_program(const Program& program);
std::string print_instruction(const Program& program, size_t index);

}  // namespace stitch::clock
