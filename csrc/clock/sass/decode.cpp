#include <cstring>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "clock/sass/program.h"

namespace stitch::clock {

namespace {

// Which of `b` and `c` bits 32 to 63 hold, and as what, by the form in bits 9 to 11.
struct Form {
  OperandKind kind;
  bool is_c;  // then bits 64 to 71 hold b
};
constexpr std::array<Form, 8> kForms = {{
    {OperandKind::reg, false},
    {OperandKind::reg, false},
    {OperandKind::immediate, true},
    {OperandKind::constant, true},
    {OperandKind::immediate, false},
    {OperandKind::constant, false},
    {OperandKind::uniform, false},
    {OperandKind::uniform, true},
}};

// A uniform result of registers or predicates that each lane has.
bool reads_lanes(Opcode opcode) {
  return opcode == Opcode::r2ur || opcode == Opcode::r2ur_ampere || opcode == Opcode::voteu;
}

class Decoder {
 public:
  Decoder(Instruction& instruction, int architecture, int64_t next)
      : instruction_(instruction), architecture_(architecture), next_(next) {}

  void decode() {
    const std::string_view letters = instruction_.row->operands;
    has_c_ = letters.find_first_of("cC") != letters.npos;
    for (const char letter : letters) {
      if (letter == '-' || letter == '|') {
        has_sign_ = true;
        has_magnitude_ = letter == '|';
        continue;
      }
      add(letter);
      has_sign_ = has_magnitude_ = false;
    }
  }

 private:
  int64_t field(int first, int bits) const {
    return static_cast<int64_t>(instruction_.field(first, bits));
  }
  int64_t signed_field(int first, int bits) const {
    return static_cast<int64_t>(instruction_.field(first, bits) << (64 - bits)) >> (64 - bits);
  }
  uint8_t index(int first, int bits = 8) const {
    return static_cast<uint8_t>(instruction_.field(first, bits));
  }
  bool is_uniform() const { return instruction_.row->pipe == Pipe::uniform; }
  bool reads_lanes() const { return clock::reads_lanes(instruction_.row->opcode); }
  uint8_t uniform_index(int at) const {
    const uint8_t found = index(at, architecture_ >= 100 ? 8 : 6);
    return found == (architecture_ >= 100 ? 255 : 63) ? kZeroRegister : found;
  }
  Operand& put(OperandKind kind, char letter) {
    return instruction_.operands.emplace_back(Operand{.kind = kind, .letter = letter});
  }
  Operand& put_register(int at, char letter, bool uniform) {
    Operand& operand = put(uniform ? OperandKind::uniform : OperandKind::reg, letter);
    operand.index = uniform ? uniform_index(at) : index(at);
    return operand;
  }
  void put_predicate(int at, char letter, bool uniform, int negated_at) {
    Operand& operand =
        put(uniform ? OperandKind::uniform_predicate : OperandKind::predicate, letter);
    operand.index = index(at, 3);
    operand.negated = negated_at >= 0 && instruction_.bit(negated_at);
    operand.is_destination = negated_at < 0;
  }

  void put_immediate(char letter, int at, int bits) {
    put(OperandKind::immediate, letter).value = field(at, bits);
  }
  Operand& put_constant(char letter, int64_t byte) {
    Operand& operand = put(OperandKind::constant, letter);
    operand.uniform = index(54, 5);
    operand.value = byte;
    return operand;
  }
  Operand& put_address(char letter, int register_at, int offset_at, int offset_bits) {
    Operand& operand = put(OperandKind::memory, letter);
    operand.index = index(register_at);
    operand.value = signed_field(offset_at, offset_bits);
    return operand;
  }
  void take_sign(Operand& operand, int negated_at, int absolute_at) const {
    operand.negated = has_sign_ && instruction_.bit(negated_at);
    operand.absolute = has_magnitude_ && instruction_.bit(absolute_at);
  }

  // b or c: in bits 32 to 63 as the form says, or a register at 64.
  void put_source(char letter) {
    const Form form = kForms[instruction_.form()];
    const bool is_third = letter != 'b';
    // Where there is no c, b is in its bits whatever the form says it is.
    if (has_c_ && form.is_c != is_third)
      return take_sign(put_register(64, letter, is_uniform()), 75, 74);
    if (form.kind == OperandKind::immediate) return put_immediate(letter, 32, 32);
    const bool uniform = is_uniform() || form.kind == OperandKind::uniform;
    take_sign(form.kind == OperandKind::constant ? put_constant(letter, field(40, 14) * 4)
                                                 : put_register(32, letter, uniform),
              63, 62);
  }
  void put_high_half(char letter) {
    const bool takes_high_half = instruction_.bit(80) && !instruction_.bit(73);
    if (takes_high_half) put_source(letter);
  }

