#include "codegen/kernel_body.h"

#include <cctype>
#include <set>

#include "base/error.h"

namespace stitch {
namespace {

void print(const Statement& s, int indent, std::string& out) {
  const std::string pad(indent, ' ');
  auto line = [&](const std::string& text) { out += pad + text + "\n"; };
  const std::string guard = s.predicate.empty() ? "" : "if (" + s.predicate + ") ";
  switch (s.kind) {
    case Statement::Kind::kLet:
    case Statement::Kind::kReduce:
      return line("const " + s.type + " " + s.name + " = " + s.expr + ";");
    case Statement::Kind::kVar:
      return line(s.type + " " + s.name + (s.expr.empty() ? "" : " = " + s.expr) + ";");
    case Statement::Kind::kArray:
      return line("STITCH_ARRAY(" + s.type + ", " + s.name + ", " + std::to_string(s.count) + ");");
    case Statement::Kind::kAssign:
    case Statement::Kind::kStore:
      return line(guard + s.name + " = " + s.expr + ";");
    case Statement::Kind::kCall:
      return line(guard + s.expr + ";");
    case Statement::Kind::kLoop:
      if (!s.pragma.empty()) line(s.pragma);
      line("for (" + s.type + " " + s.name + " = " + s.expr + "; " + s.name + " < " + s.bound +
           "; ++" + s.name + ") {");
      for (const Statement& inner : s.body) print(inner, indent + 2, out);
      return line("}");
  }
}

// Names the lowering makes: a letter or two and a number (s_12, x0, ok3, i1, p0, n2).
void check_names(const std::string& text, const std::set<std::string>& known) {
  static const std::set<std::string> prefixes = {"s_", "x", "b", "r", "ok", "i", "g", "t", "p", "n"};
  for (size_t at = 0; at < text.size();) {
    if (!std::isalpha(static_cast<unsigned char>(text[at])) && text[at] != '_') {
      // Skip numbers whole, their suffixes and exponents included.
      const bool digit = std::isdigit(static_cast<unsigned char>(text[at]));
      ++at;
      while (digit && at < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '.')) {
        ++at;
      }
      continue;
    }
    size_t end = at;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) {
      ++end;
    }
    const std::string word = text.substr(at, end - at);
    size_t digits = word.size();
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(word[digits - 1]))) --digits;
    const bool made = digits < word.size() && prefixes.count(word.substr(0, digits));
    const bool is_type = word == "i8" || word == "i16" || word == "i32" || word == "i64";
    STITCH_CHECK(!made || is_type || known.count(word),
                 "the name " << word << " is used before it is defined in: " << text);
    at = end;
  }
}

void verify(const std::vector<Statement>& statements, std::set<std::string> known) {
  for (const Statement& s : statements) {
    for (const std::string* text : {&s.expr, &s.predicate, &s.bound}) check_names(*text, known);
    switch (s.kind) {
      case Statement::Kind::kAssign:
      case Statement::Kind::kStore:
        check_names(s.name, known);
        break;
      case Statement::Kind::kReduce:
        STITCH_CHECK(s.predicate.empty(), "a barrier sits under a predicate: " << s.expr);
        known.insert(s.name);
        break;
      case Statement::Kind::kLoop: {
        std::set<std::string> inner = known;
        inner.insert(s.name);
        verify(s.body, std::move(inner));
        break;
      }
      case Statement::Kind::kCall:
        break;
      default:
        STITCH_CHECK(known.insert(s.name).second, "the name " << s.name << " is defined twice");
    }
  }
}

}  // namespace

std::string to_string(const KernelBody& body) {
  std::string out;
  for (const Statement& statement : body.statements) print(statement, 2, out);
  return out;
}

void verify_body(const KernelBody& body, const std::vector<std::string>& parameters) {
  verify(body.statements, {parameters.begin(), parameters.end()});
}

}  // namespace stitch
