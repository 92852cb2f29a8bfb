#include "ptxsim/decode/decode_instruction.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/words.h"
#include "ptxsim/decode/decode_calls.h"
#include "ptxsim/decode/lex_ptx.h"
#include "ptxsim/lanes/lanes.h"

namespace stitch::ptxsim {
namespace {

using Kind = PtxOperand::Kind;

constexpr int kMostVectorBytes = 32;

}  // namespace

// A letter of Row::operands, with what stands around it.
struct Letter {
  char letter;
  bool optional = false;  // ? before it
  bool paired = false;    // | behind it
  bool hidden() const { return letter == 'K' || letter == 'k'; }
  bool written() const { return std::string_view("dDPUVK").find(letter) != std::string_view::npos; }
};

namespace {

std::vector<Letter> letters_of(const Row& row) {
  std::vector<Letter> letters;
  bool optional = false;
  for (const char c : row.operands)
    if (c == '?')
      optional = true;
    else if (c == '|')
      letters.back().paired = true;
    else
      letters.push_back({c, std::exchange(optional, false)});
  return letters;
}

// The type that converts n bytes of that sort.
Type integer_type(int bytes, bool is_signed) {
  return sized_type(is_signed ? Type::s8 : Type::u8, bytes);
}

bool is_signed(Type type) { return type >= Type::s8 && type <= Type::s64; }

std::string width_name(int bytes) {
  return bytes == kPredicate ? ".pred" : ".b" + std::to_string(bytes * 8);
}

}  // namespace

void InstructionDecoder::decode(const PtxInstruction& text) {
  text_ = &text;
  operands_.start(text);
  const Spelling spelling = choose();
  made_ = {};
  made_.opcode = spelling.row->opcode;
  made_.flow = spelling.row->flow;
  made_.type = spelling.type;
  made_.source_type = spelling.source_type;
  made_.modifiers = spelling.modifiers;
  made_.vector = spelling.vector;
  made_.line = text.line;
  made_.source_line = text.source_line;
  wider_ = spelling.row->modifiers.find("wider") != std::string_view::npos;
  names_space_ = spelling.row->modifiers.find(" space") != std::string_view::npos;
  addresses_ = 0;
  extensions_.clear();
  if (!text.guard.empty()) {
    made_.guard = predicate_register(text.guard);
    made_.guard_negated = text.guard_negated;
    if (made_.guard == kNoUnit) fail("`_` is no guard");
  }
  bind_operands(letters_of(*spelling.row));
  if (made_.opcode == Opcode::ret && !is_entry_) push(kReturnUnit);
  // The .param space of device functions is local memory, as that of calls.
  if (made_.modifiers.space == Space::param && !is_entry_) made_.modifiers.space = Space::local;
  emit();
}

void InstructionDecoder::emit() {
  if (made_.flow == Flow::lanes) {
    made_.handler = find_handler(made_.opcode, made_.type, made_.source_type, made_.modifiers);
    if (!made_.handler) fail("the words of " + quote_ptx(text_->words) + " do not go together");
  }
  code_.code.push_back(made_);
  code_.code.insert(code_.code.end(), extensions_.begin(), extensions_.end());
}

void InstructionDecoder::push(uint32_t unit) {
  if (made_.operand_count == made_.operands.size()) fail("too many operands");
  made_.operands[made_.operand_count++] = unit;
}

const Spelling& InstructionDecoder::choose() {
  auto [entry, is_new] = dictionary_.try_emplace(text_->words);
  if (is_new) {
    std::string problem;
    entry->second = read_words(text_->words, problem);
    if (entry->second.empty()) fail(problem);
  }
  for (const Spelling& spelling : entry->second)
    if (entry->second.size() == 1 || fits(*spelling.row)) return spelling;
  return entry->second.front();
}

// Of rows that share a name, the operands choose.
bool InstructionDecoder::fits(const Row& row) const {
  size_t next = 0;
  for (const Letter& letter : letters_of(row)) {
    if (letter.hidden()) continue;
    if (next == text_->count) return letter.optional;
    const PtxOperand& given = operand(next++);
    const bool is_vector = letter.letter == 'V' || letter.letter == 'v';
    const bool clock = given.kind == Kind::name && is_clock(given.name);
    if (is_vector != (given.kind == Kind::vector) || clock != (letter.letter == 'c')) return false;
  }
  return next == text_->count;
}

void InstructionDecoder::bind_operands(const std::vector<Letter>& letters) {
  size_t most = 0;
  size_t least = 0;
  for (const Letter& letter : letters) {
    most += !letter.hidden();
    least += !letter.hidden() && !letter.optional;
  }
  if (letters.size() == 1 && letters[0].letter == 'f') return bind_call();
  if (text_->count < least || text_->count > most) {
    fail(quote_ptx(text_->words) + " has " + std::to_string(text_->count) + " operands, it takes " +
         std::to_string(least) + (most > least ? " to " + std::to_string(most) : ""));
  }
  size_t spare = text_->count - least;
  size_t next = 0;
  for (const Letter& letter : letters) {
    if (letter.hidden()) {
      bind_condition_code(letter);
    } else if (letter.optional && spare == 0) {
      push(kNoUnit);
    } else {
      spare -= letter.optional;
      bind_letter(letter, operand(next++));
    }
    if (letter.written()) made_.destinations = made_.operand_count;
  }
}

void InstructionDecoder::bind_condition_code(const Letter& letter) {
  if (letter.letter == 'K' && !made_.modifiers.carry_out) return push(kNoUnit);
  if (condition_code_ == kNoUnit) condition_code_ = operands_.temporary(kPredicate).unit;
  push(condition_code_);
}

void InstructionDecoder::bind_letter(const Letter& letter, const PtxOperand& given) {
  if (given.negated && letter.letter != 'p') fail("`!` belongs before a predicate that is read");
  if (!given.second.empty() && !letter.paired) fail("`|` has no place in this operand");
  using Bind = void (InstructionDecoder::*)(const PtxOperand& given, const Letter& letter);
  static constexpr std::pair<std::string_view, Bind> kBinders[] = {
      {"dDUP", &InstructionDecoder::bind_destination}, {"aAsu", &InstructionDecoder::bind_source},
      {"p", &InstructionDecoder::bind_predicate},      {"i", &InstructionDecoder::bind_immediate},
      {"m", &InstructionDecoder::bind_address},        {"vV", &InstructionDecoder::bind_vector},
      {"lt", &InstructionDecoder::bind_target},        {"c", &InstructionDecoder::bind_clock}};
  for (const auto& [letters, bind] : kBinders)
    if (letters.find(letter.letter) != letters.npos) (this->*bind)(given, letter);
  if (letter.paired) push(given.second.empty() ? kNoUnit : predicate_register(given.second));
}

Type InstructionDecoder::type_of(const Letter& letter) const {
  switch (letter.letter) {
    case 'P':
      return Type::pred;
    case 'U':
    case 'u':
      return Type::u32;
    case 's':
      return made_.source_type;
    default:
      return made_.type;
  }
}

// Of the lanes of the operand's register.
int InstructionDecoder::bytes_of(const Letter& letter) const {
  const bool is_twice = letter.letter == 'D' || letter.letter == 'A';
  return lane_bytes(type_of(letter)) * (is_twice ? 2 : 1);
}

uint32_t InstructionDecoder::predicate_register(std::string_view name) {
  if (name == "_") return kNoUnit;
  const Slot slot = operands_.register_of(name);
  if (slot.bytes != kPredicate) fail(quote_ptx(name) + " is not a predicate");
  return slot.unit;
}

void InstructionDecoder::check_width(const PtxOperand& given, int has, int wanted) const {
  const bool wide = wider_ && wanted != kPredicate && has > wanted;
  if (has == wanted || wide) return;
  fail(concat(quote_ptx(given.name), " is ", width_name(has), ", the instruction takes ",
              width_name(wanted)));
}

// One that the text does not have, to bring an operand into shape.
Instruction InstructionDecoder::lane_operation(Opcode opcode, Type type, Type source_type,
                                               const Slot& to, const Slot& from) const {
  Instruction made;
  made.opcode = opcode;
  made.flow = Flow::lanes;
  made.type = type;
  made.source_type = source_type;
  made.handler = find_handler(opcode, type, source_type, {});
  if (!made.handler) fail("an operand of this width has no conversion");
  made.destinations = 1;
  made.operand_count = 2;
  made.operands = {to.unit, from.unit};
  made.line = made_.line;
  made.source_line = made_.source_line;
  return made;
}

Instruction InstructionDecoder::resize(const Slot& to, const Slot& from, bool is_signed) const {
  return lane_operation(Opcode::cvt, integer_type(to.bytes, is_signed),
                        integer_type(from.bytes, is_signed), to, from);
}

void InstructionDecoder::bind_destination(const PtxOperand& given, const Letter& letter) {
  if (given.kind == Kind::sink) return push(kNoUnit);
  if (given.kind != Kind::name || given.bits != 0) fail("the destination is no register");
  const int bytes = bytes_of(letter);
  const Slot slot = operands_.register_of(given.name);
  check_width(given, slot.bytes, bytes);
  made_.register_bytes = static_cast<uint8_t>(slot.bytes);
  if (slot.bytes == bytes) return push(slot.unit);
  // The handler writes the type's own width; what extends it is under the same guard.
  const Slot narrow = operands_.temporary(bytes);
  Instruction extend = resize(slot, narrow, is_signed(type_of(letter)));
  extend.guard = made_.guard;
  extend.guard_negated = made_.guard_negated;
  extensions_.push_back(extend);
  push(narrow.unit);
}

void InstructionDecoder::bind_source(const PtxOperand& given, const Letter& letter) {
  const int bytes = bytes_of(letter);
  if (given.kind == Kind::name && bytes == kPredicate) return bind_predicate(given, letter);
  const Slot slot = operands_.source(given, bytes, type_of(letter));
  check_width(given, slot.bytes, bytes);
  made_.register_bytes = static_cast<uint8_t>(slot.bytes);
  if (slot.bytes == bytes) return push(slot.unit);
  const Slot narrow = operands_.temporary(bytes);
  code_.code.push_back(resize(narrow, slot, false));
  push(narrow.unit);
}

void InstructionDecoder::bind_predicate(const PtxOperand& given, const Letter&) {
  const Slot slot = operands_.source(given, kPredicate, Type::pred);
  if (slot.bytes != kPredicate) fail(quote_ptx(given.name) + " is not a predicate");
  if (!given.negated) return push(slot.unit);
  const Slot inverted = operands_.temporary(kPredicate);
  code_.code.push_back(lane_operation(Opcode::not_, Type::pred, Type::none, inverted, slot));
  push(inverted.unit);
}

void InstructionDecoder::bind_immediate(const PtxOperand& given, const Letter&) {
  if (given.kind != Kind::integer) fail("an integer is wanted");
  if (made_.flow == Flow::lanes) made_.immediate = static_cast<int64_t>(given.bits);
  push(operands_.source(given, 4, Type::b32).unit);
}

void InstructionDecoder::bind_address(const PtxOperand& given, const Letter&) {
  const PtxVariable* variable = nullptr;
  const Slot slot = operands_.base(given, variable);
  if (addresses_++ == 0) {
    made_.immediate = static_cast<int64_t>(given.bits);
    made_.address_bytes = static_cast<uint8_t>(slot.bytes);
  } else {
    made_.source_offset = static_cast<int64_t>(given.bits);
    if (slot.bytes != 8) fail("the second address has 64 bits");
  }
  push(slot.unit);
  if (!variable || !names_space_) return;
  Space& space = made_.modifiers.space;
  if (space != Space::generic && space != variable->space)
    fail(quote_ptx(variable->name) + " is not in the space that the instruction names");
  const bool local = variable->space == Space::param && !variable->is_entry_parameter;
  space = local ? Space::local : variable->space;
}

// The width of the registers of a vector; all are alike.  Immediates follow them.
int InstructionDecoder::register_width(std::span<const PtxOperand> elements, int least) {
  int width = 0;
  for (const PtxOperand& element : elements) {
    Special special{};
    if (element.kind != Kind::name || find_special(element.name, special)) continue;
    const int bytes = operands_.source(element, least, Type::none).bytes;
    check_width(element, bytes, least);
    if (width != 0 && bytes != width) fail("registers of a vector have one width");
    width = bytes;
  }
  return width == 0 ? least : width;
}

void InstructionDecoder::bind_vector(const PtxOperand& given, const Letter& letter) {
  const bool written = letter.written();
  const bool is_vector = given.kind == Kind::vector;
  const std::span<const PtxOperand> elements =
      is_vector ? std::span(module_.operands).subspan(given.first, given.count)
                : std::span(&given, 1);
  const bool packs = made_.flow == Flow::lanes;
  const size_t count = elements.size();
  if (packs) {
    if (count != 2 && count != 4) fail("a vector here has 2 or 4 elements");
    made_.vector = static_cast<uint8_t>(count);
  } else if (count != made_.vector || is_vector != (made_.vector > 1)) {
    fail(concat("the instruction takes ", made_.vector, " elements, found ", count));
  }
  const int least = packs ? type_bytes(made_.type) / made_.vector : lane_bytes(made_.type);
  if (least < 2 || (!packs && type_bytes(made_.type) * made_.vector > kMostVectorBytes))
    fail("a vector of this type and length does not exist");
  const int width = register_width(elements, least);
  made_.register_bytes = static_cast<uint8_t>(width);
  for (const PtxOperand& element : elements) {
    const bool sink = element.kind == Kind::sink && written;
    if (element.negated || !element.second.empty()) fail("an element of a vector is a register");
    if (written && !sink) operands_.register_of(element.name);  // neither immediate nor special
    push(sink ? kNoUnit : operands_.source(element, width, packs ? Type::none : made_.type).unit);
  }
}

void InstructionDecoder::bind_target(const PtxOperand& given, const Letter& letter) {
  const bool is_label = letter.letter == 'l';
  if (given.kind != Kind::name) fail(is_label ? "a label is wanted" : "a branch table is wanted");
  const PtxSymbol& target =
      is_label ? operands_.symbol(given.name, PtxSymbol::Kind::label, "a label")
               : operands_.symbol(given.name, PtxSymbol::Kind::table, "a label of .branchtargets");
  made_.immediate = target.index;
}

void InstructionDecoder::bind_clock(const PtxOperand& given, const Letter&) {
  if (given.kind != Kind::name || !is_clock(given.name)) fail("a clock is wanted");
}

// The callee's return unit comes when functions are placed.
void InstructionDecoder::bind_call() {
  made_.immediate = read_call(module_, operands_, *text_).callee;
  push(kNoUnit);
}

}  // namespace stitch::ptxsim
