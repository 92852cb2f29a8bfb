// A cursor over graph text, and the small forms that lines are made of: sizes, lists, types.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/type.h"

namespace stitch {

struct TextReader {
  std::string_view text;
  size_t position = 0;

  char peek();        // next character that is no space; 0 at the end
  bool take(char c);  // consumes it if it is next
  bool take(std::string_view word);
  void expect(char c) {  // UserError naming what stands there instead
    if (!take(c)) fail(std::string("'") + c + "'");
  }
  std::string word();    // letters, digits, '_', '.'; may be empty
  std::string quoted();  // "a string", with \" and \\ inside
  // Up to one of these that stands in no brackets, without blanks; may be empty.
  std::string text_before(std::string_view ends);
  [[noreturn]] void fail(const std::string& wanted);
};

// What a line says of a type; the rest is inferred.
struct WrittenType {
  DType dtype = DType::kF32;
  std::optional<std::vector<Dim>> shape, strides;
};

// `symbol_count` grows to cover every s<i> that is read.
Dim read_dim(TextReader& reader, int& symbol_count);
std::vector<Dim> read_dims(TextReader& reader, char open, char close, int& symbol_count);
// `one` for each element of a list between the two, which may be empty.
void read_list(TextReader& reader, char open, char close, const std::function<void()>& one);
WrittenType read_type(TextReader& reader, int& symbol_count);
int64_t read_integer(TextReader& reader);

}  // namespace stitch
