#include "clock/sass/isa.h"

#include <array>
#include <iterator>

namespace stitch::clock {

namespace {

constexpr Row kRows[] = {
#define SASS_ROW(id, name, bits, operands, pipe, issue, latency, flow, source) \
  {Opcode::id, name, bits, operands, Pipe::pipe, issue, Latency::latency, Flow::flow, source},
#include "clock/sass/sass.def"
#undef SASS_ROW
};
static_assert(std::size(kRows) == static_cast<size_t>(Opcode::count));

constexpr size_t kFormCount = 8, kBaseBits = 9;

// A row of twelve bits is one form; the forms that are left are the row's of nine bits.
std::array<const Row*, kFormCount << kBaseBits> index_rows() {
  std::array<const Row*, kFormCount << kBaseBits> rows = {};
  for (const Row& row : kRows)
    if (row.bits >> kBaseBits) rows[row.bits] = &row;
  for (const Row& row : kRows) {
    if (row.bits >> kBaseBits) continue;
    for (size_t form = 0; form < kFormCount; ++form) {
      const Row*& place = rows[form << kBaseBits | row.bits];
      if (!place) place = &row;
    }
  }
  return rows;
}

}  // namespace

std::span<const Row> all_rows() { return kRows; }

const Row* find_row(uint16_t bits) {
  static const auto rows = index_rows();
  const Row* row = rows[bits & (rows.size() - 1)];
  return row && row->opcode != Opcode::unknown ? row : nullptr;
}

std::string_view pipe_name(Pipe pipe) {
  constexpr std::array<std::string_view, static_cast<size_t>(Pipe::count)> names = {
      "none", "fma", "alu", "half", "special", "fp64", "uniform", "tensor", "memory"};
  return names[static_cast<size_t>(pipe)];
}

}  // namespace stitch::clock
