// Tokens of PTX text, one at a time with one of lookahead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stitch::ptxsim {

struct Token {
  enum class Kind : uint8_t {
    end,
    word,       // add.rn.f32, %r1, %tid.x, $L__BB0_1, _
    directive,  // .loc
    integer,    // bits: its value
    real32,     // 0f3F800000; bits: its pattern
    real64,     // 0d3FF0000000000000 or 1.5
    text,       // "...", without the quotes
    mark,       // one character
  };
  Kind kind = Kind::end;
  std::string_view text;
  uint64_t bits = 0;
  int line = 1;

  bool is(char mark) const { return kind == Kind::mark && text[0] == mark; }
};

// UserError: what is wrong, with the number and the text of the line.
[[noreturn]] void fail_ptx(std::string_view ptx, int line, const std::string& what);
// Text of the user's for a message: quoted, cut where it is long, printable.
std::string quote_ptx(std::string_view text);

class Lexer {
 public:
  explicit Lexer(std::string_view ptx);
  const Token& peek() const { return token_; }
  Token next();  // consumes it
  bool take(char mark);
  bool take_directive(std::string_view name);
  void expect(char mark);
  // UserError unless the next token is of that kind; `wanted` names it.
  Token expect(Token::Kind kind, const char* wanted);
  // At the line of the next token, which is not what is wanted, and of the one consumed last.
  [[noreturn]] void fail(const std::string& what) const { fail_ptx(ptx_, token_.line, what); }
  [[noreturn]] void fail_found(const std::string& wanted) const;
  [[noreturn]] void fail_last(const std::string& what) const { fail_ptx(ptx_, last_line_, what); }

 private:
  void skip_space();
  void advance();
  void read_number();
  void read_hex_real(Token::Kind kind, size_t digits);
  void read_string();
  void read_name(bool dotted);
  std::string_view rest() const { return ptx_.substr(position_); }

  std::string_view ptx_;
  size_t position_ = 0;
  int line_ = 1;
  int last_line_ = 1;
  Token token_;
};

}  // namespace stitch::ptxsim
