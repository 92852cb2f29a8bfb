#include "rewrite/attention/attention.h"

#include "rewrite/constants.h"
#include "rewrite/rebuild_graph.h"

namespace stitch {
namespace {

// From [batch, heads, rows, width] to [batch, rows, heads, width], and back.
const std::vector<int64_t> kExchangeHeads = {0, 2, 1, 3};

struct Calling {
  const Graph& graph;
  const bool on_gpu;
  const std::vector<ValueRange> ranges = find_ranges(graph);
  // Some call may: what it writes is rebuilt without asking this pass.
  const bool may_write = std::ranges::any_of(graph.nodes, writes_operands);
  const std::vector<NodeList> users = find_users(graph);
  const std::vector<bool> is_demanded = find_demanded(graph);   // by old node
  std::unordered_map<NodeId, const Attention*> attention = {};  // by result
  std::unordered_map<NodeId, NodeId> hidden = {};  // by product of the old graph: [rows, 1], bool
};

// The operand with the batch dimensions of the call.  The library's fast kernels want rows whose
// elements lie side by side.
NodeId make_operand(Builder& b, NodeId operand, const Attention& attention, bool is_flipped) {
  const DimList given = b[operand].type.shape;
  DimList shape = attention.batch;
  shape.insert(shape.end(), given.end() - 2, given.end());
  if (given != shape) operand = b.reshape(operand, shape);
  if (is_flipped) operand = b.permute(operand, {0, 1, 3, 2});
  const TensorType type = b[operand].type;
  return type.strides.back().is(1) ? operand
                                   : b.with_strides(operand, contiguous_strides(type.shape));
}

// What broadcasts over [batch.., rows, columns], with four dimensions.
NodeId align_mask(Builder& b, NodeId term, int rank, const Dim& columns) {
  DimList shape = b[term].type.shape;
  shape.insert(shape.begin(), rank - shape.size(), 1);
  shape.insert(shape.end() - 2, 4 - rank, 1);
  if (shape != b[term].type.shape) term = b.reshape(term, shape);
  shape.back() = columns;
  return expand_to(b, term, shape);
}

// All that hides scores, as one number to add to each.
NodeId make_mask(Builder& b, const Calling& calling, const Attention& attention,
                 const RewriteSite& site) {
  const TensorType& scores = calling.graph[attention.scores].type;
  const DType dtype = scores.dtype;
  NodeId mask;
  for (const MaskTerm& term : attention.mask) {
    const NodeId value =
        align_mask(b, site.made[term.value.index()], attention.masked_rank, scores.shape.back());
    const NodeId before = mask.valid() ? mask : b.full(dtype, 0, 0);
    const NodeId fill = b.full(dtype, term.fill, 0);
    if (term.fills()) {
      const bool is_where = term.kind == MaskTerm::Kind::kFillWhere;
      const NodeId then = is_where ? fill : before, otherwise = is_where ? before : fill;
      mask = b.pointwise(OpKind::k_select, {value, then, otherwise});
      continue;
    }
    const NodeId number = b.cast(value, dtype);
    if (term.kind == MaskTerm::Kind::kSubtract)
      mask = b.pointwise(OpKind::k_sub, {before, number});
    else
      mask = mask.valid() ? b.pointwise(OpKind::k_add, {mask, number}) : number;
  }
  return mask;
}

bool may_hide_rows(const Calling& calling, const Attention& attention) {
  const DType dtype = calling.graph[attention.scores].type.dtype;
  double low = 0;
  for (const MaskTerm& term : attention.mask) {
    const ValueRange range = calling.ranges[term.value.index()];
    const double added = term.kind == MaskTerm::Kind::kAdd ? range.low : -range.high;
    low = stored_as(dtype, {term.fills() ? std::min(low, term.fill) : low + added, kInfinity}).low;
  }
  return low == -kInfinity;
}

NodeId make_nan_where(Builder& b, NodeId condition, NodeId value) {
  const NodeId nan = b.full(b[value].type.dtype, std::numeric_limits<double>::quiet_NaN(), 0);
  return b.pointwise(OpKind::k_select, {condition, nan, value});
}

// The operand of a product whose rows make the rows of the result.
int operand_of_rows(const Node& call) {
  if (call.op != OpKind::k_library) return -1;
  return call.name == "aten.mm.default" ? 0 : call.name == "aten.addmm.default" ? 1 : -1;
}

// The product of [batch * rows, heads * width] that alone reads the attention's result.  A row of
// NaN makes a row of NaN there, whatever it is multiplied by.
NodeId find_product_of_rows(const Calling& calling, const Attention& attention) {
  const Graph& graph = calling.graph;
  const Dim &batch = attention.batch[0], &heads = attention.batch[1];
  const DimList result = graph[attention.result].type.shape;
  const Dim &rows = result[1], &width = result[2];
  const DimList by_head = {batch, heads, rows, width};
  bool is_by_row = heads.is(1);
  for (NodeId value = attention.result;;) {
    const NodeList& users = calling.users[value.index()];
    if (users.size() != 1 || calling.is_demanded[value.index()]) return {};
    const Node& user = graph[users[0]];
    const DimList& shape = graph[value].type.shape;
    if (const int at = operand_of_rows(user); at >= 0) {
      const bool fits = shape == DimList{batch * rows, heads * width};
      return is_by_row && fits && user.inputs[at] == value ? users[0] : NodeId();
    }
    if (user.op == OpKind::k_permute) {
      if (is_by_row || shape != by_head || user.ints != kExchangeHeads) return {};
      is_by_row = true;
    } else if (user.op != OpKind::k_reshape && user.op != OpKind::k_layout) {
      return {};
    }
    value = users[0];
  }
}

// Where the result of a row that `mask` hides altogether becomes NaN: in the product that reads it,
// which kernels read anyway, else in the mask, which is returned.
NodeId mark_hidden_rows(Builder& b, Calling& calling, const Attention& attention, NodeId mask) {
  const DType dtype = b[mask].type.dtype;  // of [batch, heads, rows, columns], extents of 1 too
  const NodeId highest = b.reduce(OpKind::k_amax, mask, {3}, dtype, true);
  NodeId hidden = b.pointwise(OpKind::k_eq, {highest, b.full(dtype, -kInfinity, 0)});
  const NodeId product = !calling.may_write && b[hidden].type.shape[1].is(1)  // of all heads
                             ? find_product_of_rows(calling, attention)
                             : NodeId();
  if (!product.valid()) return make_nan_where(b, hidden, mask);
  const Dim &batch = attention.batch[0], &rows = calling.graph[attention.result].type.shape[1];
  hidden = expand_to(b, hidden, {batch, 1, rows, 1});
  calling.hidden[product] = b.reshape(hidden, {batch * rows, 1});
  return mask;
}

// Torch's conditions on what its kernels read: 16 bytes at a time of each head, the mask's rows in
// whole tiles (sdp_utils.cpp and preprocess_mask of attention.cpp, torch 2.11 to 2.13).
constexpr int kReadBytes = 16, kMaskTile = 16;
constexpr int64_t kWidestFlash = 256;

bool fill_reads(const TensorType& operand) {
  const bool is_known = std::ranges::all_of(
      operand.shape, [](const Dim& dim) { return dim.is_constant() && dim.value() > 0; });
  return is_known && operand.shape.back().value() * info(operand.dtype).bytes % kReadBytes == 0;
}

bool fill_tiles(const TensorType& mask) {
  return mask.shape.back().value() % kMaskTile == 0 && mask.strides.back().is(1) &&
         std::all_of(mask.strides.begin(), mask.strides.end() - 1, [](const Dim& stride) {
           return stride.is_constant() && stride.value() % kMaskTile == 0;
         });
}

// `operands`: query, key and value; `mask` is invalid or has all dimensions of the scores.
std::string_view name_kernel(const Builder& b, const NodeList& operands, NodeId mask) {
  for (const NodeId operand : operands) {
    const TensorType& type = b[operand].type;
    if (!fill_reads(type) || type.shape.back() != b[operands[0]].type.shape.back())
      return kAttentionCall;
  }
  if (mask.valid()) return fill_tiles(b[mask].type) ? kEfficientAttention : kAttentionCall;
  const TensorType& query = b[operands[0]].type;
  const bool is_flash = info(query.dtype).bytes == 2 && query.shape.back().value() <= kWidestFlash;
  return is_flash ? kFlashAttention : kEfficientAttention;
}

NodeId call(Builder& b, Calling& calling, const Attention& attention, const RewriteSite& site) {
  const auto made = [&](NodeId id) { return site.made[id.index()]; };
  Node node{.op = OpKind::k_library, .number = attention.scale, .integer = kMadeCall};
  NodeList operands = {make_operand(b, made(attention.query), attention, false),
                       make_operand(b, made(attention.key), attention, attention.key_is_flipped),
                       make_operand(b, made(attention.value), attention, false)};
  NodeId mask = make_mask(b, calling, attention, site);
  if (mask.valid() && may_hide_rows(calling, attention))
    mask = mark_hidden_rows(b, calling, attention, mask);
  node.name = kAttentionCall;
  if (calling.on_gpu) {
    DimList scores = b[operands[0]].type.shape;
    scores.back() = b[operands[1]].type.shape[2];
    const NodeId whole = mask.valid() ? expand_to(b, mask, scores) : mask;
    node.name = name_kernel(b, operands, whole);
    if (node.name != kAttentionCall) mask = whole;
  }
  if (mask.valid()) operands.push_back(mask);
  node.type = b[operands[0]].type;
  // The library's kernels write [batch, rows, heads, width], as models read it; a result of other
  // strides is copied when it comes back.
  const DimList by_row = pick(node.type.shape, kExchangeHeads);
  node.type.strides = pick(contiguous_strides(by_row), kExchangeHeads);
  const TensorType& promised = site.node.type;
  const NodeId result = b.reshape(b.copy(node, operands), promised.shape);
  return site.strides_matter ? b.with_layout(result, promised.strides) : result;
}

}  // namespace

Graph call_attention(const Graph& graph, const std::vector<Attention>& judged, bool on_gpu) {
  if (std::ranges::none_of(judged, &Verdict::ok, &Attention::verdict)) return graph;
  Calling calling{graph, on_gpu};
  for (const Attention& attention : judged)
    if (attention.verdict) calling.attention[attention.result] = &attention;
  Graph result = rebuild_graph(graph, [&](Builder& b, const RewriteSite& site) -> NodeId {
    const auto found = calling.attention.find(site.id);
    if (found != calling.attention.end()) return call(b, calling, *found->second, site);
    const auto hidden = calling.hidden.extract(site.id);
    if (!hidden) return {};
    const NodeId product = b.copy(site.node, site.inputs);
    return b.with_layout(make_nan_where(b, hidden.mapped(), product), site.node.type.strides);
  });
  STITCH_CHECK(calling.hidden.empty(), "a product of hidden rows is not marked");
  return result;
}

}  // namespace stitch
