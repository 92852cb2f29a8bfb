#include "rewrite/rewrite_graph.h"

#include <bit>
#include <tuple>

#include "analysis/index_walk.h"
#include "ir/assume_sizes.h"
#include "rewrite/constants.h"
#include "rewrite/rebuild_graph.h"

namespace stitch {
namespace {

using enum OpKind;

// As many rows for each position as a call that sorts them all repays.
constexpr int64_t kMostRows = 4;
// Chunks of positions; elements that repay one more; times that the source and its index are larger
// than the rows of all chunks, which are set, combined into and read; chunks that share large work
// among threads well enough.  With 400,000 rows for 4 million positions, 4 chunks take 5.4 ms on
// two cores with AVX-512, 8 take 6.8 and 16 take 11; sorting the positions alone takes 22.
constexpr int64_t kMostChunks = 64, kChunkElements = 1 << 14, kChunkShare = 6, kEnoughChunks = 4;
constexpr int64_t kStrips = 4;  // of a chunk that kernels walk side by side, where they divide it
// What one chunk sets and reads in the time of a call, and in that of a row's share in a sort: 1.3
// ns on two cores; of 60,000 rows of one f32, one chunk takes 50 us and the sort 125.
constexpr int64_t kCallBytes = 1 << 15, kRowBytes = 12;
constexpr int64_t kMostTerms = 16;  // that a chunk adds to a row in f32, on average

// What a put does to one row, in the forms that it takes.
struct Combine {
  OpKind put, segment, scatter, reduce, merge;
};
constexpr OpKind kNone = OpKind::kCount;
constexpr Combine kCombines[] = {
    {k_put_sum, k_segment_sum, k_scatter_sum, k_sum, k_add},
    {k_put_mean, k_segment_sum, k_scatter_sum, k_sum, k_add},
    {k_put_prod, k_segment_prod, k_scatter_prod, k_prod, k_mul},
    {k_put_max, k_segment_max, k_scatter_max, k_amax, k_maximum},
    {k_put_min, k_segment_min, k_scatter_min, k_amin, k_minimum},
    {k_put_last, k_segment_last, kNone, kNone, kNone},
};

const Combine* find_combine(OpKind op) { return find_by(kCombines, op, &Combine::put); }

// The index is [count], along `dim` of the source.
struct Put {
  Combine combine;
  NodeId x, source, index;
  int64_t dim = 0;
  bool wraps = false;
  bool keeps = true;     // rows that something comes to count what x holds there
  int64_t ignored = -1;  // the index of no row
  bool is_in_place = false;

  bool is_mean() const { return combine.put == k_put_mean; }
  // What comes alone to its row is stored there, or added to it.
  bool writes_one() const {
    const bool is_known = combine.put == k_put_sum || combine.put == k_put_last;
    return is_known && keeps && ignored < 0;
  }
};

// How a put combines its rows: chunks > 0 of the positions, or by order and offsets of segments.
struct Rows {
  const Put& put;
  int64_t chunks = 0;
  NodeId order = {}, offsets = {};
  NodeId index = {}, kept = {};  // of chunks; kept: positions that are combined, invalid for all
};

// What chunks combine of a type is of one that registers hold.  In f32, one chunk, and any that
// adds many terms to a row, would be no more exact than eager.
DType combined_in(const Combine& combine, DType dtype, double terms, int64_t chunks) {
  const bool adds = combine.reduce == k_sum || combine.reduce == k_prod;
  const bool is_narrow = static_cast<double>(kMostTerms * chunks) < terms;
  if (dtype == DType::kF32 && adds && (chunks == 1 || is_narrow)) return DType::kF64;
  if (dtype == DType::kF16 || dtype == DType::kBF16) return DType::kF32;
  return info(dtype).bytes < 4 ? DType::kI32 : dtype;
}

// [n], along a dimension of `rank`.
NodeId lay_along(Builder& b, int64_t dim, size_t rank, NodeId line) {
  DimList along(rank, 1);
  along[dim] = b[line].type.shape[0];
  return b.reshape(line, along);
}

struct Lowering {
  const bool on_host;
  Builder* b = nullptr;
  // By index, rows, ignored and wraps: the order and the offsets.
  std::map<std::tuple<int32_t, std::string, int64_t, bool>, std::pair<NodeId, NodeId>> sorted = {};

