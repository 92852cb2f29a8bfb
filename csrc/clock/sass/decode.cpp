#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
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

int64_t sign_extend(uint64_t value, int bits) {
  return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

class Decoder {
 public:
  Decoder(Instruction& instruction, int architecture, int64_t next)
      : instruction_(instruction), architecture_(architecture), next_(next) {}

  void decode() {
    const std::string_view letters = instruction_.row->operands;
    bool sign = false, magnitude = false;
    has_c_ = letters.find('c') != letters.npos || letters.find('C') != letters.npos;
    for (const char letter : letters) {
      if (letter == '-' || letter == '|') {
        sign = true;
        magnitude = letter == '|';
        continue;
      }
      add(letter, sign, magnitude);
      sign = magnitude = false;
    }
  }

 private:
  uint64_t field(int first, int bits) const { return instruction_.field(first, bits); }
  bool is_uniform() const { return instruction_.row->pipe == Pipe::uniform; }
  // A uniform result of registers or predicates that each lane has.
  bool reads_lanes() const {
    const Opcode opcode = instruction_.row->opcode;
    return opcode == Opcode::r2ur || opcode == Opcode::voteu;
  }
  uint8_t uniform_index(int at) const {
    const auto index = static_cast<uint8_t>(field(at, architecture_ >= 100 ? 8 : 6));
    return index == (architecture_ >= 100 ? 255 : 63) ? kZeroRegister : index;
  }
  Operand& put(OperandKind kind, char letter) {
    Operand operand;
    operand.kind = kind;
    operand.letter = letter;
    instruction_.operands.push_back(operand);
    return instruction_.operands.back();
  }
  Operand& put_register(int at, char letter, bool uniform) {
    Operand& operand = put(uniform ? OperandKind::uniform : OperandKind::reg, letter);
    operand.index = uniform ? uniform_index(at) : static_cast<uint8_t>(field(at, 8));
    return operand;
  }
  Operand& put_predicate(int at, char letter, bool uniform, int negated_at) {
    Operand& operand =
        put(uniform ? OperandKind::uniform_predicate : OperandKind::predicate, letter);
    operand.index = static_cast<uint8_t>(field(at, 3));
    operand.negated = negated_at >= 0 && instruction_.bit(negated_at);
    operand.is_destination = negated_at < 0;
    return operand;
  }

  // b or c: in bits 32 to 63 as the form says, or a register at 64.
  void put_source(char letter, bool sign, bool magnitude) {
    const Form form = kForms[instruction_.form()];
    const bool is_third = letter == 'c' || letter == 'C';
    // Where there is no c, b is in its bits whatever the form says it is.
    if (has_c_ && form.is_c != is_third) {
      Operand& operand = put_register(64, letter, is_uniform());
      operand.negated = sign && instruction_.bit(75);
      operand.absolute = magnitude && instruction_.bit(74);
      return;
    }
    if (form.kind == OperandKind::immediate) {
      put(OperandKind::immediate, letter).value = static_cast<int64_t>(field(32, 32));
      return;
    }
    Operand* operand;
    if (form.kind == OperandKind::constant) {
      operand = &put(OperandKind::constant, letter);
      operand->uniform = static_cast<uint8_t>(field(54, 5));
      operand->value = static_cast<int64_t>(field(40, 14)) * 4;
    } else {
      operand = &put_register(32, letter, is_uniform() || form.kind == OperandKind::uniform);
    }
    operand->negated = sign && instruction_.bit(63);
    operand->absolute = magnitude && instruction_.bit(62);
  }

  void put_memory(char letter) {
    Operand& operand = put(OperandKind::memory, letter);
    const Row& row = *instruction_.row;
    operand.index = static_cast<uint8_t>(field(24, 8));
    operand.value = sign_extend(field(40, 24), 24);
    if (row.latency == Latency::atomic) operand.value = sign_extend(field(40, 23), 23);
    const bool is_scaled = row.opcode == Opcode::lds || row.opcode == Opcode::sts;
    if (is_scaled) operand.scale = static_cast<uint8_t>(field(78, 2) * 4);
    if (!instruction_.bit(91)) return;
    const bool is_last = row.flow != Flow::load;  // behind the data
    const uint8_t uniform = uniform_index(is_last ? 64 : 32);
    if (row.latency == Latency::global || row.latency == Latency::atomic) {
      if (architecture_ >= 90) operand.descriptor = uniform;
    } else {
      operand.uniform = uniform;
    }
  }

  bool has_uniform_place() const { return instruction_.form() == 6; }
  // A copy has its place in shared memory before the address in global memory.
  void put_copy_place(char letter) {
    Operand& operand = put(OperandKind::memory, letter);
    operand.index = static_cast<uint8_t>(field(16, 8));
    if (has_uniform_place()) operand.uniform = uniform_index(64);
    operand.value = sign_extend(field(44, 20), 20);
  }
  void put_copy_source(char letter) {
    Operand& operand = put(OperandKind::memory, letter);
    operand.index = static_cast<uint8_t>(field(24, 8));
    operand.value = sign_extend(field(32, 12), 12);
    if (architecture_ < 90) return;
    operand.descriptor = uniform_index(64);
    if (has_uniform_place()) ++operand.descriptor;  // the descriptor lies behind the place
  }

  void put_constant(char letter) {
    Operand& operand = put(OperandKind::constant, letter);
    const Opcode opcode = instruction_.row->opcode;
    operand.uniform = static_cast<uint8_t>(field(54, 5));
    operand.value = opcode == Opcode::uldc   ? static_cast<int64_t>(field(40, 14)) * 4
                    : opcode == Opcode::ldcu ? static_cast<int64_t>(field(37, 17))
                                             : sign_extend(field(38, 16), 16);
    if (opcode == Opcode::ldc) operand.index = static_cast<uint8_t>(field(24, 8));
  }

  void put_target(char letter) {
    const bool is_push = instruction_.row->flow == Flow::push;
    int64_t words = is_push ? sign_extend(field(34, 30), 30) : sign_extend(field(34, 48), 48);
    if (architecture_ >= 90 && !is_push)
      words = sign_extend(field(34, 40), 40) * 256 + static_cast<int64_t>(field(16, 8));
    put(OperandKind::target, letter).value = next_ + words * 4;
  }

  void put_immediate(char letter, int at, int bits) {
    put(OperandKind::immediate, letter).value = static_cast<int64_t>(field(at, bits));
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
    put(OperandKind::immediate, letter).value =
        static_cast<int64_t>(field(64, 3) | field(72, 5) << 3);
    put_immediate(letter, 16, 8);
  }

  void put_condition(char letter) {
    if (instruction_.form() == 2) put_predicate(24, letter, true, 27);
    if (field(32, 2) == 2) put_register(24, letter, true);  // BRA.DIV: lanes that must be there
  }
  void put_special(char letter) {
    put(OperandKind::special, letter).index = static_cast<uint8_t>(field(72, 8));
  }
  void put_barrier(char letter) {
    put(OperandKind::barrier, letter).index = static_cast<uint8_t>(field(16, 4));
  }
  void put_scoreboard(char letter) {
    put(OperandKind::scoreboard, letter).index = static_cast<uint8_t>(field(44, 3));
    put_immediate(letter, 38, 6);
  }
  void put_shift(char letter) { put_immediate(letter, 75, 5); }
  void put_table(char letter) { put_immediate(letter, 72, 8); }
  void put_predicates(char letter) { put(OperandKind::predicates, letter); }
  void put_mask(char letter) {
    if (field(32, 32) != 0) put_immediate(letter, 32, 32);
  }
  void add(char letter, bool sign, bool magnitude);
  bool add_in_place(char letter, bool sign, bool magnitude);

  Instruction& instruction_;
  int architecture_;
  int64_t next_;
  bool has_c_ = false;
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

bool Decoder::add_in_place(char letter, bool sign, bool magnitude) {
  for (const Place& place : kPredicates) {
    if (place.letter != letter) continue;
    const bool may_be_uniform = letter == 'r' && instruction_.bit(67);
    const bool uniform = is_uniform() && !(letter == 'p' && reads_lanes());
    put_predicate(place.at, letter, uniform || may_be_uniform, place.negated_at);
    return true;
  }
  for (const Place& place : kRegisters) {
    if (place.letter != letter) continue;
    const bool is_of_row = letter == 'd' || (letter == 'a' && !reads_lanes());
    const bool uniform = letter == 'D' || (is_uniform() && is_of_row);
    Operand& operand = put_register(place.at, letter, uniform);
    operand.is_destination = place.negated_at < 0;
    operand.negated = sign && instruction_.bit(place.negated_at);
    operand.absolute = magnitude && instruction_.bit(place.negated_at + 1);
    return true;
  }
  return false;
}

void Decoder::add(char letter, bool sign, bool magnitude) {
  struct Special {
    char letter;
    void (Decoder::*put)(char letter);
  };
  static constexpr Special specials[] = {
      {'z', &Decoder::put_condition},     {'m', &Decoder::put_memory},
      {'o', &Decoder::put_copy_place},    {'g', &Decoder::put_copy_source},
      {'k', &Decoder::put_constant},      {'s', &Decoder::put_special},
      {'B', &Decoder::put_barrier},       {'j', &Decoder::put_target},
      {'n', &Decoder::put_block_barrier}, {'w', &Decoder::put_scoreboard},
      {'x', &Decoder::put_shuffle},       {'h', &Decoder::put_shift},
      {'l', &Decoder::put_table},         {'L', &Decoder::put_tables},
      {'F', &Decoder::put_predicates},    {'i', &Decoder::put_mask}};
  if (add_in_place(letter, sign, magnitude)) return;
  if (letter == 'b' || letter == 'c') return put_source(letter, sign, magnitude);
  if (letter == 'C') {
    const bool takes_high_half = instruction_.bit(80) && !instruction_.bit(73);
    if (takes_high_half) put_source(letter, sign, magnitude);
    return;
  }
  const auto special = std::ranges::find(specials, letter, &Special::letter);
  STITCH_CHECK(special != std::end(specials), "sass.def has the operand letter '"
                                                  << letter << "' in row "
                                                  << instruction_.row->name);
  (this->*special->put)(letter);
}

Instruction decode_instruction(std::string_view bytes, int architecture, int64_t next) {
  static const Row& unknown = all_rows().back();
  Instruction instruction;
  std::memcpy(&instruction.low, bytes.data(), 8);
  std::memcpy(&instruction.high, bytes.data() + 8, 8);
  const Row* row = find_row(static_cast<uint16_t>(instruction.field(0, 12)));
  instruction.row = row ? row : &unknown;
  instruction.guard = static_cast<uint8_t>(instruction.field(12, 3));
  instruction.guard_negated = instruction.bit(15);
  instruction.guard_uniform = instruction.row->pipe == Pipe::uniform;
  instruction.control = {static_cast<uint8_t>(instruction.field(105, 4)), !instruction.bit(109),
                         static_cast<uint8_t>(instruction.field(110, 3)),
                         static_cast<uint8_t>(instruction.field(113, 3)),
                         static_cast<uint8_t>(instruction.field(116, 6))};
  Decoder(instruction, architecture, next).decode();
  return instruction;
}

std::string describe(const Instruction& instruction, size_t index) {
  std::ostringstream text;
  text << std::hex << "0x" << instruction.field(0, 12) << " at 0x" << index * kInstructionBytes;
  return text.str();
}

void check_targets(const Program& program, const Instruction& instruction, size_t index) {
  const Operand* target = instruction.find('j');
  if (!target || instruction.row->flow == Flow::indirect) return;
  const auto end = static_cast<int64_t>(program.code.size() * kInstructionBytes);
  if (target->value >= 0 && target->value < end && target->value % kInstructionBytes == 0) return;
  throw UserError("the code of " + program.kernel->name +
                  " is damaged: " + describe(instruction, index) + " goes to byte " +
                  std::to_string(target->value) + " of " + std::to_string(end));
}

}  // namespace

bool reduces_over_block(const Instruction& instruction) {
  return instruction.row->flow == Flow::barrier && instruction.field(77, 3) == 2;
}

const Operand* Instruction::find(char letter) const {
  const auto found = std::ranges::find(operands, letter, &Operand::letter);
  return found == operands.end() ? nullptr : &*found;
}

Program decode(const Cubin& cubin, const CubinKernel& kernel) {
  const std::string_view code = kernel.code;
  if (code.empty() || code.size() % kInstructionBytes != 0) {
    throw UserError("the code of " + kernel.name + " is damaged: it has " +
                    std::to_string(code.size()) + " bytes, and an instruction has 16");
  }
  Program program{&kernel, cubin.architecture, {}, {}};
  std::vector<uint16_t> unknown;
  for (size_t i = 0; i < code.size() / kInstructionBytes; ++i) {
    const int64_t at = static_cast<int64_t>(i) * kInstructionBytes;
    program.code.push_back(decode_instruction(code.substr(at, kInstructionBytes),
                                              cubin.architecture, at + kInstructionBytes));
    const Instruction& instruction = program.code.back();
    const auto bits = static_cast<uint16_t>(instruction.field(0, 12));
    if (instruction.row->opcode != Opcode::unknown || std::ranges::count(unknown, bits)) continue;
    unknown.push_back(bits);
    program.unknown.push_back(describe(instruction, i));
  }
  for (size_t i = 0; i < program.code.size(); ++i) check_targets(program, program.code[i], i);
  return program;
}

}  // namespace stitch::clock
