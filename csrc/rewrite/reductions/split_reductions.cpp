#include <bit>

#include "analysis/precision.h"
#include "analysis/storage.h"
#include "rewrite/reductions/reduce_pieces.h"
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

// A thread's piece: vectors of 16 bytes, as many as pay for the results that it is combined by, in
// blocks of so many threads that each has few.  [264, 262144] bf16, logarithms of softmax: 184 us
// with 64 pieces a thread, 123 with 16 (H200, by the clock).
constexpr int64_t kLanes = 128, kMostLanes = 512, kVectorBytes = 16, kVectors = 4,
                  kMostOfThread = 25;
// Of a row that is held whole a thread has so many pieces, in blocks of so many threads, at least.
constexpr int64_t kLeastOfThread = 4, kLeastLanes = 64;
// ... or elements of one column.
constexpr int64_t kThreadRows = 8, kMostThreadRows = 16;
// Blocks that keep less of the device busy are cut again, for more of them, rather than held.
constexpr double kLeastBusy = 0.8;
// Pieces of a row whose results threads hold until all of the row is read: 32 a thread of 256.
// Those of an entropy have a third result: half as many.
constexpr int64_t kMostPieces = 8192;

struct Split {
  Pieces pieces;
  std::optional<Exponentials> terms = {};
};

struct SplitFinder {
  const Graph& graph;
  const DeviceSpec& device;
  int workers;
  bool rounds_all;  // as eager does: no sum's terms are made anew
  bool of_pieces;   // what blocks' pieces are cut in, for threads
  std::set<NodeId> rounded = find_rounded(graph);
  std::map<NodeId, Split> splits = {};
  std::vector<NodeList> sources = list_sources();

  void run() {
    std::map<std::string, NodeList> alike;  // reductions by operand shape
    for (int n = 0; n < graph.size(); ++n) {
      const Node& node = graph.nodes[n];
      if (family(node) != Family::kReduce) continue;
      const TensorType& type = graph[node.inputs[0]].type;
      if (hint_elements(graph, node.inputs[0]) < kSmallReduction) continue;
      alike[to_string(contiguous_type(DType::kF32, type.shape))].push_back(NodeId(n));
    }
    for (const auto& [shape, reductions] : alike)
      for (const NodeList& group : find_groups(reductions))
        if (!of_pieces || has_pieces(group)) choose(group);
  }

  // Whether results are reduced again.
  bool has_pieces(const NodeList& group) const {
    return std::ranges::any_of(graph.nodes, [&](const Node& node) {
      return family(node) == Family::kReduce && std::ranges::count(group, node.inputs[0]) > 0;
    });
  }

  // Elements of a piece that a block holds beside another block.
  int64_t most_held() const { return device.registers_per_multiprocessor * 5 / 8; }

  int64_t hint(const Dim& dim) const { return std::max<int64_t>(0, graph.symbols.hint(dim)); }

  // By value: the materialised values that it is made of, ascending.
  std::vector<NodeList> list_sources() const {
    std::vector<NodeList> found(graph.size());
    for (int n = 0; n < graph.size(); ++n)
      if (is_materialised(graph.nodes[n]))
        found[n] = {NodeId(n)};
      else
        for (NodeId input : read_operands(graph.nodes[n]))
          if (found[input.index()] != found[n]) found[n] = unite(found[n], found[input.index()]);
    return found;
  }

  // What a reduction's operand is made of and is at least half as large.
  NodeList find_sources(NodeId reduction) const {
    const NodeId operand = graph[reduction].inputs[0];
    NodeList found = sources[operand.index()];
    const int64_t least = hint_elements(graph, operand) / 2;
    std::erase_if(found, [&](NodeId id) { return hint_elements(graph, id) < least; });
    return found;
  }

  // Reductions that share a source can share one pass over it.
  std::vector<NodeList> find_groups(const NodeList& reductions) const {
    std::vector<NodeList> groups;
    std::map<NodeId, size_t> first_with;  // the first group with a source
    for (NodeId reduction : reductions) {
      const NodeList own = find_sources(reduction);
      size_t at = groups.size();
      for (NodeId source : own)
        if (auto with = first_with.find(source); with != first_with.end())
          at = std::min(at, with->second);
      if (at == groups.size()) groups.emplace_back();
      groups[at].push_back(reduction);
      for (NodeId source : own) {
        size_t& first = first_with.try_emplace(source, at).first->second;
        first = std::min(first, at);
      }
    }
    return groups;
  }

