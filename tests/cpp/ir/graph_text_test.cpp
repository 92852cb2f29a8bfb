#include <gtest/gtest.h>

#include <cmath>

#include "ir/builder.h"
#include "support/read_graph.h"

namespace stitch {
namespace {

void expect_same_text_twice(const std::string& text) {
  const std::string once = to_string(read_graph(text));
  EXPECT_EQ(to_string(read_graph(once)), once);
}

std::string error_of(const std::string& text) {
  try {
    read_graph(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(PrintGraph, ShowsOneLinePerNodeWithTypeAndOrigin) {
  const Graph graph = read_graph(R"(
    %x = input : f32[8,s0]
    %y = add(%x, 1.5)  # aten.add.Tensor model.py:31
    outputs (%y, int s0*2, none)
  )");
  EXPECT_EQ(to_string(graph), R"(symbols s0 = input(0) hint 64
arguments 2 tensors [0] integers [1]
%0 = input{name="x"} : f32[8,s0]
%1 = full{number=1.5} : f32[]  # aten.add.Tensor model.py:31
%2 = add(%0, %1) : f32[8,s0]  # aten.add.Tensor model.py:31
outputs (%2, int s0*2, none)
)");
}

TEST(ParseGraph, ReadsBackWhatEveryOpPrints) {
  expect_same_text_twice(R"(
    symbols s0 = input(0) hint 8, s1 = input(1) hint 6 unbounded, s2 = floordiv(s0*3,4) hint 6
    arguments 5 tensors [0,2,3] integers [1,4]
    %x = input : bf16[s0,4,s1]
    %i = input : i64[s0,4,s1]
    %w = input : f32[4,s1](1,4)
    %f = cast(%x) : f32
    %s = sum(%f){axes=[1,-1], keepdim} : f64[s0,1,1]
    %a = argmax(%f){axes=[0]}
    %n = full{size=s0*s1} : f32
    %q = full{value=-3} : i64
    %inf = full{number=-inf} : f32
    %r = reshape(%f){shape=[s0*4,s1]}
    %p = permute(%f){order=[2,0,1]}
    %e = expand(%w){shape=[s0,4,s1]}
    %c = slice(%f){dim=1, start=1, count=2}
    %g = flip(%f){axes=[0,2]}
    %l = layout(%p){strides=[s0*4,4,1]}
    %k = layout(%f){strides=[1,s0,s0*4]}
    %t = cat(%f, %f){dim=0}
    %d = pad(%f){before=[0,1,0], shape=[s0,6,s1], value=0.25}
    %x1 = index(%f, %i){axes=[1]}
    %g1 = gather(%f, %i){dim=1}
    %b = slice_scatter(%f, %c){dim=1, start=1}
    %o = iota{count=s2, start=1, step=2} : i32
    %m = library(%w, %i){name="aten.topk.\"x\"", integer=4} : opaque[]
    %v = get(%m){ints=[1]} : i64[4](2)
    %z = select(lt(%f, 0), %f, nan)
    mutate %w <- %w
    outputs (%s, %a, %n, %q, %inf, %r, %e, %g, %l, %k, %t, %d, %x1, %g1, %b, %o, %v, %z)
  )");
}

TEST(ParseGraph, ReadsAGraphBackNodeByNode) {
  const Graph graph = read_graph(R"(
    %x = input : f32[4]
    %a = neg(%x)
    %b = neg(%x)
    %unused = exp(%x)
    outputs (%a, %b)
  )");
  EXPECT_EQ(graph.size(), 4);
  EXPECT_NE(graph.outputs[0].node, graph.outputs[1].node);
}

TEST(ParseGraph, NumbersTakeTheDtypeOfTheTensorBesideThem) {
  const Graph graph = read_graph(R"(
    %x = input : i64[4]
    %h = input : f16[4]
    %a = add(%x, 3)
    %b = select(eq(%x, 2), 0.5, %h)
    %c = div(cast(%x) : f32, s0)
    outputs (%a, %b, %c)
  )");
  std::vector<const Node*> fulls;
  for (const Node& node : graph.nodes)
    if (node.op == OpKind::k_full) fulls.push_back(&node);
  ASSERT_EQ(fulls.size(), 4u);
  EXPECT_EQ(fulls[0]->type.dtype, DType::kI64);
  EXPECT_EQ(fulls[0]->integer, 3);
  EXPECT_EQ(fulls[2]->type.dtype, DType::kF16);
  EXPECT_EQ(fulls[2]->number, 0.5);
  EXPECT_EQ(fulls[3]->dims, std::vector<Dim>{Dim::symbol(0)});
}

TEST(ParseGraph, KeepsNumbersToTheLastBit) {
  for (double number : {0.1, -0.0, 1e-310, 3.4028234663852886e38, HUGE_VAL, std::nan("")}) {
    Builder b;
    b.output({GraphOutput::Kind::kTensor, b.full(DType::kF64, number, 0), 0});
    const Graph graph = read_graph(to_string(b.finish()));
    const double read = graph[graph.outputs[0].node].number;
    EXPECT_EQ(std::signbit(read), std::signbit(number));
    EXPECT_TRUE(read == number || (std::isnan(read) && std::isnan(number))) << number;
  }
}

TEST(ParseGraph, KeepsTheLargestIntegers) {
  Builder b;
  b.output({GraphOutput::Kind::kTensor, b.full(DType::kI64, 0, INT64_MIN), 0});
  const Graph graph = read_graph(to_string(b.finish()));
  EXPECT_EQ(graph[graph.outputs[0].node].integer, INT64_MIN);
}

TEST(ParseGraph, NumbersArgumentsWhereNoLineDoes) {
  const Graph graph = read_graph("%x = input : f32[s0]\noutputs (%x)");
  EXPECT_EQ(graph.argument_count, 2);
  EXPECT_EQ(graph.input_positions, std::vector<int>{0});
  EXPECT_EQ(graph.integer_positions, std::vector<int>{1});
}

TEST(ParseGraph, ErrorsNameTheLineAndWhatIsAllowed) {
  EXPECT_NE(error_of("%x = input : f32[4]\n%y = nag(%x)\n").find("'neg'"), std::string::npos);
  EXPECT_NE(error_of("%x = input : f32[4]\n%y = nag(%x)\n").find("line 2"), std::string::npos);
  EXPECT_NE(error_of("%y = neg(%x)").find("%x, which no line above defines"), std::string::npos);
  EXPECT_NE(error_of("%x = input : f32[4]\n%y = sum(%x){axis=[0]}").find("'axes'"),
            std::string::npos);
  EXPECT_NE(error_of("%x = input : f32[4]\n%y = neg(%x) : f32[5]").find("the operands give f32[4]"),
            std::string::npos);
  EXPECT_NE(error_of("hello").find("outputs"), std::string::npos);
  EXPECT_NE(error_of("symbols s0 = input(0)\n%x = input : f32[s1]").find("s1"), std::string::npos);
  EXPECT_NE(error_of("%x = input : f32[4]\n%x = input : f32[4]").find("second definition"),
            std::string::npos);
}

}  // namespace
}  // namespace stitch
