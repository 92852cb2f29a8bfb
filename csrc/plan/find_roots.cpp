#include "plan/find_roots.h"

#include "analysis/index_walk.h"
#include "plan/find_levels.h"

namespace stitch {
namespace {

// Values that one root evaluates before those that others evaluate too are worth storing.
constexpr size_t kMostCone = 64;
// Times that each element of a value is evaluated through slices and parts whatever that takes: a
// rotation does so thrice, and a scan written as a tree four times at each level.  Beyond them it
// is stored if it takes more operations; a host's lanes load one after another behind conditions.
constexpr int kMostWays = 64;
// Vector elements that share one expensive number: of more, its time is lost in theirs [A].
constexpr int64_t kMostSharing = 64;
// Elements whose values one thread computes: a uniform value that they share is computed once [A].
constexpr double kOfThread = 4;
constexpr double kFewEvaluations = 3, kMostEvaluations = 16, kMostOnGpu = 120, kMostOnHost = 40;

struct RootFinder {
  const Graph& graph;
  const Demands& demands;
  const DeviceSpec& device;
  bool on_gpu = device.is_cuda;
  std::vector<NodeList> users = find_users(graph);  // live ones
  std::vector<int> level = find_levels(graph);
  std::vector<bool> is_live = std::vector<bool>(graph.size(), false);
  std::vector<bool> is_root = std::vector<bool>(graph.size(), false);
  std::vector<std::set<int>> wanted = std::vector<std::set<int>>(graph.size());

  bool is_stitched(NodeId id) const { return !is_materialised(graph[id]); }
  bool is_stored(NodeId id) const { return !is_stitched(id) || is_root[id.index()]; }

  void mark_live() {
    for (int n = graph.size(); n-- > 0;) {
      const NodeId id(n);
      if (demands.is_demanded[n] || graph[id].op == OpKind::k_library) is_live[n] = true;
      if (!is_live[n]) continue;
      for (NodeId input : graph[id].inputs) is_live[input.index()] = true;
    }
    for (NodeList& readers : users)
      std::erase_if(readers, [&](NodeId user) { return !is_live[user.index()]; });
  }

  // Levels at which a value is evaluated: those of the roots and calls that its users, through
  // values that are evaluated where they are read, belong to.
  std::set<int> wanted_levels(NodeId id) const {
    std::set<int> levels;
    for (NodeId user : users[id.index()])
      if (is_stored(user))
        levels.insert(level[user.index()]);
      else
        levels.insert(wanted[user.index()].begin(), wanted[user.index()].end());
    return levels;
  }

  bool is_certain_root(NodeId id) const {
    const Node& node = graph[id];
    return demands.is_demanded[id.index()] || family(node) == Family::kReduce ||
           combines_segments(info(node));
  }

  // Bytes that evaluating the value again would read: of what is read through slices a part.
  int64_t cone_bytes(NodeId id) const {
    const auto is_stored = [&](NodeId at) { return !is_stitched(at) || is_certain_root(at); };
    const Cone cone = find_cone(graph, id, is_stored);
    std::map<NodeId, int64_t> elements;
    for (NodeId node : cone.nodes)
      for (NodeId input : graph[node].inputs) elements[input] += hint_elements(graph, node);
    int64_t total = 0;
    for (NodeId load : cone.loads)
      total += std::min(elements[load], hint_elements(graph, load)) * element_bytes(graph, load);
    return total;
  }

  // Users wait for different library calls: each would evaluate the value again.
  bool is_worth_storing(NodeId id) const {
    const Family kind = family(graph[id]);
    if (kind != Family::kPointwise && kind != Family::kReader) return false;
    return wanted[id.index()].size() > 1 && 8 * cone_bytes(id) > 9 * hint_bytes(graph, id);
  }

