// The values of numbers.def.
#pragma once

namespace stitch::clock {

struct Numbers {
#define CLOCK_NUMBER(name, value, ...) double name = value;
#include "clock/machine/numbers.def"
#undef CLOCK_NUMBER
};
inline constexpr Numbers kNumbers;

}  // namespace stitch::clock
