// Tables of handlers: which an instruction has, by its opcode, types and modifiers.  For
// lanes_*.cpp alone.
#pragma once

#include <type_traits>

#include "ptxsim/lanes/lanes_loop.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {

// What find_handler is asked.
struct Query {
  Opcode opcode;
  Type type;
  Type source;
  const Modifiers& modifiers;
};

template <class... T>
struct Types {};
using Words = Types<uint16_t, uint32_t, uint64_t>;
using Integers = Types<uint16_t, uint32_t, uint64_t, int16_t, int32_t, int64_t>;
using LargeIntegers = Types<uint32_t, uint64_t, int32_t, int64_t>;
using Floats = Types<float, double>;
// Two elements of 16 bits to a lane.
template <class T>
struct Pair {};
using Halves = Types<Half, BFloat, Pair<Half>, Pair<BFloat>>;

template <class T>
constexpr T kLeast = std::is_signed_v<T> ? T(uint64_t{1} << (sizeof(T) * 8 - 1)) : T{0};
template <class T>
constexpr T kMost = static_cast<T>(~kLeast<T>);

template <class T>  // of integers: by sign and size
constexpr Type kTypeOf = static_cast<Type>(int(std::is_signed_v<T> ? Type::s8 : Type::u8) +
                                           (sizeof(T) > 1) + (sizeof(T) > 2) + (sizeof(T) > 4));
template <>
constexpr Type kTypeOf<float> = Type::f32;
template <>
constexpr Type kTypeOf<double> = Type::f64;
template <>
constexpr Type kTypeOf<Half> = Type::f16;
template <>
constexpr Type kTypeOf<BFloat> = Type::bf16;
template <>
constexpr Type kTypeOf<Pair<Half>> = Type::f16x2;
template <>
constexpr Type kTypeOf<Pair<BFloat>> = Type::bf16x2;

// What `make` gives for that of the types T that `type` names; null: none of them.
template <class... T, class Make>
auto choose(Types<T...>, Type type, Make make) {
  if (type >= Type::b16 && type <= Type::b64)  // bits are taken as unsigned
    type = static_cast<Type>(int(type) - int(Type::b16) + int(Type::u16));
  std::common_type_t<decltype(make.template operator()<T>())...> chosen = {};
  ((type == kTypeOf<T> && (chosen = make.template operator()<T>(), true)) || ...);
  return chosen;
}
// The same for the word of that size.
template <class Make>
Handler choose_size(int bytes, Make make) {
  return choose(Words{}, bytes == 2 ? Type::u16 : bytes == 4 ? Type::u32 : Type::u64, make);
}
// What `make` gives for flags that are known only now.
template <bool... kFlags, class Make>
auto choose_flags(Make make) {
  return make.template operator()<kFlags...>();
}
template <bool... kFlags, class Make, class... Rest>
auto choose_flags(Make make, bool flag, Rest... rest) {
  return flag ? choose_flags<kFlags..., true>(make, rest...)
              : choose_flags<kFlags..., false>(make, rest...);
}

// A row of a table: the handlers of an opcode.
struct Operation {
  Opcode opcode;
  Handler (*find)(const Query& query);
};
template <size_t kCount>
Handler find_operation(const Operation (&operations)[kCount], const Query& query) {
  for (const Operation& operation : operations)
    if (operation.opcode == query.opcode) return operation.find(query);
  return nullptr;
}
// What its `find` may be: one handler of all types,
template <Handler kHandler>
Handler only(const Query&) {
  return kHandler;
}
// or d = kOp(sources...) for each type of a list, for which Self stands in the elements' types.
struct Self;
template <class Slot, class T>
using Bound = std::conditional_t<std::is_same_v<Slot, Self>, T, Slot>;
template <auto kOp, class List, class... Slots>
Handler each_of(const Query& query) {
  return choose(List{}, query.type,
                []<class T>() -> Handler { return map_lanes<kOp, Bound<Slots, T>...>; });
}

// Families of handlers; null: not of the family, or types and modifiers that do not go together.
Handler find_integer(const Query& query);
Handler find_bits(const Query& query);
Handler find_float(const Query& query);
Handler find_half(const Query& query);
Handler find_approximate(const Query& query);
Handler find_select(const Query& query);
Handler find_convert(const Query& query);
// All of them.
Handler find_lanes(Opcode opcode, Type type, Type source, const Modifiers& modifiers);

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