  bool is_costly(NodeId id, int depth = 0) const {
    if (!is_stitched(id) || (depth > 0 && is_certain_root(id)) || depth > 16) return false;
    if (info(graph[id]).cost >= CostClass::kSpecial) return true;
    const NodeList& inputs = graph[id].inputs;
    return std::ranges::any_of(inputs, [&](NodeId input) { return is_costly(input, depth + 1); });
  }

  // Segments read their source in any order, one element at a time: what others read too, or what
  // takes long to compute, is better made in one pass before.
  bool is_gathered(NodeId id) const {
    if (family(graph[id]) != Family::kPointwise) return false;
    const auto is_source_of = [&](auto& self, NodeId value, NodeId user) -> bool {
      if (combines_segments(info(graph[user]))) return graph[user].inputs[1] == value;
      const NodeList& readers = users[user.index()];
      return family(graph[user]) == Family::kView && !is_root[user.index()] &&
             std::ranges::any_of(readers, [&](NodeId reader) { return self(self, user, reader); });
    };
    const NodeList& readers = users[id.index()];
    const bool is_source = std::ranges::any_of(
        readers, [&](NodeId user) { return is_source_of(is_source_of, id, user); });
    if (is_scattered_alone(id)) return !on_gpu && is_costly(id);
    if (!is_source || (readers.size() == 1 && !is_costly(id))) return false;
    // On the host a segment is walked element by element, other loops by vectors.
    return !is_cheap_by_segment(id) || (!on_gpu && is_costly(id));
  }

  // Elements of the largest value that it is broadcast to, through views, or that it is an index
  // for: buckets of [64, 64] distances choose rows of 4 heads.
  int64_t count_broadcast(NodeId id) const {
    int64_t most = 0;
    for (NodeId user : users[id.index()]) {
      const Node& node = graph[user];
      const bool reads_rows = node.op == OpKind::k_index || node.op == OpKind::k_gather;
      const bool moves = family(node) == Family::kView || (reads_rows && node.inputs[0] != id);
      if (!moves && family(node) != Family::kPointwise) continue;
      most = std::max(most, hint_elements(graph, user));
      if (moves) most = std::max(most, count_broadcast(user));
    }
    return most;
  }

  // Along a short axis, which its readers' vectors fill, a value is computed element by element.
  bool is_broadcast(NodeId id, int64_t most_sharing) const {
    const int64_t own = std::max<int64_t>(1, hint_elements(graph, id)), most = count_broadcast(id);
    return most > own && most / own <= most_sharing;
  }

  // Does something read it again for each row?  Vectors of every row would compute it then.
  bool is_repeated_by_rows(NodeId id) const {
    const DimList& shape = graph[id].type.shape;
    return std::ranges::any_of(users[id.index()], [&](NodeId user) {
      const Node& node = graph[user];
      const bool is_longer = hint_elements(graph, user) > hint_elements(graph, id);
      if (shape.empty() || shape.back().is(1)) return false;
      if (is_longer && (family(node) == Family::kPointwise || node.op == OpKind::k_expand))
        return node.type.shape.back() == shape.back();
      return family(node) == Family::kView && is_repeated_by_rows(user);
    });
  }

  // AStitch's expensive value before a broadcast (A.6), on a host.
  bool is_broadcast_to_vectors(NodeId id) const {
    if (on_gpu || family(graph[id]) != Family::kPointwise || !is_costly(id)) return false;
    return is_broadcast(id, is_repeated_by_rows(id) ? INT64_MAX : kMostSharing);
  }

  // Microseconds for which the threads of a kernel compute a value that is the same for all of them
  // and waits for no reduction: a power of the step.
  double predict_uniform_us(NodeId id) const {
    if (hint_elements(graph, id) > 1 || count_broadcast(id) <= 1 || !is_costly(id)) return 0;
    const Cone cone = find_cone(graph, id, [&](NodeId at) { return is_stored(at); });
    if (reduces(graph, cone.loads)) return 0;
    double instructions = 0, elements = 0;
    for (NodeId node : cone.nodes) instructions += gpu_instructions(graph[node].op).exact;
    for (NodeId user : users[id.index()])
      elements += std::max<double>(hint_elements(graph, user), count_broadcast(user));
    return instructions * elements / kOfThread / (device.flops_per_us / 2);
  }

