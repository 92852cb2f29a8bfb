#include "plan/split_reductions.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/round_up.h"
#include "rewrite/constants.h"
#include "rewrite/rebuild_graph.h"
#include "rewrite/rewrite_graph.h"

namespace stitch {
namespace {

// Below this many elements one block is as fast as many.
constexpr int64_t kSmallReduction = 1 << 16;
// Columns one block takes when the innermost dimension is kept: a warp's lanes, a host tile.
constexpr int64_t kCudaColumns = 32, kHostColumns = 256;
// Elements of a piece: enough to repay its partial results, few enough that a second look at a
// piece (deviations from its mean) is served by the host's L2 cache.
constexpr int64_t kLeastPiece = 4096, kHostPiece = 1 << 17;

struct Split {
  int64_t dim = -1;
  int64_t pieces = 1;
};

struct Reduction {
  NodeId id;
  std::vector<NodeId> sources;  // materialised values at least half as large as the operand
};

using Reached = std::shared_ptr<const std::vector<NodeId>>;  // ascending

struct SplitFinder {
  const Graph& graph;
  const DeviceSpec& device;
  int workers;
  std::vector<Reached> reached = {};  // by node
  std::map<NodeId, Split> splits = {};

  std::map<NodeId, Split> run() {
    find_reached();
    std::map<std::string, std::vector<Reduction>> alike;  // by operand shape
    for (int n = 0; n < graph.size(); ++n) {
      const Node& node = graph.nodes[n];
      if (family(node) != Family::kReduce) continue;
      const TensorType& type = graph[node.inputs[0]].type;
      if (hint_elements(graph, node.inputs[0]) < kSmallReduction) continue;
      alike[to_string(contiguous_type(DType::kF32, type.shape))].push_back(
          {NodeId(n), find_sources(node.inputs[0])});
    }
    for (const auto& [shape, reductions] : alike)
      for (const std::vector<NodeId>& group : find_groups(reductions)) choose(group);
    return splits;
  }

  int64_t hint(const Dim& dim) const { return std::max<int64_t>(0, graph.symbols.hint(dim)); }

  // Materialised values that may be a source of some reduction, for every value that is made of
  // them.  Most values have those of an operand, and share them with it.
  void find_reached() {
    reached.assign(graph.size(), std::make_shared<const std::vector<NodeId>>());
    for (int n = 0; n < graph.size(); ++n) {
      const NodeId id(n);
      if (!is_materialised(graph[id]))
        for (NodeId input : graph[id].inputs) add_reached(reached[input.index()], reached[n]);
      else if (hint_elements(graph, id) >= kSmallReduction / 2)
        reached[n] = std::make_shared<const std::vector<NodeId>>(1, id);
    }
  }

  static void add_reached(const Reached& more, Reached& all) {
    if (more == all || std::ranges::includes(*all, *more)) return;
    if (std::ranges::includes(*more, *all)) {
      all = more;
      return;
    }
    std::vector<NodeId> both;
    std::ranges::set_union(*all, *more, std::back_inserter(both));
    all = std::make_shared<const std::vector<NodeId>>(std::move(both));
  }

  std::vector<NodeId> find_sources(NodeId operand) const {
    const int64_t enough = hint_elements(graph, operand) / 2;
    std::vector<NodeId> sources;
    for (NodeId id : *reached[operand.index()])
      if (hint_elements(graph, id) >= enough) sources.push_back(id);
    return sources;
  }

  // Reductions that share a source can share one pass over it.
  static std::vector<std::vector<NodeId>> find_groups(const std::vector<Reduction>& reductions) {
    std::vector<std::vector<NodeId>> groups;
    std::map<NodeId, size_t> first_with;  // the first group with a source
    for (const Reduction& reduction : reductions) {
      size_t at = groups.size();
      for (NodeId source : reduction.sources)
        if (auto with = first_with.find(source); with != first_with.end())
          at = std::min(at, with->second);
      if (at == groups.size()) groups.emplace_back();
      groups[at].push_back(reduction.id);
      for (NodeId source : reduction.sources) {
        size_t& first = first_with.try_emplace(source, at).first->second;
        first = std::min(first, at);
      }
    }
    return groups;
  }