  void choose(const NodeList& group) {
    const DimList& shape = graph[graph[group[0]].inputs[0]].type.shape;
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
    if (of_pieces || has_enough(blocks, group[0]))
      return choose_for_second_looks(group, reduced, blocks, inside);
    int64_t pieces = most_blocks / blocks;
    if (!device.is_cuda) pieces = std::max(pieces, inside / kHostPiece);
    pieces = std::min(pieces, inside / kLeastPiece);
    if (pieces < 2) return;
    Pieces cut = choose_dim(group, reduced, pieces);
    if (cut.dim < 0) return;
    const Dim extent = extent_of(shape, cut);
    const int64_t most = std::min(pieces, hint(extent));
    cut.count = nearest_divisor(extent, most);
    if (device.is_cuda) cut.count = weigh_pieces(group, extent, blocks, cut, most);
    const int64_t piece = inside / cut.count;
    bool divides = is_divisible(extent, cut.count);
    // Of an extent known when run a number of elements may be known to divide it.
    const auto length = static_cast<int64_t>(std::bit_floor(uint64_t(hint(extent) / cut.count)));
    for (int64_t rows : {2 * length, length})
      if (device.is_cuda && !divides && !extent.is_constant() && is_divisible(extent, rows)) {
        cut.count = 0;
        cut.length = rows;
        divides = true;
      }
    // A second look at what no two blocks of a multiprocessor hold is taken of smaller pieces, else
    // by all blocks at once after the first one.  Columns that are not written out are not held.
    const bool are_rows = reduced.count(rank - 1) > 0;
    const std::vector<bool> depends = find_dependents(group);
    const bool is_held = !device.is_cuda || piece <= most_held() ||
                         !(are_rows || is_written_out(graph[group[0]].inputs[0], depends));
    if (!is_held && are_rows) choose_for_second_looks(group, reduced, blocks, inside);
    for (NodeId id : group)
      if (!splits.count(id) && can_be_split(id, cut.dim))
        splits[id] = {cut, is_held ? find_terms(id, depends, divides) : std::nullopt};
  }

  bool can_be_split(NodeId id, int64_t dim) const {
    return !is_arg_reduction(graph[id]) && std::ranges::count(graph[id].ints, dim) > 0;
  }

  // By node: a result of these reductions, or made of one.
  std::vector<bool> find_dependents(const NodeList& reductions) const {
    std::vector<bool> depends = mark_nodes(graph, reductions);
    for (int n = reductions.front().index(); n < graph.size(); ++n)
      for (NodeId input : read_operands(graph.nodes[n]))
        if (depends[input.index()]) depends[n] = true;
    return depends;
  }

  // Of a sum that waits for another reduction of its group, and need not.  What pieces are padded
  // with has no difference from a maximum, which a factor of the terms would be.
  std::optional<Exponentials> find_terms(NodeId id, const std::vector<bool>& depends,
                                         bool divides) const {
    if (rounds_all) return std::nullopt;
    const std::optional<Exponentials> terms = find_exponentials(graph, graph[id], rounded);
    const bool helps = terms && !depends[terms->x.index()] && waits_for(*terms, depends);
    return helps && (divides || !terms->factor) ? terms : std::nullopt;
  }

  // Whether a value of the operand's size is made of the results, and stored.
  bool is_written_out(NodeId operand, const std::vector<bool>& depends) const {
    const auto is_so = [&](NodeId id) {
      return depends[id.index()] && 2 * hint_elements(graph, id) >= hint_elements(graph, operand);
    };
    const auto takes_one = [&](const Node& node) {
      return family(node) == Family::kLibrary && std::ranges::any_of(node.inputs, is_so);
    };
    return std::ranges::any_of(find_kept(graph), is_so) ||
           std::ranges::any_of(graph.nodes, takes_one);
  }

  // The piece that one thread holds, of reduced dimensions that lie side by side: the last ones.
  Pieces find_thread_piece(NodeId operand, const std::set<int64_t>& reduced, int64_t inside,
                           int bytes) const {
    Pieces cut{.dim = *reduced.rbegin(), .length = kThreadRows};
    while (reduced.count(cut.dim - cut.joined - 1)) ++cut.joined;
    const DimList& shape = graph[operand].type.shape;
    if (cut.dim + 1 < std::ssize(shape)) {
      for (int64_t rows = kMostThreadRows; rows >= kThreadRows; --rows)
        if (is_divisible(shape[cut.dim], kLeastLanes * rows)) cut.length = rows;
      return cut;
    }
    cut.length = kVectors;
    cut.lanes = kLanes;
    cut.vector = std::max<int64_t>(1, kVectorBytes / bytes);
    while (cut.lanes < kMostLanes && inside > kMostOfThread * cut.elements()) cut.lanes *= 2;
    return cut;
  }