  // Stored where all threads take longer for all of them than it takes to meet at a barrier.
  void store_uniform_values() {
    NodeList found;
    double us = 0;
    for (int n = 0; n < graph.size(); ++n) {
      if (!is_live[n] || is_root[n] || family(graph.nodes[n]) != Family::kPointwise) continue;
      const double own_us = predict_uniform_us(NodeId(n));
      if (own_us > 0) found.push_back(NodeId(n));
      us += own_us;
    }
    if (us > device.barrier_us)
      for (NodeId id : found) is_root[id.index()] = true;
  }

  // A host's loop that loads bytes has as many lanes as a register has bytes: rows of 64 scores
  // take three times as long.  A mask is better stored as what is added to them.
  void widen_bytes() {
    const auto is_byte = [&](NodeId id) { return element_bytes(graph, id) == 1; };
    std::vector<bool> reads_bytes(graph.size(), false);  // itself, or what it evaluates
    for (int n = 0; n < graph.size(); ++n) {
      const NodeId id(n);
      if (!is_live[n] || !is_stitched(id)) continue;
      reads_bytes[n] = std::ranges::any_of(graph[id].inputs, [&](NodeId input) {
        return is_stored(input) ? is_byte(input) : reads_bytes[input.index()];
      });
      const bool is_wide = family(graph[id]) == Family::kPointwise && !is_byte(id);
      if (is_wide && reads_bytes[n] && !is_root[n]) is_root[n] = is_broadcast(id, INT64_MAX);
    }
  }

  // A scatter of single elements combines one after another: no vectors compute what it combines.
  bool is_scattered_alone(NodeId id) const {
    const auto takes_alone = [&](NodeId user) {
      const Node& node = graph[user];
      if (combines_at_indices(info(node))) {
        const DimList& shape = graph[node.inputs[1]].type.shape;
        return node.inputs[1] == id && std::all_of(shape.begin() + node.ints[0] + 1, shape.end(),
                                                   [](const Dim& size) { return size.is(1); });
      }
      const bool moves = family(node) == Family::kView || node.op == OpKind::k_pad;
      return moves && !is_root[user.index()] && is_scattered_alone(user);
    };
    return std::ranges::any_of(users[id.index()], takes_alone);
  }

  // Does evaluating it at a segment's positions read one element at each, and otherwise what
  // belongs to the segment's row?  Storing it would move more.
  bool is_cheap_by_segment(NodeId id) const {
    std::set<NodeId> sorting_indices;
    for (NodeId user : users[id.index()]) {
      const Node& node = graph[user];
      if (combines_segments(info(node)) && node.inputs[1] == id)
        sorting_indices.insert(find_sorting_index(graph, node));
    }
    if (sorting_indices.size() != 1 || !sorting_indices.begin()->valid()) return false;
    const NodeId row = *sorting_indices.begin();
    std::set<NodeId> visited;
    int read_by_position = 0, read_by_row = 0;
    const auto visit = [&](auto& self, NodeId at) -> bool {
      if (!visited.insert(at).second) return true;
      const Node& node = graph[at];
      if (node.op == OpKind::k_full) return true;
      if (node.op == OpKind::k_index && node.inputs.size() == 2) {
        ++read_by_row;
        return skip_reshapes(graph, node.inputs[1]) == row;
      }
      if (!is_stitched(at) || is_certain_root(at)) return ++read_by_position <= 1;
      if (family(node) != Family::kPointwise && node.op != OpKind::k_expand) return false;
      return std::ranges::all_of(node.inputs, [&](NodeId input) { return self(self, input); });
    };
    return visit(visit, id) && read_by_row > 0;
  }

