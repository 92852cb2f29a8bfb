#include "analysis/precision.h"

namespace stitch {
namespace {

using enum OpKind;

bool is_narrow(const Graph& graph, NodeId id) {
  const DTypeInfo& type = info(graph[id].type.dtype);
  return type.is_float && type.bytes == 2;
}

bool is_extreme(const Node& node) {
  return node.op == k_amax || node.op == k_amin || is_arg_reduction(node);
}

// Above or below a number, most values stay where they are.
bool compares_with_number(const Graph& graph, const Node& node) {
  const auto is_number = [&](NodeId id) { return graph[skip_views(graph, id)].op == k_full; };
  return is_number(node.inputs[0]) || is_number(node.inputs[1]);
}

// What `id` is, perhaps wider.
NodeId skip_widening(const Graph& graph, NodeId id) {
  id = skip_views(graph, id);
  const bool is_wider = graph[id].op == k_cast && !is_narrow(graph, id);
  return is_wider ? skip_views(graph, graph[id].inputs[0]) : id;
}

// A value less what was found of its rows, or of it in 16 bits by what computes in f32 (norms).
bool centers(const Graph& graph, const Node& node) {
  const NodeId a = skip_widening(graph, node.inputs[0]), b = skip_widening(graph, node.inputs[1]);
  if (!is_narrow(graph, a) || !is_narrow(graph, b) || compares_with_number(graph, node))
    return false;
  return info(node.type.dtype).bytes > 2 || hint_elements(graph, a) != hint_elements(graph, b);
}

// A sum divided, perhaps cast.
bool is_mean(const Graph& graph, NodeId id) {
  const Node& node = graph[skip_views(graph, id)];
  if (node.op == k_cast) return is_mean(graph, node.inputs[0]);
  return node.op == k_div && graph[skip_views(graph, node.inputs[0])].op == k_sum;
}

constexpr OpKind kOrdering[] = {k_lt, k_le, k_gt, k_ge};

bool depends_on_bits(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.op == k_sub) return centers(graph, node);
  if (node.op == k_cast)  // an extreme that is found in f32, as norms do it, and saved in 16 bits
    return is_narrow(graph, id) && is_extreme(graph[skip_views(graph, node.inputs[0])]);
  const bool orders = std::ranges::count(kOrdering, node.op) > 0;
  if (orders && compares_with_number(graph, node)) return false;
  const bool compares = orders || node.op == k_eq || node.op == k_ne;
  return (compares || is_extreme(node)) && is_narrow(graph, node.inputs[0]);
}

// The factors' relative errors are the result's.
constexpr OpKind kScaling[] = {k_cast, k_neg, k_abs, k_mul, k_div};
constexpr OpKind kDeciding[] = {k_lt,        k_le,        k_gt,        k_ge,     k_eq,
                                k_ne,        k_amax,      k_amin,      k_floor,  k_ceil,
                                k_trunc,     k_frac,      k_argmax,    k_argmin, k_sign,
                                k_div_floor, k_div_trunc, k_remainder, k_fmod};
// What may lie between it and a cast to integers: where numbers lie between two of those is chance.
constexpr OpKind kRounding[] = {k_round, k_maximum, k_minimum};

bool decides(const Graph& graph, const Node& node) {
  const bool truncates = node.op == k_cast && info(node.type.dtype).is_integer;
  if (!truncates) return std::ranges::count(kDeciding, node.op) > 0;
  return std::ranges::count(kRounding, graph[skip_views(graph, node.inputs[0])].op) == 0;
}

// exp(x - amax(x)).
bool is_below_one(const Graph& graph, const Node& node) {
  if (node.op != k_exp || graph[node.inputs[0]].op != k_sub) return false;
  const Node& difference = graph[node.inputs[0]];
  const Node& most = graph[skip_views(graph, difference.inputs[1])];
  return most.op == k_amax &&
         skip_views(graph, most.inputs[0]) == skip_views(graph, difference.inputs[0]);
}

constexpr GpuForms kForms[] = {{k_exp, true, true, "", "exp_vanishing"},
                               {k_sigmoid, true, true},
                               {k_tanh, true},
                               {k_erf, false, false, "erf_plus_one_short"},
                               {k_div, true}};

}  // namespace

std::set<NodeId> find_rounded(const Graph& graph) {
  std::vector<bool> leads(graph.size()), kept(graph.size());
  std::set<NodeId> rounded;
  for (const NodeId id : find_kept(graph)) kept[skip_views(graph, id).index()] = true;
  for (int i = graph.size() - 1; i >= 0; --i) {
    const Node& node = graph.nodes[i];
    if (family(node) == Family::kLibrary) continue;  // its operands are in memory
    if ((leads[i] || node.op == k_reciprocal) && is_narrow(graph, NodeId(i)))
      rounded.insert(NodeId(i));
    if (!leads[i] && !depends_on_bits(graph, NodeId(i)) && !(kept[i] && is_mean(graph, NodeId(i))))
      continue;
    for (const NodeId input : node.inputs) leads[input.index()] = true;
  }
  return rounded;
}

const GpuForms& gpu_forms(OpKind op) {
  static constexpr GpuForms none;
  const GpuForms* found = find_by(kForms, op, &GpuForms::op);
  return found ? *found : none;
}

Precision find_precision(const Graph& graph, const std::set<NodeId>& rounded) {
  std::vector<bool> divides(graph.size());
  Precision found{divides, divides, divides};
  const std::vector<bool> is_kept = mark_nodes(graph, find_kept(graph));
  const std::vector<NodeList> users = find_users(graph);
  for (int i = graph.size() - 1; i >= 0; --i) {
    const DTypeInfo& type = info(graph.nodes[i]->type.dtype);
    // Of positive terms a sum keeps the relative error.  What may have become zero divides nothing.
    const auto is_scaled = [&](NodeId user) {
      const OpKind op = graph[user].op;
      const bool adds = op == k_sum && graph.nodes[i]->op == k_exp;
      const bool scales = family(graph[user]) == Family::kView || std::ranges::count(kScaling, op);
      if (op == k_div && graph[user].inputs[1] == NodeId(i)) {
        const OpKind divisor = graph[skip_views(graph, NodeId(i))].op;
        if (divisor != k_sum && divisor != k_exp) return false;
      }
      return (scales || adds) && found.is_short[user.index()];
    };
    if (type.is_float && type.bytes <= 2)
      found.is_short[i] = !rounded.contains(NodeId(i));
    else if (type.is_float)
      found.is_short[i] =
          !is_kept[i] && !users[i].empty() && std::ranges::all_of(users[i], is_scaled);
    divides[i] = std::ranges::any_of(users[i], [&](NodeId user) {
      const Node& reader = graph[user];
      return (reader.op == k_div && reader.inputs[1] == NodeId(i)) ||
             (family(reader) == Family::kView && divides[user.index()]);
    });
    found.may_vanish[i] = !divides[i] && is_below_one(graph, graph.nodes[i]);
    found.is_decisive[i] = std::ranges::any_of(users[i], [&](NodeId user) {
      return decides(graph, graph[user]) ||
             (found.is_decisive[user.index()] && graph[user].op != k_round);
    });
  }
  return found;
}

}  // namespace stitch
