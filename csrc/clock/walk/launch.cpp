#include "clock/walk/launch.h"

#include <bit>

#include "base/error.h"
#include "base/words.h"

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

std::optional<Argument> read_pointer(std::string_view word) {
  const size_t star = word.find('*'), less = word.find('<');
  if (star == word.npos) return {};
  const std::string_view name = word.substr(star + 1, less - star - 1);
  const auto type = std::ranges::find(kElementTypes, name, &ElementType::name);
  const int64_t count = to_number(word.substr(0, star)).value_or(-1);
  if (type == std::end(kElementTypes) || count < 0 || count > INT64_MAX / 64) return {};
  const bool has_below = less != word.npos;
  const auto below = has_below ? to_number<uint64_t>(word.substr(less + 1)) : 0;
  if (has_below && !(type->is_integer && below.value_or(0) > 0)) return {};
  return Argument{true, count * type->bytes, type->bytes, *below};
}

}  // namespace

Argument parse_argument(const std::string& word) {
  if (word == "null") return {.is_pointer = true, .element_bytes = 1};
  if (const auto pointer = read_pointer(word)) return *pointer;
  if (const auto integer = to_number(word)) return {.bits = static_cast<uint64_t>(*integer)};
  if (const auto number = to_number<float>(word)) return {.bits = std::bit_cast<uint32_t>(*number)};
  throw UserError("found the argument '" + word +
                  "'; it is a number, null, or COUNT*TYPE[<BELOW] such as 1048576*f32 or "
                  "2048*i64<30522, of the types f8 f16 bf16 f32 f64 i8 u8 bool i16 i32 i64");
}

}  // namespace stitch::clock
