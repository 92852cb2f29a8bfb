#include "ir/graph.h"

#include <gtest/gtest.h>

#include "support/own_node.h"
#include "support/read_graph.h"

namespace stitch {
namespace {

Graph sample() {
  return read_graph(R"(
    %x = input : f32[4,8]
    %y = neg(%x)  # aten.neg.default model.py:7
    %s = sum(%y){axes=[1]}
    outputs (%s)
  )");
}

std::string error_of(const Graph& graph) {
  try {
    verify_graph(graph);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no error";
}

TEST(VerifyGraph, AcceptsWhatTheBuilderMakes) { EXPECT_EQ(error_of(sample()), "no error"); }

TEST(VerifyGraph, OperandsComeBeforeTheirUsers) {
  Graph graph = sample();
  own(graph.nodes[1]).inputs[0] = NodeId(2);
  EXPECT_NE(error_of(graph).find("%1 = neg (from aten.neg.default at model.py:7)"),
            std::string::npos);
}

TEST(VerifyGraph, TypesFollowFromOperands) {
  Graph graph = sample();
  own(graph.nodes[1]).type.dtype = DType::kF16;
  EXPECT_NE(error_of(graph).find("its operands give f32[4,8]"), std::string::npos);
  graph = sample();
  own(graph.nodes[1]).type.strides = {1, 4};
  EXPECT_NE(error_of(graph).find("f32[4,8](1,4)"), std::string::npos);
}

TEST(VerifyGraph, AxesAreInRange) {
  Graph graph = sample();
  own(graph.nodes[2]).ints = {2};
  EXPECT_NE(error_of(graph).find("dimension 2"), std::string::npos);
}

TEST(VerifyGraph, OutputsAndMutationsExist) {
  Graph graph = sample();
  graph.outputs[0].node = NodeId(9);
  EXPECT_NE(error_of(graph).find("output %9"), std::string::npos);
  graph = sample();
  graph.mutations.push_back({NodeId(1), NodeId(1)});
  EXPECT_NE(error_of(graph).find("no input"), std::string::npos);
  graph = sample();
  graph.mutations.push_back({NodeId(0), NodeId(2)});
  EXPECT_NE(error_of(graph).find("is stored into"), std::string::npos);
}

}  // namespace
}  // namespace stitch