  // An invalid id: the put is the call that eager makes.
  NodeId lower(Builder& builder, const Put& put) {
    b = &builder;
    const TensorType index = type(put.index);
    if (index.rank() == 1) return combine_rows(put);
    const DimList shape = type(put.x).shape;
    for (int d = 0; d < index.rank(); ++d)  // has it one for all places of the other dimensions?
      if (d != put.dim && index.shape[d] != shape[d]) return scatter_elements(put);
    if (const NodeId rows = row_index(put); rows.valid()) {
      Put whole = put;
      whole.index = rows;
      return combine_rows(whole);
    }
    const bool is_one = index.shape[put.dim].is(1) && type(put.x).dtype != DType::kBool;
    return is_one && put.writes_one() ? write_place(put) : scatter_elements(put);
  }

  const TensorType& type(NodeId id) const { return (*b)[id].type; }
  int64_t hint(const Dim& dim) const { return b->graph().symbols.hint(dim); }
  NodeId pointwise(OpKind op, NodeList operands) { return b->pointwise(op, operands); }
  NodeId integer(int64_t value) { return b->full(DType::kI64, 0, value); }

  // The index [count] that all places across share, where there is one: its other strides are 0.
  NodeId row_index(const Put& put) {
    const TensorType given = type(put.index);
    NodeId index = put.index;
    for (int d = 0; d < given.rank(); ++d) {
      if (d == put.dim) continue;
      if (!given.shape[d].is(1) && !given.strides[d].is(0)) return {};
      index = b->slice(index, d, 0, 1, 1);
    }
    return b->reshape(index, {given.shape[put.dim]});
  }

  // One row, or one place for each row across: the slice that begins at the index.
  NodeId write_place(const Put& put) {
    const bool is_row = type(put.index).rank() == 1;
    NodeId source = put.source, start = put.index;
    if (is_row) start = b->reshape(start, DimList(type(put.x).rank(), 1));
    if (put.combine.put == k_put_sum) {
      const NodeId kept = is_row ? b->index(put.x, {put.index}, {put.dim}, put.wraps)
                                 : b->gather(put.x, put.index, put.dim, put.wraps);
      source = pointwise(k_add, {kept, source});
    }
    return b->slice_scatter(put.x, source, put.dim, start, put.wraps);
  }

  // Every element has an index of its own: rows of one element, in x as one line.
  NodeId scatter_elements(const Put& put) {
    const DimList shape = type(put.x).shape;
    const Dim total = element_count(shape), count = element_count(type(put.index).shape);
    if (hint(total) > kMostRows * hint(count)) return {};
    Put flat = put;
    flat.index = b->reshape(number_elements(put, shape), {count});
    flat.x = b->reshape(put.x, {total});
    flat.source = b->reshape(put.source, {count});
    flat.dim = 0;
    const NodeId made = combine_rows(flat);
    return made.valid() ? b->reshape(made, shape) : made;
  }

  // Which element of a tensor of `shape` each element of the index names; -1 for none.
  NodeId number_elements(const Put& put, const DimList& shape) {
    const DimList counts = type(put.index).shape;
    const NodeId index = b->cast(put.index, DType::kI64);
    NodeId place = integer(0);
    Dim total = 1;
    for (int d = static_cast<int>(shape.size()); d-- > 0;) {
      const NodeId line = lay_along(*b, d, shape.size(), b->iota(DType::kI64, counts[d], 0, 1));
      const NodeId step = b->size_value(DType::kI64, total);
      place = pointwise(k_add, {place, pointwise(k_mul, {d == put.dim ? index : line, step})});
      total = total * shape[d];
    }
    const NodeId size = b->size_value(DType::kI64, shape[put.dim]);
    const NodeId inside = pointwise(
        k_logical_and, {pointwise(k_ge, {index, integer(0)}), pointwise(k_lt, {index, size})});
    return pointwise(k_select, {inside, place, integer(-1)});
  }