  // Values that several roots evaluate, through values that are no roots.
  std::vector<bool> find_shared() const {
    NodeList reading(graph.size());  // the root, where it is one
    std::vector<bool> is_shared(graph.size(), false);
    for (int n = graph.size(); n-- > 0;) {
      for (NodeId user : users[n]) {
        const NodeId root = is_stored(user) ? user : reading[user.index()];
        if (!is_stored(user) && is_shared[user.index()]) is_shared[n] = true;
        if (reading[n].valid() && root.valid() && reading[n] != root) is_shared[n] = true;
        if (root.valid()) reading[n] = root;
      }
    }
    return is_shared;
  }

  // Does evaluating this value evaluate more than kMostCone?
  bool has_long_cone(NodeId id) const {
    std::set<NodeId> visited = {id};
    NodeList cone = {id};
    for (size_t i = 0; i < cone.size() && cone.size() <= kMostCone; ++i)
      for (NodeId input : graph[cone[i]].inputs)
        if (!is_stored(input) && visited.insert(input).second) cone.push_back(input);
    return cone.size() > kMostCone;
  }

  // Chains in which each reduction reads what the one before made would evaluate, and plan, each
  // value again for every later reduction.
  void cut_long_cones() {
    const std::vector<bool> is_shared = find_shared();
    for (int n = 0; n < graph.size(); ++n) {
      if (!is_live[n] || is_root[n] || !is_shared[n]) continue;
      if (family(graph.nodes[n]) == Family::kPointwise) is_root[n] = has_long_cone(NodeId(n));
    }
  }

  bool is_slower_again(NodeId id, double times) const {
    const Cone cone = find_cone(graph, id, [&](NodeId at) { return is_stored(at); });
    const auto computes = [&](NodeId at) { return info(graph[at]).cost != CostClass::kFree; };
    const auto operations = std::ranges::count_if(cone.nodes, computes);
    const double again = (times - 1) * static_cast<double>(operations + cone.loads.size());
    return operations > 0 &&
           (times > kMostEvaluations || again > (on_gpu ? kMostOnGpu : kMostOnHost));
  }

  // Ways through slices, parts and gathered elements each evaluate a value again, and in a scan
  // written as a tree they cross.  Users that read it alike do it once.
  void cut_repeated_cones() {
    std::vector<double> alike(graph.size()), moved(graph.size());
    std::vector<int> ways(graph.size());  // each is text of its own
    for (int n = graph.size(); n-- > 0;) {
      const Node& node = graph.nodes[n];
      if (!is_live[n] || !is_stitched(NodeId(n))) continue;
      const bool reads = family(node) == Family::kReader;
      double times = alike[n] + moved[n];
      const bool is_often = times > kFewEvaluations || ways[n] > kMostWays;
      if (!is_root[n] && is_often && (reads || family(node) == Family::kPointwise))
        is_root[n] = ways[n] > kMostWays || is_slower_again(NodeId(n), times);
      if (is_root[n]) times = ways[n] = 1;
      const bool is_cat = node.op == OpKind::k_cat, is_sum = family(node) == Family::kReduce;
      const bool is_part = is_cat || node.op == OpKind::k_slice_scatter;
      const bool states = is_cat && holds_states(graph, node);  // read alike: each reads the last
      const bool repeats =
          is_cat ? !states && !equal_part(graph, node).is(0) : node.op == OpKind::k_index;
      for (size_t at = 0; at < node.inputs.size(); ++at) {
        const int from = node.inputs[at].index();
        const auto own = static_cast<double>(hint_elements(graph, NodeId(n)));
        double share = is_sum ? 1 : own / std::max(1.0, double(hint_elements(graph, NodeId(from))));
        if (!repeats) share = std::min(1.0, share);
        const bool moves = (reads && !states && (at == 0 || is_part)) ||
                           node.op == OpKind::k_slice || node.op == OpKind::k_flip;
        if (moves)
          moved[from] += times * share;
        else
          alike[from] = std::max(alike[from], times * share);
        ways[from] = moves ? ways[from] + ways[n] : std::max(ways[from], ways[n]);
      }
    }
  }

