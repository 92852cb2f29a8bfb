#include "stage/block_ranges.h"

#include "stage/map_axes.h"

namespace stitch {
namespace {

// Sums of terms that each lie in a range of their own.
struct Interval {
  int64_t low = 0, high = 0;

  void add(int64_t coefficient, int64_t largest) {
    (coefficient < 0 ? low : high) += coefficient * std::max<int64_t>(0, largest);
  }
};

// An offset by the axes of a schedule and by what is no axis: quotients and remainders.
struct Offset {
  std::vector<int64_t> axes;                       // coefficients
  std::vector<std::pair<int64_t, int64_t>> terms;  // coefficient, extent
  int64_t constant = 0;
};

// Nothing where sizes are only known at run time or an index is read from memory.
std::optional<Offset> split_offset(const StageSchedule& schedule, const IndexExpr& expr) {
  Offset out;
  if (!expr.constant.is_constant()) return std::nullopt;
  out.constant = expr.constant.value();
  for (int a = 0; a < std::ssize(schedule.axes); ++a) {
    const MappedAxis& mapped = schedule.axes[a];
    const Dim step = axis_coefficient(schedule, schedule.accesses.vars, expr, a);
    const bool is_static =
        step.is_constant() && mapped.axis.extent.is_constant() && static_blocks(mapped);
    if (!is_static) return std::nullopt;
    out.axes.push_back(step.value());
  }
  for (const auto& [var, coefficient] : expr.terms) {
    const IndexVar& term = schedule.accesses.vars[var];
    if (term.is_atom()) continue;
    const bool is_bounded = !term.is_value() && term.extent.is_constant() &&
                            term.extent.value() > 0 && coefficient.is_constant();
    if (!is_bounded) return std::nullopt;
    out.terms.push_back({coefficient.value(), term.extent.value()});
  }
  return out;
}

// Indices of one block along an axis, less one.
int64_t last_in_block(const MappedAxis& mapped) {
  const int64_t extent = mapped.axis.extent.value();
  return std::min(mapped.tile().value(), extent) - 1;
}

bool is_divided(const MappedAxis& mapped) { return static_blocks(mapped).value() > 1; }

bool stays_in_block(const StageSchedule& schedule, const Offset& offset, int64_t size) {
  Interval within;
  int64_t blocks = 1;  // of the axes after this one: what its own block number counts
  for (size_t a = schedule.axes.size(); a-- > 0;) {
    const MappedAxis& mapped = schedule.axes[a];
    const int64_t begin = offset.axes[a] * mapped.tile().value();
    if (is_divided(mapped) && begin != size * blocks) return false;
    blocks *= static_blocks(mapped).value();
    within.add(offset.axes[a], last_in_block(mapped));
  }
  for (const auto& [coefficient, extent] : offset.terms) within.add(coefficient, extent - 1);
  return within.low + offset.constant >= 0 && within.high + offset.constant < size;
}

}  // namespace

std::optional<int64_t> find_block_range(const StageSchedule& schedule, NodeId value) {
  const Access* store = find_access(schedule.accesses, value, true);
  const auto offset = store ? split_offset(schedule, store->offset) : std::nullopt;
  if (!offset) return std::nullopt;
  // That of the last axis which blocks divide; of all elements where there is one block.
  Interval all;
  std::optional<int64_t> divided;
  for (size_t a = 0; a < schedule.axes.size(); ++a) {
    const MappedAxis& mapped = schedule.axes[a];
    all.add(offset->axes[a], last_in_block(mapped));
    if (is_divided(mapped)) divided = offset->axes[a] * mapped.tile().value();
  }
  const int64_t size = divided.value_or(all.high + 1);
  const bool is_range = size > 0 && stays_in_range(schedule, value, size);
  return is_range ? std::optional(size) : std::nullopt;
}

bool stays_in_range(const StageSchedule& schedule, NodeId value, int64_t size) {
  return std::ranges::all_of(schedule.accesses.list, [&](const Access& access) {
    if (access.value != value) return true;
    const std::optional<Offset> offset = split_offset(schedule, access.offset);
    const bool is_known = offset && !access.is_guarded && !access.in_segment;
    return is_known && stays_in_block(schedule, *offset, size);
  });
}

std::optional<IndexExpr> pad_rows(const StageSchedule& schedule, const IndexExpr& expr,
                                  int64_t length, int64_t pitch) {
  const std::optional<Offset> offset = split_offset(schedule, expr);
  if (!offset) return std::nullopt;
  Interval in_row;
  auto place = [&](int64_t coefficient, int64_t largest) {
    if (coefficient % length != 0) in_row.add(coefficient, largest);
  };
  for (size_t a = 0; a < schedule.axes.size(); ++a)
    place(offset->axes[a], schedule.axes[a].axis.extent.value() - 1);
  for (const auto& [coefficient, extent] : offset->terms) place(coefficient, extent - 1);
  const int64_t row = offset->constant / length, rest = offset->constant % length;
  if (in_row.low + rest < 0 || in_row.high + rest >= length) return std::nullopt;
  IndexExpr padded{row * pitch + rest, {}};
  for (const auto& [var, coefficient] : expr.terms) {
    const int64_t step = coefficient.value();
    padded.terms.add(var, step % length == 0 ? step / length * pitch : step);
  }
  return padded;
}

}  // namespace stitch
