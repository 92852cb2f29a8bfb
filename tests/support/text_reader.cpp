#include "support/text_reader.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/words.h"

namespace stitch {
namespace {

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

Dim read_factor(TextReader& reader, int& symbol_count) {
  if (reader.take('-')) return Dim(-1) * read_factor(reader, symbol_count);
  if (reader.take('(')) {
    const Dim inner = read_dim(reader, symbol_count);
    reader.expect(')');
    return inner;
  }
  reader.peek();
  const size_t start = reader.position;
  const std::string word = reader.word();
  if (const auto value = to_number(word)) return Dim(*value);
  if (word.size() > 1 && word[0] == 's')
    if (const auto id = to_number(std::string_view(word).substr(1)); id && *id >= 0) {
      symbol_count = std::max(symbol_count, static_cast<int>(*id) + 1);
      return Dim::symbol(static_cast<SymbolId>(*id));
    }
  reader.position = start;
  reader.fail("a size such as 8, s0 or s0*4+1");
}

Dim read_product(TextReader& reader, int& symbol_count) {
  Dim product = read_factor(reader, symbol_count);
  while (reader.take('*')) product = product * read_factor(reader, symbol_count);
  return product;
}

}  // namespace

char TextReader::peek() {
  while (position < text.size() && std::isspace(static_cast<unsigned char>(text[position])))
    ++position;
  return position < text.size() ? text[position] : '\0';
}

bool TextReader::take(char c) {
  if (peek() != c) return false;
  ++position;
  return true;
}

bool TextReader::take(std::string_view word) {
  peek();
  if (text.substr(position, word.size()) != word) return false;
  const size_t end = position + word.size();
  if (is_word_character(word.back()) && end < text.size() && is_word_character(text[end]))
    return false;
  position = end;
  return true;
}

std::string TextReader::word() {
  peek();
  const size_t start = position;
  while (position < text.size() && is_word_character(text[position])) ++position;
  return std::string(text.substr(start, position - start));
}

std::string TextReader::quoted() {
  expect('"');
  std::string result;
  while (position < text.size() && text[position] != '"') {
    if (text[position] == '\\' && position + 1 < text.size()) ++position;
    result += text[position++];
  }
  if (position == text.size()) fail("a closing '\"'");
  ++position;
  return result;
}

std::string TextReader::text_before(std::string_view ends) {
  const size_t start = position;
  for (int depth = 0; position < text.size(); ++position) {
    const char c = text[position];
    if (depth == 0 && ends.find(c) != ends.npos) break;
    depth += (c == '[' || c == '(') - (c == ']' || c == ')');
  }
  std::string value(text.substr(start, position - start));
  std::erase(value, ' ');
  return value;
}

void TextReader::fail(const std::string& wanted) {
  peek();
  const std::string found(text.substr(position, 20));
  throw UserError("found " + (found.empty() ? "the end of the line" : "'" + found + "'") +
                  " at column " + std::to_string(position + 1) + ", expected " + wanted);
}

Dim read_dim(TextReader& reader, int& symbol_count) {
  Dim sum = read_product(reader, symbol_count);
  for (;;)
    if (reader.take('+'))
      sum = sum + read_product(reader, symbol_count);
    else if (reader.take('-'))
      sum = sum - read_product(reader, symbol_count);
    else
      return sum;
}

std::vector<Dim> read_dims(TextReader& reader, char open, char close, int& symbol_count) {
  std::vector<Dim> dims;
  read_list(reader, open, close, [&] { dims.push_back(read_dim(reader, symbol_count)); });
  return dims;
}

void read_list(TextReader& reader, char open, char close, const std::function<void()>& one) {
  reader.expect(open);
  if (reader.take(close)) return;
  do {
    one();
  } while (reader.take(','));
  reader.expect(close);
}

WrittenType read_type(TextReader& reader, int& symbol_count) {
  WrittenType type;
  type.dtype = dtype_from_name(reader.word());
  if (reader.peek() == '[') type.shape = read_dims(reader, '[', ']', symbol_count);
  if (type.shape && reader.peek() == '(') type.strides = read_dims(reader, '(', ')', symbol_count);
  return type;
}

int64_t read_integer(TextReader& reader) {
  int no_symbols = 0;
  const Dim value = read_dim(reader, no_symbols);
  if (!value.is_constant()) reader.fail("a plain integer instead of " + to_string(value));
  return value.value();
}

}  // namespace stitch
