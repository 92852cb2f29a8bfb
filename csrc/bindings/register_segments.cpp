// torch_stitch::segments: the positions of a list of rows, sorted by row.
//
// What adds to, or replaces, rows at indices becomes a reader of its segment by it: row r takes the
// positions order[offsets[r]] to order[offsets[r + 1]], which are ascending.  So sums have eager's
// order on a CPU, the last of several writes wins, and nothing depends on threads.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/library.h>

#include <algorithm>
#include <utility>

namespace stitch {
namespace {

using at::Tensor;

struct Rows {
  int64_t size;
  std::optional<int64_t> ignored;  // an index whose positions are in no segment
  bool wraps;                      // negative indices count from the end

  static constexpr int64_t kIgnored = -1, kInvalid = -2;
  int64_t at(int64_t index) const {
    if (ignored && index == *ignored) return kIgnored;
    const int64_t row = wraps && index < 0 ? index + size : index;
    return row >= 0 && row < size ? row : kInvalid;
  }
};

// A counting sort in chunks, one per thread: each counts its rows, then knows where its positions
// of a row begin, after those of the chunks before it.
template <class Index, class Position>
struct Sorter {
  const Index* index;
  int64_t count;
  const Rows& rows;
  Position *order, *offsets;
  int64_t chunks, chunk_length;
  std::vector<Position> starts = std::vector<Position>(chunks * rows.size);  // [chunk, row]
  std::vector<char> is_valid = std::vector<char>(chunks, true);

  int64_t begin(int64_t chunk) const { return std::min(count, chunk * chunk_length); }
  template <class Body>
  void for_each_chunk(const Body& body) {
    at::parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
      for (int64_t chunk = first; chunk < last; ++chunk) body(chunk);
    });
  }

  void count_rows(int64_t chunk) {
    Position* counts = starts.data() + chunk * rows.size;
    for (int64_t i = begin(chunk); i < begin(chunk + 1); ++i) {
      const int64_t row = rows.at(index[i]);
      if (row >= 0) ++counts[row];
      if (row == Rows::kInvalid) is_valid[chunk] = false;
    }
  }

  void add_up() {
    Position total = 0;
    for (int64_t row = 0; row < rows.size; ++row) {
      offsets[row] = total;
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        Position& start = starts[chunk * rows.size + row];
        total += std::exchange(start, total);
      }
    }
    offsets[rows.size] = total;
  }

  void place(int64_t chunk) {
    Position* next = starts.data() + chunk * rows.size;
    for (int64_t i = begin(chunk); i < begin(chunk + 1); ++i) {
      const int64_t row = rows.at(index[i]);
      if (row >= 0) order[next[row]++] = static_cast<Position>(i);
    }
  }

  void run() {
    for_each_chunk([&](int64_t chunk) { count_rows(chunk); });
    if (std::count(is_valid.begin(), is_valid.end(), false) > 0) {
      std::fill_n(offsets, rows.size, 0);
      offsets[rows.size] = -1;
      return;
    }
    add_up();
    for_each_chunk([&](int64_t chunk) { place(chunk); });
  }
};

// As many chunks as threads, while counting rows in each costs less than it saves.
int64_t count_chunks(int64_t count, int64_t size) {
  constexpr int64_t kFewPositions = 1 << 15;
  const int64_t most = std::min(count / kFewPositions, 2 * count / std::max<int64_t>(1, size));
  return std::clamp<int64_t>(most, 1, at::get_num_threads());
}

template <class Index, class Position>
void sort_positions(const Tensor& index, const Rows& rows, Tensor& order, Tensor& offsets) {
  const int64_t count = index.numel(), chunks = count_chunks(count, rows.size);
  Sorter<Index, Position>{index.const_data_ptr<Index>(),
                          count,
                          rows,
                          order.data_ptr<Position>(),
                          offsets.data_ptr<Position>(),
                          chunks,
                          (count + chunks - 1) / chunks}
      .run();
}

// index: integers [count] -> order [count] and offsets [size + 1], i32 where `narrow`, else i64.
// Where an index is out of range the last offset is -1 and all others are 0; kernels report it.
std::tuple<Tensor, Tensor> segments_cpu(const Tensor& index, int64_t size,
                                        std::optional<int64_t> ignored, bool wraps, bool narrow) {
  const auto dtype = narrow ? at::kInt : at::kLong;
  Tensor order = at::empty(index.sizes(), dtype), offsets = at::empty({size + 1}, dtype);
  const Tensor given = index.contiguous();
  const Rows rows{size, ignored, wraps};
  AT_DISPATCH_INTEGRAL_TYPES(given.scalar_type(), "segments", [&] {
    if (narrow) {
      sort_positions<scalar_t, int32_t>(given, rows, order, offsets);
    } else {
      sort_positions<scalar_t, int64_t>(given, rows, order, offsets);
    }
  });
  return {order, offsets};
}

// On any device, by its own sort.
std::tuple<Tensor, Tensor> segments(const Tensor& index, int64_t size,
                                    std::optional<int64_t> ignored, bool wraps, bool narrow) {
  const auto dtype = narrow ? at::kInt : at::kLong;
  const Tensor given = index.to(at::kLong);
  const Tensor kept = ignored ? given.ne(*ignored) : at::ones_like(given, at::kBool);
  const Tensor rows = wraps ? at::where(given.lt(0), given + size, given) : given;
  const Tensor is_invalid = (rows.lt(0).logical_or(rows.ge(size))).logical_and(kept).any();
  const auto [sorted, order] =
      at::sort(at::where(kept, rows, size), /*stable=*/true, /*dim=*/0, /*descending=*/false);
  const Tensor ends = at::arange(size + 1, given.options());
  const Tensor none = at::where(ends.eq(size), -1, at::zeros_like(ends));
  const Tensor offsets = at::where(is_invalid, none, at::searchsorted(sorted, ends));
  return {order.to(dtype), offsets.to(dtype)};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(torch_stitch, library) {
  library.def(
      "segments(Tensor index, int size, int? ignored, bool wraps, bool narrow) -> "
      "(Tensor, Tensor)");
  library.impl("segments", c10::DispatchKey::CPU, &segments_cpu);
  library.impl("segments", c10::DispatchKey::CompositeExplicitAutograd, &segments);
}

}  // namespace stitch
