// The instruction set of GPUs of compute capability 8.0 and later: one row of sass.def per opcode,
// and the numbers that rows and the machine are timed by.
//
// The encoding is not documented by its vendor.  What is here was compared with the vendor's
// disassembler over every cubin that the tests have.
#pragma once

#include <cstdint>
#include <string_view>

namespace stitch::clock {

// Who executes an instruction.
enum class Pipe : uint8_t { none, fma, alu, half, special, fp64, uniform, tensor, memory, count };
constexpr size_t kPipes = static_cast<size_t>(Pipe::count);
std::string_view pipe_name(Pipe pipe);

// When a result may be read.  `fixed`: the compiler's stall counts say it, and nothing is waited
// for; of the others a scoreboard is waited for.
enum class Latency : uint8_t {
  fixed,
  special,
  convert,
  fp64,
  uniform,
  constant,
  shared,
  exchange,
  global,
  atomic,
};

// What an instruction does beside moving values.
enum class Flow : uint8_t {
  none,
  branch,    // BRA
  call,      // CALL.REL: the return address is in registers by a MOV before it
  ret,       // RET.REL, and calls of what a register names
  indirect,  // BRX, JMP: the target is in no table that is read
  exit,
  push,     // BSSY: lanes that take part in a BSYNC
  sync,     // BSYNC; WARPSYNC: all lanes that are left
  leave,    // BREAK: lanes that no longer take part
  barrier,  // BAR
  load,
  store,
  atomic,  // a load and a store at one address
  copy,    // LDGSTS: global to shared
  commit,  // LDGDEPBAR
  await,   // DEPBAR
};

enum class Opcode : uint16_t {
#define SASS_ROW(id, ...) id,
#define SASS_TWINS SASS_ROW
#include "clock/sass/sass.def"
#undef SASS_TWINS
#undef SASS_ROW
  count
};

// A row of sass.def; the file's head says what the columns mean.
struct Row {
  Opcode opcode;
  std::string_view name;
  uint16_t bits;
  std::string_view operands;
  Pipe pipe;
  double issue_cycles;
  Latency latency;
  Flow flow;
};

// By the low 12 bits of an instruction; `unknown` where no other row has them.
const Row& find_row(uint64_t bits);

}  // namespace stitch::clock
