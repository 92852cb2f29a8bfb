// Random graphs, rewritten and interpreted: values, types and sharing of outputs must not change.
#include <random>

#include "ir/builder.h"
#include "ir/graph.h"
#include "rewrite/expect_rewrite.h"
#include "rewrite/interpret_graph.h"
#include "rewrite/rewrite_graph.h"
#include "support/parse_graph.h"

namespace stitch {
namespace {

constexpr int64_t kExtent = 3;  // of the one symbol

struct RandomGraph {
  std::mt19937 random;
  Builder builder;
  std::vector<NodeId> values;

  int pick(int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); }
  NodeId any() { return values[pick(static_cast<int>(values.size()))]; }
  NodeId any_float() {
    for (;;)
      if (const NodeId id = any(); builder[id].type.dtype != DType::kBool) return id;
  }
  NodeId constant(DType dtype) {
    constexpr double kNumbers[] = {0.0, -0.0, 1, 2, 3, 0.5, -1.25};
    return builder.full(dtype, kNumbers[pick(7)], 0);
  }
};

NodeId add_pointwise(RandomGraph& g) {
  constexpr OpKind kOps[] = {OpKind::k_add, OpKind::k_sub, OpKind::k_mul, OpKind::k_div,
                             OpKind::k_lt,  OpKind::k_ge,  OpKind::k_eq};
  const NodeId x = g.any_float();
  const DType dtype = g.builder[x].type.dtype;
  if (g.pick(6) == 0) return g.builder.pointwise(OpKind::k_neg, {x});
  if (g.pick(6) == 0) {
    const NodeId exponent = g.builder.full(dtype, 1 + g.pick(3), 0);
    return g.builder.pointwise(OpKind::k_pow, {x, exponent});
  }
  const NodeId other = g.pick(2) ? g.constant(dtype) : g.builder.cast(g.any_float(), dtype);
  return g.builder.pointwise(kOps[g.pick(7)], {x, other});
}

NodeId add_logic(RandomGraph& g) {
  const NodeId c = g.any();
  if (g.builder[c].type.dtype != DType::kBool) {
    constexpr DType kFloats[] = {DType::kBF16, DType::kF32, DType::kF64};
    return g.builder.cast(c, kFloats[g.pick(3)]);
  }
  if (g.pick(2)) return g.builder.pointwise(OpKind::k_logical_not, {c});
  const NodeId x = g.any_float();
  return g.builder.pointwise(OpKind::k_select, {c, x, g.constant(g.builder[x].type.dtype)});
}

NodeId add_view(RandomGraph& g) {
  Builder& b = g.builder;
  const NodeId x = g.any();
  std::vector<Dim> shape = b[x].type.shape;
  const int rank = static_cast<int>(shape.size());
  const int d = rank == 0 ? 0 : g.pick(rank);
  std::vector<int64_t> order(rank);
  for (int i = 0; i < rank; ++i) order[i] = i;
  switch (g.pick(8)) {
    case 0:
      std::shuffle(order.begin(), order.end(), g.random);
      return b.permute(x, order);
    case 1:
      return rank == 0 ? x : b.flip(x, {d});
    case 2:
      return rank == 0 ? x : b.slice(x, d, 0, shape[d], 1);
    case 3:
      if (rank == 0 || !shape[d].is_constant() || shape[d].value() < 2) return x;
      return b.slice(x, d, 1, (shape[d].value()) / 2, shape[d].value() > 2 ? 2 : 1);
    case 4:
      for (Dim& extent : shape)
        if (extent.is(1)) extent = 2;
      shape.insert(shape.begin(), g.pick(2) + 1);
      return rank > 4 ? x : b.expand(x, shape);
    case 5:
      return b.reshape(x, {element_count(shape)});
    case 6:
      shape.insert(shape.begin() + (rank == 0 ? 0 : g.pick(rank + 1)), 1);
      return rank > 4 ? x : b.reshape(x, shape);
    default:
      return b.with_strides(x, contiguous_strides(shape));
  }
}

NodeId add_wide(RandomGraph& g) {
  Builder& b = g.builder;
  const NodeId x = g.any_float();
  const int rank = b[x].type.rank();
  if (rank == 0) return x;
  const int64_t axis = g.pick(rank);
  const DType dtype = b[x].type.dtype;
  switch (g.pick(4)) {
    case 0:
      return b.cat({x}, axis);
    case 1:
      return b.cat({x, b.pointwise(OpKind::k_neg, {x})}, axis);
    case 2:
      return b.reduce(OpKind::k_sum, x, {axis}, dtype == DType::kBF16 ? DType::kF32 : dtype,
                      g.pick(2) != 0);
    default:
      return b.reduce(OpKind::k_amax, x, {axis}, dtype, g.pick(2) != 0);
  }
}

// A step that symbols or shapes forbid adds nothing.
void add_random_node(RandomGraph& g) {
  NodeId (*const kSteps[])(RandomGraph&) = {add_pointwise, add_logic, add_view, add_view, add_wide};
  try {
    const NodeId id = kSteps[g.pick(5)](g);
    if (!element_count(g.builder[id].type.shape).is(0) &&
        g.builder.graph().symbols.hint(element_count(g.builder[id].type.shape)) < 2000)
      g.values.push_back(id);
  } catch (const UserError&) {
  } catch (const UnsupportedError&) {
  }
}

Graph make_random_graph(unsigned seed) {
  SymbolTable symbols;
  const Dim n = symbols.add_input(0, kExtent);
  RandomGraph g{std::mt19937(seed), Builder(symbols, seed % 2 == 0), {}};
  g.values.push_back(g.builder.input("a", contiguous_type(DType::kF32, {2, n, 4})));
  g.values.push_back(g.builder.input("b", contiguous_type(DType::kBF16, {n, 1})));
  g.values.push_back(g.builder.input("c", {DType::kF32, {n, 4}, {1, n}}));
  for (int i = 0; i < 25; ++i) add_random_node(g);
  for (int i = 0; i < 4; ++i)
    g.builder.output({GraphOutput::Kind::kTensor, g.values[g.values.size() - 1 - g.pick(8)], 0});
  number_arguments(g.builder.graph());
  return g.builder.finish();
}

std::vector<ReferenceTensor> make_inputs(unsigned seed) {
  std::mt19937 random(seed);
  constexpr double kNumbers[] = {-2, -1, -0.5, -0.0, 0.0, 0.25, 1, 3};
  std::vector<ReferenceTensor> inputs = {
      {{2, kExtent, 4}, {}}, {{kExtent, 1}, {}}, {{kExtent, 4}, {}}};
  for (ReferenceTensor& input : inputs)
    for (int64_t i = 0; i < reference::count(input.shape); ++i)
      input.elements.push_back(kNumbers[random() % 8]);
  return inputs;
}

void expect_same_bits(const ReferenceTensor& found, const ReferenceTensor& expected) {
  ASSERT_EQ(found.shape, expected.shape);
  for (size_t i = 0; i < expected.elements.size(); ++i) {
    const double a = found.elements[i], b = expected.elements[i];
    ASSERT_TRUE((std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b)))
        << "element " << i << ": " << a << " instead of " << b;
  }
}