  void choose(const std::vector<NodeId>& group) {
    const std::vector<Dim>& shape = graph[graph[group[0]].inputs[0]].type.shape;
    const int rank = static_cast<int>(shape.size());
    std::set<int64_t> reduced;
    for (NodeId id : group) reduced.insert(graph[id].ints.begin(), graph[id].ints.end());
    int64_t blocks = 1, inside = 1;
    for (int d = 0; d < rank; ++d) {
      const int64_t columns = device.is_cuda ? kCudaColumns : kHostColumns;
      const int64_t extent = std::max<int64_t>(1, hint(shape[d]));
      const bool kept = !reduced.count(d);
      const int64_t mine = d + 1 == rank ? divide_up(extent, columns) : extent;
      blocks *= kept ? mine : 1;
      inside *= kept ? extent / mine : extent;
    }
    // One wave of blocks of 1024 threads; a few more would be a second one (AStitch 3.3).
    const int64_t most_blocks = device.is_cuda ? 2 * device.multiprocessors : 8 * workers;
    if (has_enough(blocks, group[0])) return;
    int64_t pieces = most_blocks / blocks;
    if (!device.is_cuda) pieces = std::max(pieces, inside / kHostPiece);
    pieces = std::min(pieces, inside / kLeastPiece);
    if (pieces < 2) return;
    const int64_t d = choose_dim(shape, reduced, pieces);
    if (d < 0) return;
    const int64_t most = std::min(pieces, hint(shape[d]));
    Split split{d, nearest_divisor(shape[d], most)};
    if (device.is_cuda) split.pieces = weigh_pieces(group, shape[d], blocks, split, most);
    const bool divides = is_divisible(shape[d], split.pieces);
    for (NodeId id : group)
      if (can_be_split(id, d) && (divides || graph[id].op != OpKind::k_sum_sq_dev))
        splits[id] = split;
  }

  bool can_be_split(NodeId id, int64_t dim) const {
    return !is_arg_reduction(graph[id]) && std::ranges::count(graph[id].ints, dim) > 0;
  }

  // Bytes of one piece's partial results, written and read again.
  double partial_bytes(const std::vector<NodeId>& group, int64_t dim) const {
    double bytes = 0;
    for (NodeId id : group) {
      if (!can_be_split(id, dim)) continue;
      const int width = std::max(4, element_bytes(graph, id));
      bytes += 2.0 * width * static_cast<double>(hint_elements(graph, id));
    }
    return bytes;
  }

  double source_bytes(const std::vector<NodeId>& group) const {
    std::set<NodeId> sources;
    for (NodeId id : group) {
      const std::vector<NodeId> own = find_sources(graph[id].inputs[0]);
      sources.insert(own.begin(), own.end());
    }
    double bytes = 0;
    for (NodeId id : sources) bytes += static_cast<double>(hint_bytes(graph, id));
    return bytes;
  }

  // Two blocks a multiprocessor hide more latency; one is better where the partial results of the
  // others cost more than what stays idle.  An odd extent, of which no vectors are loaded, is
  // cut in `most` where a divisor leaves more idle: 141 of 2^32 + 5 take twice the time of 264.
  int64_t weigh_pieces(const std::vector<NodeId>& group, const Dim& extent, int64_t blocks,
                       const Split& split, int64_t most) const {
    constexpr double kWorthwhileGain = 0.1;
    const double each = partial_bytes(group, split.dim), once = source_bytes(group);
    auto cost = [&](int64_t pieces) {
      // The multiprocessor with the most blocks is the last to end.
      const int64_t busiest = divide_up(pieces * blocks, device.multiprocessors);
      const auto share = static_cast<double>(pieces * blocks) /
                         static_cast<double>(busiest * device.multiprocessors);
      return (once + each * static_cast<double>(pieces)) / share;
    };
    const auto gains = [&](int64_t other, int64_t pieces) {
      return cost(other) < (1 - kWorthwhileGain) * cost(pieces);
    };
    int64_t pieces = split.pieces;
    const bool may_pad = !is_divisible(extent, 2) && std::ranges::none_of(group, [&](NodeId id) {
      return graph[id].op == OpKind::k_sum_sq_dev;  // whose pieces are equal
    });
    if (may_pad && gains(most, pieces)) pieces = most;
    const int64_t wish = divide_up(device.multiprocessors, blocks);
    if (wish < 2 || wish >= pieces) return pieces;
    const int64_t fewer = nearest_divisor(extent, wish);
    return gains(fewer, pieces) ? fewer : pieces;
  }

  // Would more blocks save less than the barrier costs after which their results are combined?
  bool has_enough(int64_t blocks, NodeId reduction) const {
    if (!device.is_cuda) return blocks >= 2 * workers;
    if (blocks >= device.multiprocessors) return true;
    const auto bytes = static_cast<double>(hint_bytes(graph, graph[reduction].inputs[0]));
    const double share = static_cast<double>(blocks) / device.multiprocessors;
    return bytes / device.dram_bytes_per_us * (1 / share - 1) <= device.barrier_us;
  }

  // The outermost reduced dimension that is long enough: pieces stay contiguous.  Else the longest;
  // -1 where none has more than one element.
  int64_t choose_dim(const std::vector<Dim>& shape, const std::set<int64_t>& reduced,
                     int64_t pieces) const {
    int64_t longest = -1;
    for (int64_t d : reduced) {
      if (hint(shape[d]) >= pieces) return d;
      const bool is_longer = longest < 0 || hint(shape[d]) > hint(shape[longest]);
      if (hint(shape[d]) > 1 && is_longer) longest = d;
    }
    return longest;
  }

