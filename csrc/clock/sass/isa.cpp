#include "clock/sass/isa.h"

#include <array>

#include "base/lists.h"

namespace stitch::clock {

namespace {

constexpr Row kRows[] = {
#define SASS_ROW(id, name, bits, operands, pipe, issue, latency, flow, ...) \
  {Opcode::id, name, bits, operands, Pipe::pipe, issue, Latency::latency, Flow::flow},
#define SASS_TWINS(id, name, bits, operands, pipe, issue, latency, flow, source, evaluate, \
                   twin_bits, twin_issue)                                                  \
  SASS_ROW(id, name, bits, operands, pipe, issue, latency, flow)                           \
  SASS_ROW(id, "U" name, twin_bits, operands, uniform, twin_issue, uniform, flow)
#include "clock/sass/sass.def"
#undef SASS_TWINS
#undef SASS_ROW
};

}  // namespace

const Row& find_row(uint64_t bits) {
  // A row of twelve bits is one form; the forms that are left are the row's of nine bits.
  for (const uint64_t key : {bits, bits & 0x1ff})
    if (const Row* row = find_by(kRows, key, &Row::bits)) return *row;
  return *find_by(kRows, Opcode::unknown, &Row::opcode);
}

std::string_view pipe_name(Pipe pipe) {
  constexpr std::array<std::string_view, kPipes> names = {
      "none", "fma", "alu", "half", "special", "fp64", "uniform", "tensor", "memory"};
  return names[static_cast<size_t>(pipe)];
}

}  // namespace stitch::clock