// Outputs share storage with each other and with inputs exactly where they did.
void expect_same_sharing(const Graph& after, const Graph& before) {
  const auto storages = [](const Graph& graph) {
    std::vector<NodeId> all;
    for (NodeId input : graph.inputs) all.push_back(input);
    for (const GraphOutput& output : graph.outputs) all.push_back(storage_base(graph, output.node));
    return all;
  };
  const std::vector<NodeId> now = storages(after), then = storages(before);
  for (size_t i = 0; i < now.size(); ++i)
    for (size_t j = 0; j < i; ++j) ASSERT_EQ(now[i] == now[j], then[i] == then[j]) << i << " " << j;
}

TEST(RandomGraphs, RewritesChangeNothingThatACallerSees) {
  int rewritten = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const Graph before = make_random_graph(seed);
    const Graph after = rewrite_graph(before);
    verify_graph(after);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_string(before) + "became\n" +
                 to_string(after));
    rewritten += after.size() < before.size();
    ASSERT_EQ(after.outputs.size(), before.outputs.size());
    for (size_t i = 0; i < before.outputs.size(); ++i)
      ASSERT_EQ(to_string(after[after.outputs[i].node].type),
                to_string(before[before.outputs[i].node].type));
    expect_same_sharing(after, before);
    const auto inputs = make_inputs(seed);
    const auto found = interpret(after, inputs, {kExtent});
    const auto expected = interpret(before, inputs, {kExtent});
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NO_FATAL_FAILURE(expect_same_bits(found[i], expected[i])) << "output " << i;
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(rewritten, 200);
}

TEST(RandomGraphs, TextReadsBackExactly) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const std::string text = to_string(make_random_graph(seed));
    ASSERT_EQ(to_string(read_graph(text)), text);
  }
}

}  // namespace
}  // namespace stitch
