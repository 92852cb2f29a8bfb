#include "ptxsim/decode/lex_ptx.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "base/error.h"
#include "base/words.h"

namespace stitch::ptxsim {
namespace {

constexpr size_t kLongestQuote = 100;

// Locale-free, and defined for all chars.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool follows(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }
bool starts_name(char c) { return is_letter(c) || c == '_' || c == '$' || c == '%'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

std::string_view line_text(std::string_view ptx, int line) {
  for (int i = 1; i < line; ++i) {
    const size_t end = ptx.find('\n');
    if (end == ptx.npos) return {};
    ptx.remove_prefix(end + 1);
  }
  ptx = ptx.substr(0, ptx.find('\n'));
  const size_t start = ptx.find_first_not_of(" \t\r");
  return start == ptx.npos ? std::string_view() : ptx.substr(start);
}

std::string printable(std::string_view text) {
  std::string made(text.substr(0, kLongestQuote));
  for (char& c : made) {
    if (c == '\t') c = ' ';
    if (c < ' ' || c > '~') c = '?';
  }
  if (text.size() > kLongestQuote) made += "...";
  return made;
}

}  // namespace

void fail_ptx(std::string_view ptx, int line, const std::string& what) {
  throw UserError(
      concat("PTX line ", line, ": ", what, "\n  ", line, " | ", printable(line_text(ptx, line))));
}

std::string quote_ptx(std::string_view text) { return concat("`", printable(text), "`"); }

Lexer::Lexer(std::string_view ptx) : ptx_(ptx) { advance(); }

Token Lexer::next() {
  const Token token = token_;
  if (token.kind != Token::Kind::end) advance();
  last_line_ = token.line;
  return token;
}

bool Lexer::take(char mark) {
  if (!token_.is(mark)) return false;
  next();
  return true;
}

bool Lexer::take_directive(std::string_view name) {
  if (token_.kind != Token::Kind::directive || token_.text != name) return false;
  next();
  return true;
}

void Lexer::fail_found(const std::string& wanted) const {
  const bool ended = token_.kind == Token::Kind::end;
  fail("found " + (ended ? "the end of the text" : quote_ptx(token_.text)) + ", expected " +
       wanted);
}

void Lexer::expect(char mark) {
  if (!take(mark)) fail_found(std::string("`") + mark + "`");
}

Token Lexer::expect(Token::Kind kind, const char* wanted) {
  if (token_.kind != kind) fail_found(wanted);
  return next();
}

void Lexer::skip_space() {
  while (position_ < ptx_.size()) {
    const char c = ptx_[position_];
    if (c == '\n') {
      ++line_;
      ++position_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\0') {
      ++position_;
    } else if (rest().starts_with("//")) {
      position_ = std::min(ptx_.find('\n', position_), ptx_.size());
    } else if (rest().starts_with("/*")) {
      const size_t end = ptx_.find("*/", position_ + 2);
      if (end == ptx_.npos) fail_ptx(ptx_, line_, "comment without end");
      line_ += static_cast<int>(std::count(&ptx_[position_], &ptx_[end], '\n'));
      position_ = end + 2;
    } else {
      return;
    }
  }
}

void Lexer::advance() {
  skip_space();
  token_ = {};
  token_.line = line_;
  if (position_ == ptx_.size()) return;
  const char c = ptx_[position_];
  if (is_digit(c)) return read_number();
  if (c == '"') return read_string();
  if (starts_name(c)) return read_name(true);
  const bool directive = c == '.' && position_ + 1 < ptx_.size() && is_letter(ptx_[position_ + 1]);
  if (directive) return read_name(false);
  token_.kind = Token::Kind::mark;
  token_.text = ptx_.substr(position_++, 1);
}

// `::` is part of a name: L2::128B, shared::cta.
void Lexer::read_name(bool dotted) {
  const size_t start = position_++;
  while (position_ < ptx_.size()) {
    const char c = ptx_[position_];
    const char after = position_ + 1 < ptx_.size() ? ptx_[position_ + 1] : ' ';
    if (c == ':' && after == ':')
      position_ += 2;
    else if (follows(c) || (dotted && c == '.' && follows(after)))
      ++position_;
    else
      break;
  }
  token_.kind = dotted ? Token::Kind::word : Token::Kind::directive;
  token_.text = ptx_.substr(start, position_ - start);
}

void Lexer::read_string() {
  const size_t end = ptx_.find_first_of("\"\n", position_ + 1);
  if (end == ptx_.npos || ptx_[end] == '\n') fail_ptx(ptx_, line_, "string without end");
  token_.kind = Token::Kind::text;
  token_.text = ptx_.substr(position_ + 1, end - position_ - 1);
  position_ = end + 1;
}

void Lexer::read_hex_real(Token::Kind kind, size_t digits) {
  const std::string_view text = rest().substr(0, 2 + digits);
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 2, end, token_.bits, 16);
  if (text.size() != 2 + digits || stop != end || error != std::errc())
    fail("a floating constant has " + std::to_string(digits) + " hexadecimal digits");
  token_.kind = kind;
  token_.text = text;
  position_ += text.size();
}

void Lexer::read_number() {
  const std::string_view text = rest();
  const char second = text.size() > 1 ? static_cast<char>(text[1] | 0x20) : ' ';
  const bool zero = text[0] == '0';
  if (zero && second == 'f') return read_hex_real(Token::Kind::real32, 8);
  if (zero && second == 'd') return read_hex_real(Token::Kind::real64, 16);
  const bool hex = zero && second == 'x';
  const bool binary = zero && second == 'b';
  size_t digits = hex || binary ? 2 : 0;
  while (digits < text.size() && (hex ? is_hex(text[digits]) : is_digit(text[digits]))) ++digits;
  const char* const end = text.data() + text.size();
  std::from_chars_result result{};
  token_.kind = Token::Kind::integer;
  if (!hex && !binary && digits < text.size() && (text[digits] == '.' || text[digits] == 'e')) {
    double value = 0;
    result = std::from_chars(text.data(), end, value);
    token_.kind = Token::Kind::real64;
    token_.bits = std::bit_cast<uint64_t>(value);
  } else {
    const char* const first = text.data() + (hex || binary ? 2 : 0);
    const int base = hex ? 16 : binary ? 2 : zero ? 8 : 10;
    result = std::from_chars(first, text.data() + digits, token_.bits, base);
    if (result.ptr != text.data() + digits) result.ec = std::errc::invalid_argument;
  }
  const char* stop = result.ptr;
  if (stop < end && *stop == 'U' && token_.kind == Token::Kind::integer) ++stop;
  if (result.ec != std::errc() || (stop < end && follows(*stop)))
    fail("this is no number: " + quote_ptx(text.substr(0, std::max<size_t>(digits, 1) + 1)));
  token_.text = text.substr(0, static_cast<size_t>(stop - text.data()));
  position_ += token_.text.size();
}

}  // namespace stitch::ptxsim