  // Whether threads share it without padding, which what is written out would not have.
  static bool divide_among_lanes(Pieces& cut, const Dim& extent, int64_t inside) {
    if (cut.lanes == 1) return is_divisible(extent, kLeastLanes * cut.length);
    cut.lanes = std::min(kMostLanes, inside / (kLeastOfThread * cut.length * cut.vector));
    while (cut.lanes >= kLeastLanes && !is_divisible(extent, cut.elements())) --cut.lanes;
    return cut.lanes >= kLeastLanes;
  }

  // Registers hold what a second look is taken at: all of a multiprocessor's, where it is then
  // written out, which is all that a pass over memory is for; else a quarter, so that one block
  // reads while others compute.  Of longer rows a thread looks again at what it holds of them, and
  // where that makes too many results or dimensions lie apart, a block.  [4096, 49152] f32, maximum
  // and sum of exponentials: 302 us in one piece, 199 in pieces of 16 (H200, by the clock).
  //
  // Each thread looks for exponentials at its part of what a block holds, or of a block's piece, as
  // it arrives: softmax of [524, 32000] f32 takes 35 us so, 39 where the block waits for the
  // maximum, of [12, 1048576] 29 and 33.  Copies in f32 of 16 bits take the registers that would
  // hold them.
  void choose_for_second_looks(const NodeList& group, const std::set<int64_t>& reduced,
                               int64_t blocks, int64_t inside) {
    const int64_t registers = device.registers_per_multiprocessor;
    const bool is_long = of_pieces ? inside >= registers / 4 : inside > registers / 4;
    if (!device.is_cuda || !is_long) return;
    const NodeId operand = graph[group[0]].inputs[0];
    const std::vector<bool> depends = find_dependents(group);
    const NodeList own = find_sources(group[0]);
    const int bytes = element_bytes(graph, own.empty() ? operand : own[0]);
    const bool is_held =
        inside <= registers * std::max(1, 4 / bytes) && is_written_out(operand, depends);
    if (is_held && (bytes < 4 || (of_pieces && inside > most_held()))) return;
    if ((is_held || of_pieces) && busy_share(blocks) < kLeastBusy) return;
    const DimList& shape = graph[operand].type.shape;
    Pieces cut = find_thread_piece(operand, reduced, inside, bytes);
    Dim extent = extent_of(shape, cut);
    const bool lie_apart = cut.joined + 1 < std::ssize(reduced);
    if (is_held && (lie_apart || !divide_among_lanes(cut, extent, inside))) return;
    const bool has_factor = std::ranges::any_of(group, [&](NodeId id) {
      const std::optional<Exponentials> terms = find_terms(id, depends, true);
      return terms && terms->factor;
    });
    const int64_t most = has_factor ? kMostPieces / 2 : kMostPieces;
    if (lie_apart || (cut.lanes > 1 && inside / (cut.length * cut.vector) > most)) {
      const int64_t piece = registers / (lie_apart ? 16 : 4);
      const int64_t pieces = std::max<int64_t>(2, inside / piece);
      cut = choose_dim(group, reduced, pieces);
      extent = extent_of(shape, cut);
      cut.count = nearest_divisor(extent, std::min(pieces, hint(extent)));
    }
    const int64_t divisor = std::max(cut.count, cut.elements());
    if (inside < 2 * divisor) return;
    const bool divides = is_divisible(extent, divisor);
    const auto looks_again = [&](NodeId id) {
      if (graph[id].op != OpKind::k_sum_sq_dev) return find_terms(id, depends, divides).has_value();
      return !is_held && !of_pieces && (cut.lanes * cut.vector == 1 || divides);
    };
    const auto has_all = [&](NodeId id) { return std::ranges::includes(graph[id].ints, reduced); };
    if (std::ranges::none_of(group, [&](NodeId id) { return has_all(id) && looks_again(id); }))
      return;
    for (NodeId id : group)
      if (has_all(id) && !is_arg_reduction(graph[id]) &&
          (looks_again(id) || !depends[graph[id].inputs[0].index()]))
        splits[id] = {cut, find_terms(id, depends, divides)};
  }