  NodeId combine_rows(const Put& put) {
    const DimList shape = type(put.x).shape;
    const Dim count = type(put.source).shape[put.dim];
    if (count.is(1) && put.writes_one()) return write_place(put);
    // Eager's own call writes less than all rows of an argument.
    if (put.is_in_place && hint(count) < hint(shape[put.dim])) return {};
    const int64_t chunks = count_chunks(put);
    return finish_rows(chunks ? split_positions(put, chunks) : sort_rows(put));
  }

  // Below 2^31, or assumed to be.
  bool is_small(const Dim& count) {
    if (count.is_at_most(INT32_MAX)) return true;
    const auto small = assume_small(b->graph().symbols, count);
    if (small) b->graph().symbols.assumptions.push_back(*small);
    return small.has_value();
  }

  // The order and the offsets of the segments of an index [count], among the rows of x.
  Rows sort_rows(const Put& put) {
    const Dim size = type(put.x).shape[put.dim];
    auto& made = sorted[{put.index.value(), to_string(size), put.ignored, put.wraps}];
    if (!made.first.valid()) {
      const Dim count = type(put.index).shape[0];
      const bool narrow = is_small(count) && is_small(size);
      const DType dtype = narrow ? DType::kI32 : DType::kI64;
      Node call{.op = k_library, .integer = kMadeCall, .type = {DType::kOpaque}};
      call.name = kSegmentsCall;
      call.dims = {int64_t{narrow}, size, int64_t{put.wraps}, std::max<int64_t>(put.ignored, -1)};
      const NodeId sorts = b->copy(call, {put.index});
      made = {b->read_result(sorts, 0, contiguous_type(dtype, {count})),
              b->read_result(sorts, 1, contiguous_type(dtype, {size + Dim(1)}))};
    }
    return {.put = put, .order = made.first, .offsets = made.second};
  }

  // Chunks that combine the rows of a put sooner than its positions are sorted; 0: none do.
  int64_t count_chunks(const Put& put) {
    DimList counts = type(put.source).shape;
    const Dim rows = type(put.x).shape[put.dim];
    if (!on_host || !rows.is_constant()) return 0;
    const bool is_last = put.combine.scatter == kNone;  // whose positions are combined
    const int64_t count = hint(std::exchange(counts[put.dim], 1));
    const int64_t width = is_last ? 1 : hint(element_count(counts));
    const DType wide = combined_in(put.combine, type(put.x).dtype, 0, kEnoughChunks);
    const int64_t index_bytes = info(DType::kI64).bytes;
    const int64_t bytes = is_last ? index_bytes : info(wide).bytes;
    const int64_t moved = count * (index_bytes + width * bytes);
    const int64_t made = rows.value() * width * bytes;
    const int64_t wanted = std::clamp<int64_t>(count * width / kChunkElements, 1, kMostChunks);
    if (wanted == 1) return made <= moved + kCallBytes + rows.value() * kRowBytes;
    const int64_t chunks = std::min(wanted, moved / (kChunkShare * made));
    if (chunks >= std::min(wanted, kEnoughChunks))
      return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(chunks)));
    return 2 * made <= count * (index_bytes + bytes) ? 2 : 0;
  }

  // Where the index of a put is the ignored one, nothing is combined.
  Rows split_positions(const Put& put, int64_t chunks) {
    Rows rows{.put = put, .chunks = chunks, .index = b->cast(put.index, DType::kI64)};
    if (put.ignored < 0) return rows;
    rows.kept = pointwise(k_ne, {rows.index, integer(put.ignored)});
    rows.index = pointwise(k_select, {rows.kept, rows.index, integer(0)});
    return rows;
  }

  // How many positions each row has, [rows].
  NodeId count_positions(const Rows& rows) {
    const Dim size = type(rows.put.x).shape[rows.put.dim];
    const NodeId ones = b->expand(integer(1), type(rows.put.index).shape);
    if (rows.chunks) return scatter_chunks(rows, k_put_sum, ones, 0);
    const NodeId first = b->slice(rows.offsets, 0, 0, size, 1);
    const NodeId last = b->slice(rows.offsets, 0, 1, size, 1);
    return b->cast(pointwise(k_sub, {last, first}), DType::kI64);
  }