  void run(bool every_op) {
    mark_live();
    for (int n = graph.size(); n-- > 0;) {
      const NodeId id(n);
      if (!is_live[n] || !is_stitched(id)) continue;
      const Family kind = family(graph[id]);
      const bool computes = kind == Family::kPointwise || kind == Family::kReader;
      wanted[n] = wanted_levels(id);
      is_root[n] = is_certain_root(id) || (every_op && computes) || is_worth_storing(id) ||
                   is_gathered(id) || is_broadcast_to_vectors(id);
    }
    on_gpu ? store_uniform_values() : widen_bytes();
    cut_long_cones();
    cut_repeated_cones();
  }
};

}  // namespace

NodeList find_roots(const Graph& graph, const Demands& demands, bool every_op,
                    const DeviceSpec& device) {
  RootFinder finder{graph, demands, device};
  finder.run(every_op);
  NodeList roots;
  for (int n = 0; n < graph.size(); ++n)
    if (finder.is_root[n]) roots.push_back(NodeId(n));
  return roots;
}

NodeList add_expensive(const Graph& graph, const NodeList& roots) {
  std::vector<bool> is_evaluated = mark_nodes(graph, roots);
  NodeList all = roots;
  for (int n = graph.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    if (!is_evaluated[n] || is_materialised(node)) continue;
    for (NodeId input : read_operands(node)) is_evaluated[input.index()] = true;
    if (is_expensive(node) && !contains(roots, NodeId(n))) all.push_back(NodeId(n));
  }
  std::ranges::sort(all);
  return all;
}

NodeList add_gathered(const Graph& graph, const NodeList& roots) {
  const auto is_stored = [&](NodeId id) {
    return is_materialised(graph[id]) || contains(roots, id);
  };
  const auto chooses = [&](NodeId id) {
    return family(graph[id]) == Family::kReader &&
           hint_elements(graph, graph[id].inputs[0]) > hint_elements(graph, id);
  };
  NodeList all = roots;
  for (NodeId root : roots) {
    if (family(graph[root]) != Family::kReduce || hint_elements(graph, root) > 1) continue;
    const NodeId summed = skip_reshapes(graph, graph[root].inputs[0]);
    if (!is_stored(summed) &&
        std::ranges::any_of(find_cone(graph, summed, is_stored).nodes, chooses))
      add_once(all, summed);
  }
  std::ranges::sort(all);
  return all;
}

NodeList drop_cheap(const Graph& graph, const Demands& demands, NodeList roots) {
  const std::vector<bool> is_constant = find_constants(graph);
  std::vector<std::set<NodeId>> sources(graph.size());  // by node: what readers of it would load
  std::erase_if(roots, [&](NodeId id) {
    const Node& node = graph[id];
    const bool is_cheap =
        family(node) == Family::kPointwise && info(node).cost <= CostClass::kSpecial;
    if (!is_cheap || demands.is_demanded[id.index()]) return false;
    std::set<NodeId> own;
    for (NodeId input : node.inputs) {
      own.insert(sources[input.index()].begin(), sources[input.index()].end());
      if (sources[input.index()].empty() && !is_constant[input.index()]) own.insert(input);
    }
    int64_t bytes = 0;
    for (NodeId source : own) bytes += hint_bytes(graph, source);
    if (8 * bytes > 9 * hint_bytes(graph, id)) return false;
    sources[id.index()] = std::move(own);
    return true;
  });
  return roots;
}

bool reduces(const Graph& graph, const NodeList& roots) {
  return std::ranges::any_of(roots,
                             [&](NodeId root) { return family(graph[root]) == Family::kReduce; });
}

}  // namespace stitch