  // Of the multiprocessors' time: the one with the most blocks is the last to end.
  double busy_share(int64_t blocks) const {
    return static_cast<double>(blocks) /
           static_cast<double>(round_up(blocks, device.multiprocessors));
  }

  // Bytes of one piece's partial results, written and read again.
  double partial_bytes(const NodeList& group, int64_t dim) const {
    double bytes = 0;
    for (NodeId id : group) {
      if (!can_be_split(id, dim)) continue;
      const int width = std::max(4, element_bytes(graph, id));
      bytes += 2.0 * width * static_cast<double>(hint_elements(graph, id));
    }
    return bytes;
  }

  double source_bytes(const NodeList& group) const {
    NodeList all;
    for (NodeId id : group) all = unite(all, find_sources(id));
    double bytes = 0;
    for (NodeId id : all) bytes += static_cast<double>(hint_bytes(graph, id));
    return bytes;
  }

  // Two blocks a multiprocessor hide more latency; one is better where the partial results of the
  // others cost more than what stays idle.  An odd extent, of which no vectors are loaded, is
  // cut in `most` where a divisor leaves more idle: 141 of 2^32 + 5 take twice the time of 264.
  int64_t weigh_pieces(const NodeList& group, const Dim& extent, int64_t blocks, const Pieces& cut,
                       int64_t most) const {
    constexpr double kWorthwhileGain = 0.1;
    const double each = partial_bytes(group, cut.dim), once = source_bytes(group);
    auto cost = [&](int64_t pieces) {
      return (once + each * static_cast<double>(pieces)) / busy_share(pieces * blocks);
    };
    const auto gains = [&](int64_t other, int64_t pieces) {
      return cost(other) < (1 - kWorthwhileGain) * cost(pieces);
    };
    int64_t pieces = cut.count;
    if (!is_divisible(extent, 2) && gains(most, pieces)) pieces = most;
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
    return bytes / device.dram_bytes_per_us * (1 / busy_share(blocks) - 1) <= device.barrier_us;
  }

  static Dim extent_of(const DimList& shape, const Pieces& cut) {
    Dim extent = shape[cut.dim];
    for (int64_t i = 1; i <= cut.joined; ++i) extent = extent * shape[cut.dim - i];
    return extent;
  }

  // Whether what reduces dimension d reduces the one before it too.
  bool joins_before(const NodeList& group, int64_t d) const {
    return std::ranges::all_of(group, [&](NodeId id) {
      const std::vector<int64_t>& axes = graph[id].ints;
      return !std::ranges::count(axes, d) || std::ranges::count(axes, d - 1) > 0;
    });
  }

  // The outermost reduced dimension that is long enough, with those right before it: pieces stay
  // contiguous.  Else the longest; none where none has more than one element.  [32, 128, 768], sums
  // of rows and of columns: 128 and 32 as one.
  Pieces choose_dim(const NodeList& group, const std::set<int64_t>& reduced, int64_t pieces) const {
    const DimList& shape = graph[graph[group[0]].inputs[0]].type.shape;
    Pieces longest;
    for (int64_t d : reduced) {
      Pieces cut{.dim = d};
      while (hint(extent_of(shape, cut)) < pieces && reduced.count(d - cut.joined - 1) &&
             joins_before(group, d - cut.joined))
        ++cut.joined;
      if (hint(extent_of(shape, cut)) >= pieces) return cut;
      const bool is_longer = longest.dim < 0 || hint(shape[d]) > hint(shape[longest.dim]);
      if (hint(shape[d]) > 1 && is_longer) longest = {.dim = d};
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

}  // namespace

Graph split_reductions(const Graph& graph, const DeviceSpec& device, int worker_threads,
                       bool emulate_eager_casts) {
  const auto split = [&](const Graph& whole, bool of_pieces) {
    SplitFinder finder{whole, device, worker_threads, emulate_eager_casts, of_pieces};
    finder.run();
    if (finder.splits.empty()) return whole;
    return rebuild_graph(whole, [&](Builder& b, const RewriteSite& site) -> NodeId {
      const auto at = finder.splits.find(site.id);
      if (at == finder.splits.end()) return {};
      return reduce_pieces(b, site, at->second.pieces, at->second.terms);
    });
  };
  Graph cut = split(graph, false);
  return device.is_cuda ? split(cut, true) : cut;
}

}  // namespace stitch