  void put_memory(char letter) {
    const Row& row = *instruction_.row;
    const bool is_atomic = row.latency == Latency::atomic;
    Operand& operand = put_address(letter, 24, 40, is_atomic ? 23 : 24);
    const bool is_scaled = row.opcode == Opcode::lds || row.opcode == Opcode::sts;
    if (is_scaled && field(78, 2)) operand.scale = static_cast<uint8_t>(2 << field(78, 2));
    if (!instruction_.bit(91)) return;
    const bool is_last = row.flow != Flow::load;  // behind the data
    const uint8_t uniform = uniform_index(is_last ? 64 : 32);
    if (row.latency != Latency::global && !is_atomic)
      operand.uniform = uniform;
    else if (architecture_ >= 90)
      operand.descriptor = uniform;
  }

  bool has_uniform_place() const { return instruction_.form() == 6; }
  // A copy has its place in shared memory before the address in global memory.
  void put_copy_place(char letter) {
    Operand& operand = put_address(letter, 16, 44, 20);
    if (has_uniform_place()) operand.uniform = uniform_index(64);
  }
  void put_copy_source(char letter) {
    Operand& operand = put_address(letter, 24, 32, 12);
    if (architecture_ < 90) return;
    operand.descriptor = uniform_index(64);
    if (has_uniform_place()) ++operand.descriptor;  // the descriptor lies behind the place
  }

  void put_loaded_constant(char letter) {
    const Opcode opcode = instruction_.row->opcode;
    Operand& operand = put_constant(letter, opcode == Opcode::uldc   ? field(40, 14) * 4
                                            : opcode == Opcode::ldcu ? field(37, 17)
                                                                     : signed_field(38, 16));
    if (opcode == Opcode::ldc) operand.index = index(24);
  }

  void put_target(char letter) {
    const bool is_push = instruction_.row->flow == Flow::push;
    int64_t words = signed_field(34, is_push ? 30 : 48);
    if (architecture_ >= 90 && !is_push) words = signed_field(34, 40) * 256 + field(16, 8);
    put(OperandKind::target, letter).value = next_ + words * 4;
  }

  // Each of lane and clamp is an immediate or a register.
  void put_shuffle(char letter) {
    const int form = instruction_.form();
    if (form == 4 || form == 7)
      put_immediate(letter, 53, 5);
    else
      put_register(32, letter, false);
    if (form == 2 || form == 7)
      put_immediate(letter, 40, 13);
    else
      put_register(64, letter, false);
  }
  void put_block_barrier(char letter) {
    put_immediate(letter, 54, 4);
    if (field(42, 12) != 0) put_immediate(letter, 42, 12);
    if (reduces_over_block(instruction_)) put_predicate(87, 'p', false, 90);
  }
  void put_tables(char letter) {
    put(OperandKind::immediate, letter).value = field(64, 3) | field(72, 5) << 3;
    put_immediate(letter, 16, 8);
  }

  void put_condition(char letter) {
    if (instruction_.form() == 2) put_predicate(24, letter, true, 27);
    if (field(32, 2) == 2) put_register(24, letter, true);  // BRA.DIV: lanes that must be there
  }
  void put_special(char letter) { put(OperandKind::special, letter).index = index(72); }
  void put_barrier(char letter) { put(OperandKind::barrier, letter).index = index(16, 4); }
  void put_scoreboard(char letter) {
    put(OperandKind::scoreboard, letter).index = index(44, 3);
    put_immediate(letter, 38, 6);
  }
  void put_lanes(char letter) {
    const bool are_collective = instruction_.bit(86);
    put_register(are_collective ? 24 : 32, letter, false);
    if (are_collective) put_target('j');
  }
  void put_shift(char letter) { put_immediate(letter, 75, 5); }
  void put_table(char letter) { put_immediate(letter, 72, 8); }
  void put_predicates(char letter) { put(OperandKind::predicates, letter); }
  void put_mask(char letter) {
    if (field(32, 32) != 0) put_immediate(letter, 32, 32);
  }
  void add(char letter);

