#include <cstring>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "clock/sass/program.h"

namespace stitch::clock {

namespace {

// A uniform result of registers or predicates that each lane has.
bool reads_lanes(Opcode opcode) {
  return opcode == Opcode::r2ur || opcode == Opcode::r2ur_ampere || opcode == Opcode::voteu;
}

class Decoder {
 public:
  Decoder(Instruction& instruction, int architecture, int64_t next)
      : instruction_(instruction),
        row_(*instruction.row),
        architecture_(architecture),
        next_(next) {}

  void decode() {
    has_c_ = row_.operands.find_first_of("cC") != row_.operands.npos;
    for (const char letter : row_.operands) {
      const bool is_mark = letter == '-' || letter == '|';
      if (!is_mark) add(letter);
      has_sign_ = is_mark;
      has_magnitude_ = letter == '|';
    }
  }

 private:
  using enum OperandKind;

  // Which of `b` and `c` bits 32 to 63 hold, and as what, by the form in bits 9 to 11.
  struct Form {
    OperandKind kind;
    bool is_c;  // then bits 64 to 71 hold b
  };
  static constexpr Form kForms[] = {{reg, false},     {reg, false},       {immediate, true},
                                    {constant, true}, {immediate, false}, {constant, false},
                                    {uniform, false}, {uniform, true}};

  // Operands in fixed bits; the head of sass.def says what letters stand for.
  struct Place {
    char letter;
    OperandKind kind;
    int at, bits;
    int sign_at;  // 0: it has none; kSet: it is a destination
  };
  static constexpr int kSet = -1;
  static constexpr Place kPlaces[] = {
      {'P', predicate, 81, 3, kSet}, {'Q', predicate, 84, 3, kSet}, {'p', predicate, 87, 3, 90},
      {'q', predicate, 77, 3, 80},   {'r', predicate, 68, 3, 71},   {'d', reg, 16, 8, kSet},
      {'D', reg, 16, 8, kSet},       {'a', reg, 24, 8, 72},         {'t', reg, 32, 8, 0},
      {'u', reg, 64, 8, 0},          {'s', special, 72, 8, 0},      {'B', barrier, 16, 4, 0},
      {'w', scoreboard, 44, 3, 0},   {'v', immediate, 38, 6, 0},    {'h', immediate, 75, 5, 0},
      {'l', immediate, 72, 8, 0},    {'T', immediate, 16, 8, 0},    {'n', immediate, 54, 4, 0},
      {'N', immediate, 42, 12, 0},   {'i', immediate, 32, 32, 0},   {'F', predicates, 0, 0, 0}};

  int64_t field(int first, int bits) const {
    return static_cast<int64_t>(instruction_.field(first, bits));
  }
  int64_t signed_field(int first, int bits) const {
    return static_cast<int64_t>(instruction_.field(first, bits) << (64 - bits)) >> (64 - bits);
  }
  bool is_uniform() const { return row_.pipe == Pipe::uniform; }
  uint8_t index(int at) const { return static_cast<uint8_t>(field(at, 8)); }
  uint8_t uniform_index(int at) const {
    const int bits = architecture_ >= 100 ? 8 : 6;
    const auto found = static_cast<uint8_t>(field(at, bits));
    return found == (1 << bits) - 1 ? kZeroRegister : found;
  }

  Operand& put(char letter, OperandKind kind) {
    return instruction_.operands.emplace_back(Operand{.kind = kind, .letter = letter});
  }
  void put_immediate(char letter, int64_t value) { put(letter, immediate).value = value; }
  Operand& put_register(char letter, int at, bool is_uniform) {
    Operand& operand = put(letter, is_uniform ? uniform : reg);
    operand.index = is_uniform ? uniform_index(at) : index(at);
    return operand;
  }
  Operand& put_constant(char letter, int64_t byte) {
    Operand& operand = put(letter, constant);
    operand.uniform = static_cast<uint8_t>(field(54, 5));
    operand.value = byte;
    return operand;
  }
  Operand& put_address(char letter, int register_at, int offset_at, int offset_bits) {
    Operand& operand = put(letter, memory);
    operand.index = index(register_at);
    operand.value = signed_field(offset_at, offset_bits);
    return operand;
  }
  void take_sign(Operand& operand, int negated_at, int absolute_at) const {
    operand.negated = has_sign_ && instruction_.bit(negated_at);
    operand.absolute = has_magnitude_ && instruction_.bit(absolute_at);
  }

  void put_in_place(const Place& place) {
    const char letter = place.letter;
    const int64_t bits = field(place.at, place.bits);
    if ((letter == 'N' || letter == 'i') && bits == 0) return;
    if (letter == 'p' && row_.flow == Flow::barrier && !reduces_over_block(instruction_)) return;
    const bool is_of_lanes = reads_lanes(row_.opcode) && (letter == 'a' || letter == 'p');
    const bool is_uniform = letter == 'D' || (letter == 'r' && instruction_.bit(67)) ||
                            (this->is_uniform() && !is_of_lanes);
    if (place.kind == immediate) return put_immediate(letter, bits);
    if (place.kind == reg) {
      Operand& operand = put_register(letter, place.at, is_uniform);
      operand.is_destination = place.sign_at == kSet;
      return take_sign(operand, place.sign_at, place.sign_at + 1);
    }
    const bool is_uniform_predicate = place.kind == predicate && is_uniform;
    Operand& operand = put(letter, is_uniform_predicate ? uniform_predicate : place.kind);
    operand.index = static_cast<uint8_t>(bits);
    operand.is_destination = place.sign_at == kSet;
    operand.negated = place.sign_at > 0 && instruction_.bit(place.sign_at);
  }

