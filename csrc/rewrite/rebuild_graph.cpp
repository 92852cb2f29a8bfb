#include "rewrite/rebuild_graph.h"

namespace stitch {
namespace {

// What is seen of a node of the old graph from outside.
struct Visibility {
  bool escapes = false;         // it, or a view of it, is an output or may be written
  bool strides_matter = false;  // or an operand of a library call that is not BLAS
  bool may_be_written = false;  // it, or a view of it, by a library call
};

std::vector<Visibility> find_visibility(const Graph& graph) {
  std::vector<Visibility> seen(graph.nodes.size());
  for (const GraphOutput& output : graph.outputs)
    if (output.kind == GraphOutput::Kind::kTensor)
      seen[output.node.index()] = {.escapes = true, .strides_matter = true};
  for (int i = graph.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const bool may_write = may_write_operands(node);
    const bool reads_strides = may_call(node) && !is_blas_call(node.name);
    for (NodeId input : node.inputs) {
      Visibility& operand = seen[input.index()];
      const Visibility view = is_plain_view(node) ? seen[i] : Visibility();
      operand.escapes |= view.escapes || may_write;
      operand.strides_matter |= view.strides_matter || reads_strides;
      operand.may_be_written |= view.may_be_written || may_write;
    }
  }
  return seen;
}

// a >= b for all values of the symbols, as far as structure tells.
bool is_at_least(const Dim& a, const Dim& b) {
  const Dim difference = a - b;
  if (difference.is_constant()) return difference.value() >= 0;
  return b.is(1) ? !a.is_constant() : is_divisible(a, b);
}

// One of the last two dimensions has stride 1, the other a stride of at least a row.
bool is_blas_layout(const TensorType& type) {
  if (type.rank() < 2) return false;
  const size_t row = type.shape.size() - 2, column = row + 1;
  const auto steps_by = [&](size_t fast, size_t slow) {
    return type.strides[fast].is(1) &&
           (type.shape[slow].is(1) || is_at_least(type.strides[slow], type.shape[fast]));
  };
  return steps_by(column, row) || steps_by(row, column);
}

struct Rebuild {
  const Graph& graph;
  const RewriteRule& rule;
  std::vector<Visibility> seen = find_visibility(graph);  // per old node
  Builder builder = Builder(graph.symbols);
  NodeList value = NodeList(graph.nodes.size());  // new node per old node
  // Storage seen outside, and the old one it stands for: no two outputs may begin to alias.
  std::unordered_map<NodeId, NodeId> owner = {};

  NodeId base_of(NodeId made) { return storage_base(builder.graph(), made); }

  NodeList map_inputs(const Node& node) {
    return map_to_vector(node.inputs, [&](NodeId old) {
      const NodeId input = value[old.index()];
      const TensorType& type = builder[input].type;
      const bool is_free = !may_call(node) || (is_blas_call(node.name) && is_blas_layout(type));
      return is_free ? input : builder.with_layout(input, graph[old].type.strides);
    });
  }

  // The copy that keeps an output from aliasing what it did not alias.
  NodeId keep_storage_apart(NodeId old, NodeId result) {
    const auto claim = [&](NodeId storage) { return owner.emplace(storage, old).first; };
    if (claim(base_of(result))->second == old) return result;
    result = builder.with_strides(result, graph[old].type.strides);
    claim(result);
    return result;
  }

  // The old node itself where its operands are what they were.
  NodeId copy(NodeId old, const NodeList& inputs) {
    const SharedNode& node = graph.nodes[old.index()];
    const auto has_type = [&](NodeId id) { return builder[id].type == graph[id].type; };
    const bool is_same = inputs == node->inputs && std::ranges::all_of(inputs, has_type);
    return is_same ? builder.share(node) : builder.copy(node, inputs);
  }

  NodeId rebuild_node(NodeId old) {
    const Node& node = graph[old];
    const auto [escapes, strides_matter, may_be_written] = seen[old.index()];
    builder.set_origin(node.origin);
    const NodeList inputs = map_inputs(node);
    const bool asks_rule = rule && (!may_be_written || is_put(node));
    NodeId result =
        asks_rule ? rule(builder, {node, old, inputs, value, strides_matter}) : NodeId();
    if (!result.valid()) result = copy(old, inputs);
    const TensorType& type = builder[result].type;
    STITCH_CHECK(type.dtype == node.type.dtype && type.shape == node.type.shape,
                 "a rewrite of %" << old << " = " << info(node).name << " turned "
                                  << to_string(node.type) << " into " << to_string(type));
    if (strides_matter && type.strides != node.type.strides) result = copy(old, inputs);
    if (!escapes && !is_materialised(node)) return result;
    const NodeId old_base = storage_base(graph, old);
    if (old_base == old) return keep_storage_apart(old, result);
    const bool aliases_as_before = base_of(result) == base_of(value[old_base.index()]);
    return aliases_as_before ? result : copy(old, inputs);
  }
};

}  // namespace

Graph rebuild_graph(const Graph& graph, const RewriteRule& rule, const std::vector<bool>& live) {
  Rebuild rebuild{graph, rule};
  for (int i = 0; i < graph.size(); ++i)
    if (live.empty() || live[i]) rebuild.value[i] = rebuild.rebuild_node(NodeId(i));
  const auto mapped = [&](NodeId old) { return rebuild.value[old.index()]; };
  Graph& result = rebuild.builder.graph();
  result.inputs = map_to_vector(graph.inputs, mapped);
  result.input_positions = graph.input_positions;
  result.integer_positions = graph.integer_positions;
  result.argument_count = graph.argument_count;
  for (const Mutation& mutation : graph.mutations)
    rebuild.builder.mutate(mapped(mutation.input), mapped(mutation.value));
  for (GraphOutput output : graph.outputs) {
    if (output.kind == GraphOutput::Kind::kTensor) output.node = mapped(output.node);
    rebuild.builder.output(output);
  }
  return std::move(result);
}

bool are_apart(const Strip& a, const Strip& b) {
  const auto ends_before = [](const Strip& first, const Strip& then) {
    const Dim gap = then.start - (first.start + (first.count - 1) * first.step);
    return gap.is_constant() && gap.value() > 0;
  };
  return ends_before(a, b) || ends_before(b, a);
}

}  // namespace stitch
