// The numbers of numbers.def: values, and a table for whoever asks where they come from.
#pragma once

#include <span>

namespace stitch::clock {

struct Numbers {
#define CLOCK_NUMBER(name, value, ...) double name = value;
#include "clock/machine/numbers.def"
#undef CLOCK_NUMBER
};
inline constexpr Numbers kNumbers;

struct NumberRow {
  const char* name;
  double value;
  const char* unit;
  char source;
  const char* where;
};
inline constexpr NumberRow kNumberRows[] = {
#define CLOCK_NUMBER(name, value, unit, source, where) {#name, value, unit, source, where},
#include "clock/machine/numbers.def"
#undef CLOCK_NUMBER
};

}  // namespace stitch::clock