  // b or c: in bits 32 to 63 as the form says, or a register at 64.
  void put_source(char letter) {
    const Form form = kForms[instruction_.form()];
    const bool is_third = letter != 'b';
    // Where there is no c, b is in its bits whatever the form says it is.
    if (has_c_ && form.is_c != is_third)
      return take_sign(put_register(letter, 64, is_uniform()), 75, 74);
    if (form.kind == immediate) return put_immediate(letter, field(32, 32));
    const bool in_uniform = is_uniform() || form.kind == uniform;
    take_sign(form.kind == constant ? put_constant(letter, field(40, 14) * 4)
                                    : put_register(letter, 32, in_uniform),
              63, 62);
  }
  void put_high_half(char letter) {
    const bool takes_high_half = instruction_.bit(80) && !instruction_.bit(73);
    if (takes_high_half) put_source(letter);
  }

  void put_memory(char letter) {
    const bool is_atomic = row_.latency == Latency::atomic;
    Operand& operand = put_address(letter, 24, 40, is_atomic ? 23 : 24);
    const bool is_scaled = row_.opcode == Opcode::lds || row_.opcode == Opcode::sts;
    if (is_scaled && field(78, 2)) operand.scale = static_cast<uint8_t>(2 << field(78, 2));
    if (!instruction_.bit(91)) return;
    const bool is_last = row_.flow != Flow::load;  // behind the data
    const uint8_t uniform = uniform_index(is_last ? 64 : 32);
    if (row_.latency != Latency::global && !is_atomic)
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
    const Opcode opcode = row_.opcode;
    Operand& operand = put_constant(letter, opcode == Opcode::uldc   ? field(40, 14) * 4
                                            : opcode == Opcode::ldcu ? field(37, 17)
                                                                     : signed_field(38, 16));
    if (opcode == Opcode::ldc) operand.index = index(24);
  }

  void put_target(char letter) {
    if (row_.opcode == Opcode::warpsync_lanes && !are_collective()) return;
    const bool is_push = row_.flow == Flow::push;
    int64_t words = signed_field(34, is_push ? 30 : 48);
    if (architecture_ >= 90 && !is_push) words = signed_field(34, 40) * 256 + field(16, 8);
    put(letter, target).value = next_ + words * 4;
  }
  bool are_collective() const { return instruction_.bit(86); }
  void put_lanes(char letter) { put_register(letter, are_collective() ? 24 : 32, false); }

  // Each of lane and clamp is an immediate or a register.
  void put_lane(char letter) {
    const bool is_given = instruction_.form() == 4 || instruction_.form() == 7;
    if (is_given) return put_immediate(letter, field(53, 5));
    put_register(letter, 32, false);
  }
  void put_clamp(char letter) {
    const bool is_given = instruction_.form() == 2 || instruction_.form() == 7;
    if (is_given) return put_immediate(letter, field(40, 13));
    put_register(letter, 64, false);
  }
  void put_table(char letter) { put_immediate(letter, field(64, 3) | field(72, 5) << 3); }
  void put_condition(char letter) {
    if (instruction_.form() == 2) {
      Operand& operand = put(letter, uniform_predicate);
      operand.index = static_cast<uint8_t>(field(24, 3));
      operand.negated = instruction_.bit(27);
    }
    if (field(32, 2) == 2) put_register(letter, 24, true);  // BRA.DIV: lanes that must be there
  }

  void add(char letter) {
    if (const Place* place = find_by(kPlaces, letter, &Place::letter)) return put_in_place(*place);
    struct Special {
      char letter;
      void (Decoder::*put)(char letter);
    };
    static constexpr Special specials[] = {
        {'b', &Decoder::put_source},      {'c', &Decoder::put_source},
        {'C', &Decoder::put_high_half},   {'z', &Decoder::put_condition},
        {'m', &Decoder::put_memory},      {'o', &Decoder::put_copy_place},
        {'g', &Decoder::put_copy_source}, {'k', &Decoder::put_loaded_constant},
        {'j', &Decoder::put_target},      {'x', &Decoder::put_lane},
        {'y', &Decoder::put_clamp},       {'L', &Decoder::put_table},
        {'W', &Decoder::put_lanes}};
    const Special* special = find_by(specials, letter, &Special::letter);
    STITCH_CHECK(special,
                 "sass.def has the operand letter '" << letter << "' in row " << row_.name);
    (this->*special->put)(letter);
  }

  Instruction& instruction_;
  const Row& row_;
  int architecture_;
  int64_t next_;
  bool has_c_ = false, has_sign_ = false, has_magnitude_ = false;
};

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
