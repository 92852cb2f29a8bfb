#include "ir/builder.h"

#include <gtest/gtest.h>

namespace stitch {
namespace {

using Dims = std::vector<Dim>;

NodeId float_input(Builder& builder, Dims shape, DType dtype = DType::kF32) {
  return builder.input("x", contiguous_type(dtype, std::move(shape)));
}

TEST(Builder, EqualNodesAreOneNode) {
  Builder b;
  const NodeId x = float_input(b, {4});
  EXPECT_EQ(b.pointwise(OpKind::k_add, {x, x}), b.pointwise(OpKind::k_add, {x, x}));
  EXPECT_EQ(b.full(DType::kF32, 1, 0), b.full(DType::kF32, 1, 7));
  EXPECT_NE(b.full(DType::kF32, 0.0, 0), b.full(DType::kF32, -0.0, 0));
  EXPECT_NE(b.pointwise(OpKind::k_add, {x, x}), b.pointwise(OpKind::k_sub, {x, x}));
  EXPECT_NE(b.slice(x, 0, 0, 2, 1), b.slice(x, 0, 0, 2, 2));
}

TEST(Builder, InputsCallsAndCopiesAreNeverShared) {
  Builder b;
  const NodeId x = float_input(b, {4});
  EXPECT_NE(float_input(b, {4}), x);
  const TensorType type = b[x].type;
  EXPECT_NE(b.library({.inputs = {x}, .name = "aten.rand.default"}, {type}, false)[0],
            b.library({.inputs = {x}, .name = "aten.rand.default"}, {type}, false)[0]);
  EXPECT_NE(b.with_strides(x, {1}), b.with_strides(x, {1}));
}

TEST(Builder, ReadsBeforeAndAfterAWriteStayApart) {
  Builder b;
  const NodeId x = float_input(b, {4});
  const NodeId before = b.pointwise(OpKind::k_neg, {x});
  b.library({.inputs = {x}, .ints = {kWritesOperands}, .name = "aten.zero_.default"}, {b[x].type},
            false);
  EXPECT_NE(b.pointwise(OpKind::k_neg, {x}), before);
}

TEST(Builder, ResultsOfPointwiseOpsAreContiguous) {
  Builder b;
  const NodeId x = float_input(b, {4, 8});
  const NodeId y = b.pointwise(OpKind::k_neg, {b.permute(x, {1, 0})});
  EXPECT_EQ(b[y].type.shape, (Dims{8, 4}));
  EXPECT_EQ(b[y].type.strides, (Dims{4, 1}));
}

TEST(Builder, ViewsCarryTheStridesOfTheirOperand) {
  Builder b;
  const NodeId x = float_input(b, {4, 8});
  EXPECT_EQ(b[b.permute(x, {-1, 0})].type.strides, (Dims{1, 8}));
  EXPECT_EQ(b[b.slice(x, -1, 1, 3, 2)].type.strides, (Dims{8, 2}));
  EXPECT_EQ(b[b.expand(x, {3, 4, 8})].type.strides, (Dims{0, 8, 1}));
  EXPECT_EQ(b[b.reshape(b.permute(x, {1, 0}), {2, 4, 4})].type.strides, (Dims{4, 1, 8}));
  EXPECT_EQ(b[b.reshape(b.permute(x, {1, 0}), {32})].type.strides, (Dims{1}));
  EXPECT_EQ(b[b.flip(b.permute(x, {1, 0}), {0})].type.strides, (Dims{4, 1}));
}

TEST(Builder, ReductionsDropAxesUnlessTheyAreKept) {
  Builder b;
  const NodeId x = float_input(b, {4, 8, 2});
  EXPECT_EQ(b[b.reduce(OpKind::k_sum, x, {-1, 0}, DType::kF32, false)].type.shape, (Dims{8}));
  EXPECT_EQ(b[b.reduce(OpKind::k_amax, x, {1}, DType::kF64, true)].type.shape, (Dims{4, 1, 2}));
  EXPECT_EQ(b[b.reduce(OpKind::k_amax, x, {1}, DType::kF64, true)].type.dtype, DType::kF32);
  EXPECT_EQ(b[b.reduce(OpKind::k_argmax, x, {}, DType::kF32, false)].type.dtype, DType::kI64);
  EXPECT_EQ(b[b.reduce(OpKind::k_sum, x, {0}, DType::kF64, false)].type.dtype, DType::kF64);
}

TEST(Builder, IndexPutsBroadcastIndicesWhereEagerDoes) {
  Builder b;
  const NodeId x = float_input(b, {4, 8, 2, 3});
  const NodeId i = b.input("i", contiguous_type(DType::kI64, {5, 1}));
  const NodeId j = b.input("j", contiguous_type(DType::kI64, {7}));
  EXPECT_EQ(b[b.index(x, {i, j}, {1, 2})].type.shape, (Dims{4, 5, 7, 3}));
  EXPECT_EQ(b[b.index(x, {i, j}, {0, 2})].type.shape, (Dims{5, 7, 8, 3}));
  EXPECT_EQ(b[b.index(x, {j}, {-1})].type.shape, (Dims{4, 8, 2, 7}));
}

TEST(Builder, ReadersCheckTheirOperands) {
  Builder b;
  const NodeId x = float_input(b, {4, 8}), y = float_input(b, {4, 7});
  EXPECT_EQ(b[b.cat({x, y}, 1)].type.shape, (Dims{4, 15}));
  EXPECT_THROW(b.cat({x, y}, 0), UserError);
  EXPECT_THROW(b.index(x, {y}, {0}), UnsupportedError);
  EXPECT_THROW(b.gather(x, b.input("i", contiguous_type(DType::kI64, {4})), 0), UserError);
  EXPECT_THROW(b.slice_scatter(x, y, 0, 0, 1), UserError);
  const NodeId start = b.input("start", contiguous_type(DType::kI64, {1, 1}));
  EXPECT_EQ(b[b.slice_scatter(x, float_input(b, {1, 8}), 0, start)].type.shape, (Dims{4, 8}));
  EXPECT_THROW(b.slice_scatter(x, float_input(b, {2, 8}), 0, start), UserError);
}

TEST(Builder, SegmentsNeedAnOrderOfTheSourceAndAnEndForEachRow) {
  Builder b;
  const NodeId x = float_input(b, {4, 8}), source = float_input(b, {9, 8});
  const NodeId order = b.input("order", contiguous_type(DType::kI64, {9}));
  const NodeId offsets = b.input("offsets", contiguous_type(DType::kI64, {5}));
  const OpKind op = OpKind::k_segment_sum;
  EXPECT_EQ(b[b.combine_rows(op, {x, source, order, offsets}, 0)].type.shape, (Dims{4, 8}));
  EXPECT_THROW(b.combine_rows(op, {x, source, offsets, offsets}, 0), UserError);
  EXPECT_THROW(b.combine_rows(op, {x, source, order, order}, 0), UserError);
  EXPECT_THROW(b.combine_rows(op, {x, source, order, offsets}, 1), UserError);
  EXPECT_THROW(b.combine_rows(op, {x, source, source, offsets}, 0), UnsupportedError);
}

TEST(Builder, ScattersNeedAnIndexForEachRowOfTheSource) {
  Builder b;
  const NodeId x = float_input(b, {2, 4, 8}), source = float_input(b, {2, 9, 8});
  const NodeId index = b.input("index", contiguous_type(DType::kI64, {2, 9, 1}));
  const NodeId other = b.input("other", contiguous_type(DType::kI64, {2, 4, 1}));
  const OpKind op = OpKind::k_scatter_max;
  EXPECT_EQ(b[b.combine_rows(op, {x, source, index}, 1)].type.shape, (Dims{2, 4, 8}));
  EXPECT_THROW(b.combine_rows(op, {x, source, other}, 1), UserError);
  EXPECT_THROW(b.combine_rows(op, {x, source, index}, 0), UserError);
  EXPECT_THROW(b.combine_rows(op, {x, source, source}, 1), UnsupportedError);
  EXPECT_THROW(b.combine_rows(op, {x, source}, 1), UserError);
}

TEST(Builder, SizesBecomeValues) {
  SymbolTable symbols;
  const Dim n = symbols.add_input(0, 8);
  Builder b(symbols);
  EXPECT_EQ(b[b.size_value(DType::kF32, n)].dims, (Dims{n}));
  EXPECT_EQ(b.size_value(DType::kF32, 8), b.full(DType::kF32, 8, 0));
  EXPECT_EQ(b.size_value(DType::kI64, 8), b.full(DType::kI64, 0, 8));
}

TEST(Builder, RandomNumbersAreAFunctionOfSeedStreamAndPosition) {
  Builder b;
  const NodeId seed = b.input("seed", contiguous_type(DType::kI64, {2}));
  const NodeId x = b.random(seed, 3, {4, 5}, false);
  EXPECT_EQ(to_string(b[x].type), "f32[4,5]");
  EXPECT_EQ(b.random(seed, 3, {4, 5}, false), x);
  EXPECT_NE(b.random(seed, 4, {4, 5}, false), x);
  EXPECT_EQ(to_string(b[b[b[x].inputs[2]].inputs[0]].type), "i64[20]");
  EXPECT_EQ(b[b.random(seed, 3, {}, false)].type.rank(), 0);
}

TEST(Builder, CallsWithSeveralResultsAreReadThroughGet) {
  Builder b;
  const NodeId x = float_input(b, {4});
  const auto results = b.library({.inputs = {x}, .integer = 3, .name = "aten.topk.default"},
                                 {b[x].type, contiguous_type(DType::kI64, {4})}, true);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(b[results[1]].op, OpKind::k_get);
  EXPECT_EQ(b[results[1]].type.dtype, DType::kI64);
  const Node& call = b[b[results[0]].inputs[0]];
  EXPECT_EQ(call.op, OpKind::k_library);
  EXPECT_EQ(call.integer, 3);
}

TEST(Builder, OpaqueValuesOnlyReachLibraryCalls) {
  Builder b;
  const NodeId x = b.input("x", contiguous_type(DType::kOpaque, {4}));
  EXPECT_THROW(b.pointwise(OpKind::k_neg, {x}), UnsupportedError);
  EXPECT_NO_THROW(b.library({.inputs = {x}, .name = "aten.abs.default"},
                            {contiguous_type(DType::kF32, {4})}, false));
}

TEST(Builder, CopyInfersTheTypeAgain) {
  Builder b;
  const NodeId x = float_input(b, {4, 8}, DType::kBF16);
  const NodeId wide = b.cast(x, DType::kF32);
  const NodeId view = b.permute(wide, {1, 0});
  EXPECT_EQ(b[b.copy(b[view], {x})].type.dtype, DType::kBF16);
  EXPECT_EQ(b.copy(b[wide], {wide}), wide);
}

TEST(Builder, EveryNodeKnowsTheUsersOp) {
  Builder b;
  const NodeId x = float_input(b, {4});
  b.set_origin({"aten.neg.default", "model.py:3"});
  const NodeId y = b.pointwise(OpKind::k_neg, {x});
  b.set_origin({"aten.neg.default", "model.py:9"});
  EXPECT_EQ(b.pointwise(OpKind::k_neg, {x}), y);
  EXPECT_EQ(b[y].origin.location, "model.py:3");
}

TEST(Builder, SymbolicSlicesAndReshapesAreExact) {
  SymbolTable symbols;
  const Dim n = symbols.add_input(0, 8), m = symbols.add_input(1, 8);
  Builder b(symbols);
  const NodeId x = b.input("x", contiguous_type(DType::kF32, {n, m}));
  EXPECT_EQ(b[b.reshape(x, {n * m})].type.shape, (Dims{n * m}));
  EXPECT_THROW(b.reshape(x, {n}), UnsupportedError);
  EXPECT_THROW(b.slice(x, 0, 1, n, 1), UserError);
  EXPECT_EQ(b[b.slice(x, 0, 1, n - Dim(1), 1)].type.shape, (Dims{n - Dim(1), m}));
}

TEST(Builder, FinishWantsAPositionForEachInput) {
  Builder b;
  float_input(b, {4});
  EXPECT_THROW(b.finish(), InternalError);
}

TEST(FindUsers, NamesReadersOncePerUse) {
  Builder b;
  const NodeId x = float_input(b, {4});
  const NodeId y = b.pointwise(OpKind::k_add, {x, x});
  const NodeId z = b.pointwise(OpKind::k_neg, {x});
  const auto users = find_users(b.graph());
  EXPECT_EQ(users[x.index()], (std::vector<NodeId>{y, y, z}));
  EXPECT_TRUE(users[z.index()].empty());
}

}  // namespace
}  // namespace stitch
