#include "clock/walk/launch.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "base/error.h"

namespace stitch::clock {

namespace {

struct ElementType {
  std::string_view name;
  int bytes;
  bool is_integer;
};
constexpr ElementType kElementTypes[] = {{"f16", 2, false}, {"bf16", 2, false}, {"f32", 4, false},
                                         {"f64", 8, false}, {"f8", 1, false},   {"i8", 1, true},
                                         {"u8", 1, true},   {"bool", 1, true},  {"i16", 2, true},
                                         {"i32", 4, true},  {"i64", 8, true}};

template <class T>
bool read(std::string_view word, T& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}

bool read_pointer(std::string_view word, Argument& argument) {
  const size_t star = word.find('*'), less = word.find('<');
  if (star == word.npos) return false;
  const std::string_view name = word.substr(star + 1, less - star - 1);
  const auto type = std::ranges::find(kElementTypes, name, &ElementType::name);
  int64_t count = 0;
  if (type == std::end(kElementTypes) || !read(word.substr(0, star), count) || count < 0 ||
      count > INT64_MAX / 64)
    return false;
  argument = {true, count * type->bytes, type->bytes, type->is_integer, 0, 0};
  return less == word.npos || (type->is_integer && read(word.substr(less + 1), argument.below));
}

}  // namespace

Argument parse_argument(const std::string& word) {
  Argument argument;
  if (word == "null") return {true, 0, 1, false, 0, 0};
  if (read_pointer(word, argument)) return argument;
  int64_t integer = 0;
  if (read(word, integer)) return {false, 0, 4, false, 0, static_cast<uint64_t>(integer)};
  float number = 0;
  if (read(word, number)) return {false, 0, 4, false, 0, std::bit_cast<uint32_t>(number)};
  throw UserError("found the argument '" + word +
                  "'; it is a number, null, or COUNT*TYPE[<BELOW] such as 1048576*f32 or "
                  "2048*i64<30522, of the types f8 f16 bf16 f32 f64 i8 u8 bool i16 i32 i64");
}

}  // namespace stitch::clock