  // A divisor of a static extent within a factor of two of the wish, else the wish itself.
  static int64_t nearest_divisor(const Dim& extent, int64_t wish) {
    for (int64_t off = 0; off <= wish; ++off) {
      if (wish - off >= 2 && 2 * (wish - off) >= wish && is_divisible(extent, wish - off))
        return wish - off;
      if (off < wish && is_divisible(extent, wish + off)) return wish + off;
    }
    return wish;
  }
};

// The operand with dimension `dim` cut in two: [.., pieces, length, ..].
NodeId cut_operand(Builder& b, NodeId x, const Split& split, OpKind op) {
  std::vector<Dim> shape = b[x].type.shape;
  const Dim length = b.graph().symbols.divide_up(shape[split.dim], split.pieces);
  shape[split.dim] = length * Dim(split.pieces);
  if (shape != b[x].type.shape) {
    const Constant identity = identity_of(op, b[x].type.dtype);
    x = b.pad(x, std::vector<Dim>(shape.size(), 0), shape, identity.number, identity.integer);
  }
  shape[split.dim] = split.pieces;
  shape.insert(shape.begin() + split.dim + 1, length);
  return b.reshape(x, shape);
}

struct PieceAxes {
  std::vector<int64_t> inner;  // of the cut operand: all reduced axes but the pieces
  int64_t pieces = 0;          // where the pieces are in the partial result
};

PieceAxes piece_axes(const Node& node, const Split& split) {
  PieceAxes axes{{}, split.dim};
  for (int64_t axis : node.ints) axes.inner.push_back(axis < split.dim ? axis : axis + 1);
  for (int64_t axis : node.ints) axes.pieces -= axis < split.dim;
  return axes;
}

// Each piece's sums are moved from its own mean to one number, the mean of these means, as if all
// deviations had been taken from that.  Differences of means are exact where both are large; means
// that were corrected before they are compared would be rounded once more.
NodeId split_deviation(Builder& b, const Node& node, NodeId x, const Split& split) {
  const DType dtype = node.type.dtype;
  const auto combine = [&](OpKind op, NodeId l, NodeId r) { return b.pointwise(op, {l, r}); };
  const PieceAxes axes = piece_axes(node, split);
  const NodeId cut = cut_operand(b, b.cast(x, dtype), split, node.op);
  const Deviations own = sum_deviations(b, cut, axes.inner);
  const auto sum = [&](NodeId parts, bool keeps) {
    return b.reduce(OpKind::k_sum, parts, {axes.pieces}, dtype, keeps);
  };
  const NodeId pieces = b.size_value(dtype, split.pieces);
  const NodeId shared = combine(OpKind::k_div, sum(own.center, true), pieces);
  const NodeId apart = combine(OpKind::k_sub, own.center, shared);
  // (d + a)^2 summed over a piece is sum(d^2) + a * (2 * sum(d) + n * a).
  const NodeId moved = combine(OpKind::k_mul, apart, b.size_value(dtype, own.count));
  const NodeId sums = combine(OpKind::k_add, own.sum, moved);
  const NodeId more = combine(OpKind::k_mul, apart, combine(OpKind::k_add, own.sum, sums));
  const NodeId squares = combine(OpKind::k_add, own.squares, more);
  return center_squares(b, sum(squares, false), sum(sums, false), own.count * Dim(split.pieces));
}

NodeId split_reduction(Builder& b, const Node& node, NodeId x, const Split& split) {
  if (node.op == OpKind::k_sum_sq_dev) return split_deviation(b, node, x, split);
  const DType dtype = node.type.dtype;
  // Partial sums keep the accumulator's precision.
  const bool is_narrow = (node.op == OpKind::k_sum || node.op == OpKind::k_prod) &&
                         (dtype == DType::kF16 || dtype == DType::kBF16);
  const DType partial = is_narrow ? DType::kF32 : dtype;
  const PieceAxes axes = piece_axes(node, split);
  const NodeId cut = cut_operand(b, x, split, node.op);
  const NodeId parts = b.reduce(node.op, cut, axes.inner, partial, false);
  return b.cast(b.reduce(node.op, parts, {axes.pieces}, partial, false), dtype);
}

}  // namespace

Graph split_reductions(const Graph& graph, const DeviceSpec& device, int worker_threads) {
  const std::map<NodeId, Split> splits = SplitFinder{graph, device, worker_threads}.run();
  if (splits.empty()) return graph;
  return rebuild_graph(graph, [&](Builder& b, const RewriteSite& site) -> NodeId {
    auto at = splits.find(site.id);
    if (at == splits.end()) return {};
    return split_reduction(b, site.node, site.inputs[0], at->second);
  });
}

}  // namespace stitch