  NodeId combine(const Rows& rows, NodeId x) {
    const Put& put = rows.put;
    if (!rows.chunks)
      return b->combine_rows(put.combine.segment, {x, put.source, rows.order, rows.offsets},
                             put.dim);
    const DType dtype = type(x).dtype;
    const double size = static_cast<double>(type(x).shape[put.dim].value());
    const double count = static_cast<double>(hint(type(put.source).shape[put.dim]));
    const DType wide = combined_in(put.combine, dtype, count / size, rows.chunks);
    const NodeId made = scatter_chunks(rows, put.combine.put, b->cast(put.source, wide), put.dim);
    return b->cast(pointwise(put.combine.merge, {b->cast(x, wide), made}), dtype);
  }

  // `source` combined into the rows of x along `dim`, each of which begins with nothing.
  NodeId scatter_chunks(const Rows& rows, OpKind put, NodeId source, int64_t dim) {
    const Combine& combine = *find_combine(put);
    const DimList counts = type(source).shape;
    const Dim size = type(rows.put.x).shape[rows.put.dim], chunks = rows.chunks;
    const DType dtype = type(source).dtype;
    const Constant identity = identity_of(combine.reduce, dtype);
    const NodeId none = make_constant(*b, identity, {});
    DimList along(counts.size(), 1);
    along[dim] = counts[dim];
    if (rows.kept.valid())
      source = pointwise(k_select, {b->reshape(rows.kept, along), source, none});
    NodeId index = rows.index;
    const auto [length, is_whole] = chunk_length(counts[dim], rows.chunks);
    if (!is_whole) {
      DimList padded = counts;
      padded[dim] = length * chunks;
      const DimList before(counts.size(), 0);
      source = b->pad(source, before, padded, identity.number, identity.integer);
      index = b->pad(index, {0}, {padded[dim]}, 0, 0);
    }
    const auto with_chunks = [&](DimList shape, const Dim& extent) {
      shape[dim] = extent;
      shape.insert(shape.begin() + dim, chunks);
      return shape;
    };
    source = b->reshape(source, with_chunks(counts, length));
    index = b->reshape(index, with_chunks(along, length));
    const NodeId x = b->expand(none, with_chunks(counts, size));
    const NodeId made =
        b->combine_rows(combine.scatter, {x, source, index}, dim + 1, rows.put.wraps);
    if (rows.chunks > 1) return b->reduce(combine.reduce, made, {dim}, dtype, false);
    DimList shape = counts;
    shape[dim] = size;
    return b->reshape(made, shape);
  }

  // Positions of a chunk; whether chunks of as many hold `count`, and no more.
  std::pair<Dim, bool> chunk_length(const Dim& count, int64_t chunks) {
    if (!count.is_constant()) return {b->graph().symbols.divide_up(count, chunks), chunks == 1};
    if (count.value() % chunks == 0) return {count.value() / chunks, true};
    const int64_t step = chunks * kStrips;
    return {(count.value() + step - 1) / step * kStrips, false};
  }

  // The last position of each row tells what comes to it, in whatever order it is found.
  NodeId take_last(const Rows& rows) {
    const Put& put = rows.put;
    const NodeId positions = b->iota(DType::kI64, type(put.index).shape[0], 0, 1);
    const NodeId last = scatter_chunks(rows, k_put_max, positions, 0);
    const NodeId taken = pointwise(k_maximum, {last, integer(0)});
    NodeId source = put.source;
    DimList shape = type(source).shape;
    const NodeId is_met = pointwise(k_ge, {lay_along(*b, put.dim, shape.size(), last), integer(0)});
    if (may_be_empty(shape[put.dim], b->graph().symbols)) {  // a row to read where there is none
      shape[put.dim] = shape[put.dim] + 1;
      source = b->pad(source, DimList(shape.size(), 0), shape, 0, 0);
    }
    return pointwise(k_select, {is_met, b->index(source, {taken}, {put.dim}, false), put.x});
  }

