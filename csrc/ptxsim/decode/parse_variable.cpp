#include "ptxsim/decode/parse_variable.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/words.h"

namespace stitch::ptxsim {
namespace {

using Kind = Token::Kind;

struct SpaceLimit {
  Space space;
  uint64_t bytes;
};
constexpr SpaceLimit kMostBytes[] = {{Space::global, uint64_t{256} << 20},
                                     {Space::const_, 64 << 10},
                                     {Space::shared, 256 << 10},
                                     {Space::local, 512 << 10},
                                     {Space::param, 32 << 10}};
constexpr uint64_t kMostAlignment = 4096;

void read_alignment(Lexer& lexer, PtxVariable& variable) {
  const Token number = lexer.expect(Kind::integer, "an alignment");
  if (!std::has_single_bit(number.bits) || number.bits > kMostAlignment)
    lexer.fail_last("an alignment is a power of two up to " + std::to_string(kMostAlignment));
  variable.alignment = static_cast<uint32_t>(number.bits);
}

// `.ptr .global .align 16`: what a pointer points to.
void skip_pointer(Lexer& lexer) {
  take_variable_space(lexer);
  if (lexer.take_directive(".align")) lexer.expect(Kind::integer, "an alignment");
}

void skip_attribute(Lexer& lexer) {
  lexer.expect('(');
  while (!lexer.take(')'))
    if (lexer.next().kind == Kind::end) lexer.fail_last("found the end of the text, expected `)`");
}

// Alignment, type and attributes in any order; bytes: of one element.
PtxVariable read_attributes(Lexer& lexer, Space space, bool is_extern) {
  PtxVariable variable;
  variable.space = space;
  variable.is_extern = is_extern;
  variable.alignment = 0;
  uint64_t vector = 1;
  while (lexer.peek().kind == Kind::directive) {
    const Token token = lexer.next();
    const std::string_view word = token.text.substr(1);
    if (word == "align")
      read_alignment(lexer, variable);
    else if (word == "v2" || word == "v4")
      vector = static_cast<uint64_t>(word[1] - '0');
    else if (word == "ptr")
      skip_pointer(lexer);
    else if (word == "attribute")
      skip_attribute(lexer);
    else if (find_type(word) != Type::none && find_type(word) != Type::pred)
      variable.type = find_type(word);
    else
      lexer.fail_last("unknown attribute " + quote_ptx(token.text) + " of a variable");
  }
  if (variable.type == Type::none) lexer.fail_last("a variable has a type, such as .b32");
  variable.bytes = static_cast<uint64_t>(type_bytes(variable.type)) * vector;
  if (variable.alignment == 0) variable.alignment = static_cast<uint32_t>(variable.bytes);
  return variable;
}

// `[4][8]`; 0 elements: `[]`.
uint64_t read_extents(Lexer& lexer, const PtxVariable& variable) {
  const uint64_t most = most_bytes(variable.space) / variable.bytes;
  uint64_t elements = 1;
  while (lexer.take('[')) {
    if (lexer.take(']')) {
      elements = 0;
      continue;
    }
    const Token number = lexer.expect(Kind::integer, "a number of elements");
    if (number.bits > most || elements * number.bits > most) {
      lexer.fail_last("a variable of this space has " + std::to_string(most_bytes(variable.space)) +
                      " bytes at most");
    }
    elements *= number.bits;
    lexer.expect(']');
  }
  return elements;
}

uint64_t convert_initial(const PtxNumber& number, Type type) {
  if (number.type == Type::f64 && type == Type::f32)
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(number.bits)));
  return number.bits;
}

// A number, `name`, `name+8`, `generic(name)+8`.
void read_initial(Lexer& lexer, PtxVariable& variable, size_t element_bytes) {
  const size_t at = variable.initial.size();
  uint64_t bits = 0;
  if (lexer.peek().kind == Kind::word) {
    Token name = lexer.next();
    const bool generic = name.text == "generic" && lexer.take('(');
    if (generic) {
      name = lexer.expect(Kind::word, "a variable");
      lexer.expect(')');
    }
    const uint64_t added = lexer.take('+') ? read_number(lexer).bits : 0;
    if (element_bytes != 8) lexer.fail_last("an address has 64 bits");
    variable.addresses.push_back({at, name.text, added, generic, name.line});
  } else {
    bits = convert_initial(read_number(lexer), variable.type);
  }
  char bytes[16] = {};
  std::memcpy(bytes, &bits, sizeof bits);
  variable.initial.append(bytes, element_bytes);
}

// One value, or a flat list of them: NVRTC nests no braces.
void read_initials(Lexer& lexer, PtxVariable& variable, uint64_t& elements) {
  const auto value_bytes = static_cast<size_t>(type_bytes(variable.type));
  const bool is_list = lexer.take('{');
  do {
    read_initial(lexer, variable, value_bytes);
    if (variable.initial.size() > most_bytes(variable.space))
      lexer.fail_last("too many initial values");
  } while (is_list && lexer.take(','));
  if (is_list) lexer.expect('}');
  const uint64_t given = variable.initial.size();
  if (elements == 0) elements = (given + variable.bytes - 1) / variable.bytes;
  if (given > elements * variable.bytes)
    lexer.fail_last("more initial values than the variable has elements");
}

void read_declarator(Lexer& lexer, PtxVariable& variable) {
  const Token name = lexer.expect(Kind::word, "the name of a variable");
  variable.name = name.text;
  variable.line = name.line;
  uint64_t elements = read_extents(lexer, variable);
  const bool stored = variable.space == Space::global || variable.space == Space::const_;
  if (stored && !variable.is_extern && lexer.take('=')) read_initials(lexer, variable, elements);
  if (elements == 0 && !variable.is_extern) lexer.fail_last("a variable has a number of elements");
  variable.bytes *= elements;
}

}  // namespace

PtxNumber read_number(Lexer& lexer) {
  const bool is_negative = lexer.take('-');
  const bool is_inverted = !is_negative && lexer.take('~');
  const Token token = lexer.peek();
  if (token.kind != Kind::real32 && token.kind != Kind::real64) {
    const uint64_t bits = lexer.expect(Kind::integer, "an operand").bits;
    return {Type::u64, is_negative ? 0 - bits : is_inverted ? ~bits : bits};
  }
  lexer.next();
  const bool is_single = token.kind == Kind::real32;
  const uint64_t sign = uint64_t{is_negative} << (is_single ? 31 : 63);
  return {is_single ? Type::f32 : Type::f64, token.bits ^ sign};
}

uint64_t most_bytes(Space space) {
  const auto found = std::ranges::find(kMostBytes, space, &SpaceLimit::space);
  return found == std::end(kMostBytes) ? 0 : found->bytes;
}

Space take_variable_space(Lexer& lexer) {
  for (const SpaceLimit& limit : kMostBytes)
    if (lexer.take_directive(concat(".", name_of(limit.space)))) return limit.space;
  return Space::none;
}

std::vector<PtxVariable> read_declarations(Lexer& lexer, Space space, bool is_extern) {
  std::vector<PtxVariable> made;
  const PtxVariable pattern = read_attributes(lexer, space, is_extern);
  do {
    PtxVariable variable = pattern;
    read_declarator(lexer, variable);
    made.push_back(std::move(variable));
  } while (lexer.take(','));
  return made;
}

PtxVariable read_parameter(Lexer& lexer) {
  PtxVariable variable = read_attributes(lexer, Space::param, false);
  read_declarator(lexer, variable);
  return variable;
}

}  // namespace stitch::ptxsim
