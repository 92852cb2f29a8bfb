#include "rewrite/attention/attention.h"

#include <cmath>

#include "rewrite/constants.h"

namespace stitch {
namespace {

// Beside it scores up to 2^-25 of it get lost: adding it gives the same as filling it in.
constexpr double kDrownsScores = 1e30;

struct Match {
  const Graph* graph;
  Attention found;
  NodeList inside;                // what depends on the scores, from them to the result
  std::optional<DimList> masked;  // the batch dimensions that masks broadcast over

  const Node& operator[](NodeId id) const { return (*graph)[id]; }
  const Node& enter(NodeId id) { return (*graph)[inside.emplace_back(id)]; }
};

// The first reason counts.
void refuse(Match& match, int rule, std::string why = "") {
  if (match.found.verdict) match.found.verdict = Verdict::no(rule, std::move(why));
}

bool is_batched_product(const Node& node) {
  return node.op == OpKind::k_library && node.name == "aten.bmm.default" &&
         node.inputs.size() == 2 && node.type.rank() == 3;
}

DimList batch_of(const TensorType& type) { return {type.shape.begin(), type.shape.end() - 2}; }

bool regroups_batch(const Graph& graph, const Node& node) {
  if (node.op != OpKind::k_reshape) return false;
  const DimList &from = graph[node.inputs[0]].type.shape, &to = node.type.shape;
  return from.size() >= 2 && to.size() >= 2 && std::equal(from.end() - 2, from.end(), to.end() - 2);
}

bool swaps_last_two(const Node& node) {
  if (node.op != OpKind::k_permute || node.ints.size() < 2) return false;
  std::vector<int64_t> order = node.ints;
  std::swap(order.back(), order[order.size() - 2]);
  return std::ranges::is_sorted(order);
}

// A product's operand behind views of its batch dimensions; swaps of the others turn `flipped`.
NodeId find_operand(const Graph& graph, NodeId id, bool* flipped = nullptr) {
  for (;;) {
    const Node& node = graph[id];
    const bool swaps = flipped && swaps_last_two(node);
    if (!swaps && !regroups_batch(graph, node)) return id;
    if (swaps) *flipped = !*flipped;
    id = node.inputs[0];
  }
}

std::optional<double> number_of(const Match& match, NodeId id) {
  const auto constant = constant_of(*match.graph, id);
  if (!constant || !info(constant->dtype).is_float) return std::nullopt;
  return constant->number;
}

bool is_attention_dtype(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

// Through rounding and regrouping: what the library's call does without.
NodeId skip_casts(Match& match, NodeId id) {
  while ((match[id].op == OpKind::k_cast && is_attention_dtype(match[id].type.dtype)) ||
         regroups_batch(*match.graph, match[id]))
    id = match.enter(id).inputs[0];
  return id;
}

// Is `id` op(operand) over the last dimension, kept with extent 1?
bool reduces_rows(Match& match, NodeId id, OpKind op, NodeId operand) {
  DimList kept = match[operand].type.shape;
  if (kept.empty()) return false;
  kept.back() = 1;
  for (OpKind view : {OpKind::k_expand, OpKind::k_reshape}) {
    if (match[id].op != view) continue;
    if (view == OpKind::k_reshape && match[id].type.shape != kept) return false;
    id = match.enter(id).inputs[0];
  }
  const Node& node = match.enter(id);
  return node.op == op && node.inputs[0] == operand &&
         node.ints == std::vector<int64_t>{std::ssize(kept) - 1};
}

// The operand of the softmax that makes `id`: exp(x - amax(x)) / sum(exp(x - amax(x))).
NodeId find_softmax_operand(Match& match, NodeId id) {
  const Node& quotient = match.enter(skip_casts(match, id));
  if (quotient.op != OpKind::k_div) return {};
  const NodeId power = quotient.inputs[0];
  const Node& exp = match.enter(power);
  if (exp.op != OpKind::k_exp) return {};
  if (!reduces_rows(match, quotient.inputs[1], OpKind::k_sum, power)) return {};
  const Node& shifted = match.enter(exp.inputs[0]);
  if (shifted.op != OpKind::k_sub) return {};
  const NodeId x = shifted.inputs[0];
  return reduces_rows(match, shifted.inputs[1], OpKind::k_amax, x) ? x : NodeId();
}

// A mask without the views and casts that make it fit.
NodeId strip_mask(const Match& match, NodeId id) {
  const auto widens = [&](const Node& cast) {
    const DTypeInfo &from = info(match[cast.inputs[0]].type.dtype), &to = info(cast.type.dtype);
    return from.is_float && to.is_float && from.bytes < to.bytes;
  };
  while (match[id].op == OpKind::k_expand || (match[id].op == OpKind::k_cast && widens(match[id])))
    id = match[id].inputs[0];
  return id;
}

void add_mask(Match& match, const Node& step, MaskTerm term) {
  if (match.found.scale != 1) refuse(match, kRuleScaleAfterMask);
  if (match.masked && *match.masked != batch_of(step.type))
    refuse(match, kRuleNoLibraryForm, "two masks group the batch differently");
  match.masked = batch_of(step.type);
  match.found.masked_rank = step.type.rank();
  term.value = strip_mask(match, term.value);
  match.found.mask.insert(match.found.mask.begin(), term);
}

bool follow(Match& match, NodeId id);

// The scores are the operand of a sum that leads to a product, or the first of a difference.
bool follow_sum(Match& match, const Node& sum) {
  const bool adds = sum.op == OpKind::k_add;
  for (size_t side = 0; side < (adds ? 2 : 1); ++side) {
    if (match[sum.inputs[side]].type.shape != sum.type.shape) continue;
    Match branch = match;
    const auto kind = adds ? MaskTerm::Kind::kAdd : MaskTerm::Kind::kSubtract;
    add_mask(branch, sum, {kind, sum.inputs[1 - side]});
    if (!follow(branch, sum.inputs[side])) continue;
    match = std::move(branch);
    return true;
  }
  return false;
}

bool follow_select(Match& match, const Node& select) {
  for (size_t side : {1, 2}) {
    const auto fill = number_of(match, select.inputs[side]);
    const NodeId scores = select.inputs[3 - side];
    if (!fill || match[scores].type.shape != select.type.shape) continue;
    if (!(*fill <= -kDrownsScores))
      refuse(match, kRuleFiniteFill,
             "a row whose scores are all filled with " + std::to_string(*fill) +
                 " has even probabilities, which the library's call does not give it");
    const auto kind = side == 1 ? MaskTerm::Kind::kFillWhere : MaskTerm::Kind::kFillUnless;
    add_mask(match, select, {kind, select.inputs[0], *fill});
    return follow(match, scores);
  }
  return false;
}

// By a number, which may be either factor, and only the divisor.
bool follow_scaled(Match& match, const Node& node) {
  const bool divides = node.op == OpKind::k_div;
  for (size_t side = 0; side < (divides ? 1 : 2); ++side) {
    const auto number = number_of(match, node.inputs[1 - side]);
    if (!number || match[node.inputs[side]].type.shape != node.type.shape) continue;
    match.found.scale = divides ? match.found.scale / *number : match.found.scale * *number;
    return follow(match, node.inputs[side]);
  }
  return false;
}

constexpr OpRow<bool (*)(Match& match, const Node& node)> kSteps[] = {
    {OpKind::k_add, follow_sum},       {OpKind::k_sub, follow_sum},
    {OpKind::k_mul, follow_scaled},    {OpKind::k_div, follow_scaled},
    {OpKind::k_select, follow_select},
};

// From the softmax back to the product whose scores it is of.
bool follow(Match& match, NodeId id) {
  id = skip_casts(match, id);
  const Node& node = match.enter(id);
  if (is_batched_product(node)) {
    match.found.scores = id;
    return true;
  }
  const auto follow_step = find_function(kSteps, node.op);
  return follow_step && follow_step(match, node);
}

void check_types(Match& match) {
  const Attention& found = match.found;
  const Node &query = match[found.query], &key = match[found.key], &value = match[found.value];
  const DType dtype = query.type.dtype;
  if (!is_attention_dtype(dtype))
    refuse(match, kRuleNoLibraryForm, "the library has no attention of this dtype");
  if (key.type.dtype != dtype || value.type.dtype != dtype)
    refuse(match, kRuleNoLibraryForm, "query, key and value have several dtypes");
  if (query.type.shape.back() != value.type.shape.back())
    refuse(match, kRuleNoLibraryForm, "keys and values have different widths");
  if (!(found.scale > 0) || !std::isfinite(found.scale))
    refuse(match, kRuleNoLibraryForm, "the scale is not a positive number");
  for (const NodeId id : {found.query, found.key, found.value})
    for (const Dim& extent : match[id].type.shape)
      if (extent.is(0)) refuse(match, kRuleNoLibraryForm, "an operand has no elements");
  for (const MaskTerm& term : found.mask) {
    const double stored = stored_as(dtype, {term.fill, term.fill}).low;
    const bool is_lost = std::isfinite(term.fill) && !std::isfinite(stored);
    if (term.fills() ? is_lost : match[term.value].type.dtype != dtype && dtype != DType::kF32)
      refuse(match, kRuleWideMask);
  }
}

void check_uses(Match& match) {
  const Graph& graph = *match.graph;
  const std::vector<bool> is_inside = mark_nodes(graph, match.inside);
  const auto is_inner = [&](NodeId id) { return is_inside[id.index()]; };
  bool is_read = std::ranges::any_of(find_kept(graph), is_inner);
  for (int i = match.found.scores.index() + 1; i < graph.size(); ++i)
    if (!is_inside[i] && NodeId(i) != match.found.result)
      is_read |= std::ranges::any_of(graph.nodes[i]->inputs, is_inner);
  if (is_read) refuse(match, kRuleScoresRead);
  for (int i = match.found.scores.index() + 1; i < match.found.result.index(); ++i) {
    const Node& node = graph.nodes[i];
    if (may_write_operands(node))
      refuse(match, kRuleWriteBetween, node.name + " may write between the products");
  }
}

// Two dimensions: those that masks broadcast over, else the query's, else the products'.
void choose_batch(Match& match) {
  Attention& found = match.found;
  const DimList query = batch_of(match[found.query].type);
  found.batch = match.masked        ? *match.masked
                : query.size() <= 2 ? query
                                    : batch_of(match[found.result].type);
  if (found.batch.size() > 2)
    refuse(match, kRuleNoLibraryForm, "the mask has more than two batch dimensions");
  // Behind, not before: the result's rows are then contiguous.
  while (found.batch.size() < 2) found.batch.push_back(1);
}

std::optional<Attention> match_attention(const Graph& graph, NodeId result) {
  Match match{&graph, {}, {}, {}};
  match.found.result = result;
  const NodeId softmax = find_softmax_operand(match, graph[result].inputs[0]);
  if (!softmax.valid() || !follow(match, softmax)) return std::nullopt;
  Attention& found = match.found;
  bool is_upright = false;
  found.query = find_operand(graph, graph[found.scores].inputs[0]);
  found.key = find_operand(graph, graph[found.scores].inputs[1], &is_upright);
  found.key_is_flipped = !is_upright;
  found.value = find_operand(graph, graph[result].inputs[1]);
  choose_batch(match);
  check_types(match);
  check_uses(match);
  return found;
}

}  // namespace

std::vector<Attention> find_attention(const Graph& graph) {
  std::vector<Attention> all;
  for (int i = 0; i < graph.size(); ++i) {
    if (!is_batched_product(graph.nodes[i])) continue;
    if (auto found = match_attention(graph, NodeId(i))) all.push_back(std::move(*found));
  }
  return all;
}

}  // namespace stitch