  Instruction& instruction_;
  int architecture_;
  int64_t next_;
  bool has_c_ = false, has_sign_ = false, has_magnitude_ = false;
};

// Registers and predicates, each in fixed bits; the head of sass.def says what letters stand for.
struct Place {
  char letter;
  int at;
  int negated_at;  // -1: a destination
};
constexpr Place kPredicates[] = {
    {'P', 81, -1}, {'Q', 84, -1}, {'p', 87, 90}, {'q', 77, 80}, {'r', 68, 71}};
constexpr Place kRegisters[] = {
    {'d', 16, -1}, {'D', 16, -1}, {'a', 24, 72}, {'t', 32, 0}, {'u', 64, 0}};

void Decoder::add(char letter) {
  if (const Place* place = find_by(kPredicates, letter, &Place::letter)) {
    const bool may_be_uniform = letter == 'r' && instruction_.bit(67);
    const bool uniform = is_uniform() && !(letter == 'p' && reads_lanes());
    put_predicate(place->at, letter, uniform || may_be_uniform, place->negated_at);
    return;
  }
  if (const Place* place = find_by(kRegisters, letter, &Place::letter)) {
    const bool is_of_row = letter == 'd' || (letter == 'a' && !reads_lanes());
    const bool uniform = letter == 'D' || (is_uniform() && is_of_row);
    Operand& operand = put_register(place->at, letter, uniform);
    operand.is_destination = place->negated_at < 0;
    return take_sign(operand, place->negated_at, place->negated_at + 1);
  }
  struct Special {
    char letter;
    void (Decoder::*put)(char letter);
  };
  static constexpr Special specials[] = {
      {'b', &Decoder::put_source},      {'c', &Decoder::put_source},
      {'C', &Decoder::put_high_half},   {'z', &Decoder::put_condition},
      {'m', &Decoder::put_memory},      {'o', &Decoder::put_copy_place},
      {'g', &Decoder::put_copy_source}, {'k', &Decoder::put_loaded_constant},
      {'s', &Decoder::put_special},     {'B', &Decoder::put_barrier},
      {'j', &Decoder::put_target},      {'n', &Decoder::put_block_barrier},
      {'w', &Decoder::put_scoreboard},  {'x', &Decoder::put_shuffle},
      {'h', &Decoder::put_shift},       {'l', &Decoder::put_table},
      {'L', &Decoder::put_tables},      {'F', &Decoder::put_predicates},
      {'i', &Decoder::put_mask},        {'W', &Decoder::put_lanes}};
  const Special* special = find_by(specials, letter, &Special::letter);
  STITCH_CHECK(special, "sass.def has the operand letter '" << letter << "' in row "
                                                            << instruction_.row->name);
  (this->*special->put)(letter);
}

Instruction decode_instruction(std::string_view bytes, int architecture, int64_t next) {
  Instruction instruction;
  std::memcpy(&instruction.low, bytes.data(), 8);
  std::memcpy(&instruction.high, bytes.data() + 8, 8);
  const auto field = [&](int first, int bits) {
    return static_cast<uint8_t>(instruction.field(first, bits));
  };
  instruction.row = &find_row(instruction.field(0, 12));
  instruction.guard = field(12, 3);
  instruction.guard_negated = instruction.bit(15);
  const Opcode opcode = instruction.row->opcode;
  instruction.guard_uniform =
      opcode == Opcode::s2ur || (instruction.row->pipe == Pipe::uniform && !reads_lanes(opcode));
  instruction.control = {field(105, 4), field(110, 3), field(113, 3), field(116, 6)};
  Decoder(instruction, architecture, next).decode();
  return instruction;
}

std::string describe(const Instruction& instruction, size_t index) {
  return to_hex(instruction.field(0, 12)) + " at " + to_hex(index * kInstructionBytes);
}

void check_targets(const Program& program, const Instruction& instruction, size_t index) {
  const Operand* target = instruction.find('j');
  if (!target || instruction.row->flow == Flow::indirect) return;
  const auto end = static_cast<int64_t>(program.code.size() * kInstructionBytes);
  if (target->value >= 0 && target->value < end && target->value % kInstructionBytes == 0) return;
  throw UserError(concat("the code of ", program.kernel->name,
                         " is damaged: ", describe(instruction, index), " goes to byte ",
                         target->value, " of ", end));
}

}  // namespace

Program decode(const Cubin& cubin, const CubinKernel& kernel) {
  const std::string_view code = kernel.code;
  if (code.empty() || code.size() % kInstructionBytes != 0)
    throw UserError(concat("the code of ", kernel.name, " is damaged: it has ", code.size(),
                           " bytes, and an instruction has 16"));
  Program program{&kernel, cubin.architecture, {}, {}};
  std::set<uint64_t> unknown;
  for (size_t at = 0; at < code.size(); at += kInstructionBytes) {
    const Instruction& instruction = program.code.emplace_back(decode_instruction(
        code.substr(at, kInstructionBytes), cubin.architecture, at + kInstructionBytes));
    const bool is_known = instruction.row->opcode != Opcode::unknown;
    if (!is_known && unknown.insert(instruction.field(0, 12)).second)
      program.unknown.push_back(describe(instruction, program.code.size() - 1));
  }
  for (size_t i = 0; i < program.code.size(); ++i) check_targets(program, program.code[i], i);
  return program;
}

}  // namespace stitch::clock