  // What the rows combine with x, or with nothing where something comes; their means.
  NodeId finish_rows(const Rows& rows) {
    const Put& put = rows.put;
    if (rows.chunks && put.combine.scatter == kNone) return take_last(rows);
    if (put.keeps && !put.is_mean()) return combine(rows, put.x);
    NodeId x = put.x;
    NodeId count = lay_along(*b, put.dim, type(x).rank(), count_positions(rows));
    const DType dtype = type(x).dtype;
    if (!put.keeps) {
      const NodeId is_met = pointwise(k_gt, {count, integer(0)});
      const NodeId none = make_constant(*b, identity_of(put.combine.reduce, dtype), {});
      x = pointwise(k_select, {is_met, none, x});
    }
    const NodeId made = combine(rows, x);
    if (!put.is_mean()) return made;
    count = pointwise(k_add, {count, integer(put.keeps)});
    count = pointwise(k_maximum, {count, integer(1)});
    return pointwise(k_div, {made, b->cast(count, dtype)});
  }
};

Put read_put(const Node& node, const Combine& combine, const NodeList& inputs) {
  const auto& ints = node.ints;
  return {combine,      inputs[0], inputs[1],
          inputs[2],    ints[0],   ints[1] != 0,
          ints[2] != 0, ints[3],   may_write_operands(node)};
}

NodeId call(Builder& b, const RewriteSite& site) {
  Node node = site.node;
  node.ints.assign(may_write_operands(node), kWritesOperands);
  node.op = k_library;
  return b.copy(node, {site.inputs.begin() + 3, site.inputs.end()});
}

// A GPU sorts in twenty launches, whether one index or the indices of three tables of embeddings.
Graph sort_together(const Graph& graph) {
  NodeList calls;
  const auto find_index = [&](NodeId id) { return skip_reshapes(graph, graph[id].inputs[0]); };
  for (int n = 0; n < graph.size(); ++n) {
    const Node& node = graph.nodes[n];
    const bool sorts = node.op == k_library && node.name == kSegmentsCall && node.dims[0].is(1);
    if (!sorts) continue;
    const NodeId index = find_index(NodeId(n));
    const bool is_early = calls.empty() || index.index() < calls[0].index();
    if (is_early && graph[index].op == k_input) calls.emplace_back(n);
  }
  if (calls.size() < 2) return graph;
  return rebuild_graph(graph, [&](Builder& b, const RewriteSite& site) -> NodeId {
    const bool is_result = site.node.op == k_get;
    const auto at = std::ranges::find(calls, is_result ? site.node.inputs[0] : site.id);
    if (at == calls.end() || (!is_result && at != calls.begin())) return {};  // nobody reads it
    if (is_result)
      return b.read_result(site.made[calls[0].index()],
                           2 * (at - calls.begin()) + site.node.ints[0], site.node.type);
    Node call = site.node;
    NodeList indices;
    call.dims.resize(1);
    for (NodeId id : calls) {
      const Node& own = graph[id];
      indices.push_back(
          b.reshape(site.made[find_index(id).index()], graph[own.inputs[0]].type.shape));
      call.dims.insert(call.dims.end(), own.dims.begin() + 1, own.dims.end());
    }
    return b.copy(call, indices);
  });
}

}  // namespace

Graph lower_scatters(const Graph& graph, bool on_host) {
  Lowering lowering{on_host};
  Graph result = rebuild_graph(graph, [&](Builder& b, const RewriteSite& site) -> NodeId {
    const Combine* combine = find_combine(site.node.op);
    if (!combine) return {};
    const NodeId made = lowering.lower(b, read_put(site.node, *combine, site.inputs));
    if (!made.valid()) return call(b, site);
    return site.strides_matter ? b.with_layout(made, site.node.type.strides) : made;
  });
  // Calls in place have written what they were given: nothing is left to store.
  std::erase_if(result.mutations, [&](const Mutation& mutation) {
    NodeId value = mutation.value;
    while (value != mutation.input && result[value].op == k_library &&
           result[value].name.starts_with("aten.") && may_write_operands(result[value]))
      value = result[value].inputs[0];
    return value == mutation.input;
  });
  return on_host ? result : sort_together(result);
}

}  // namespace stitch
