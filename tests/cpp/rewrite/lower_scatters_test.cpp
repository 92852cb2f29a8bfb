#include "rewrite/rewrite_graph.h"

#include <algorithm>

#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

Graph lower_on_host(const Graph& graph) { return remove_dead(lower_scatters(graph, true)); }
Graph lower_on_gpu(const Graph& graph) { return remove_dead(lower_scatters(graph, false)); }

// x[rows, 4] with what comes to it from 1,000 positions.
std::string graph_of(const std::string& put, int rows, const std::string& end = "outputs (%y)") {
  const std::string r = std::to_string(rows);
  return "%x = input : f32[" + r + ",4]\n%s = input : f32[1000,4]\n%i = input : i64[1000]\n" + put +
         "\n" + end;
}

std::string put(const std::string& op, const std::string& flags, int rows) {
  return "%y = " + op + "(%x, %s, %i, %x, %i, %s){ints=[0," + flags +
         "], name=\"aten.index_add.default\", integer=0} : f32[" + std::to_string(rows) + ",4]";
}

std::string sorted(int rows, const std::string& more = "") {
  const std::string r = std::to_string(rows), ends = std::to_string(rows + 1);
  return "%sorts = library(%i){name=\"torch_stitch.segments.default\", integer=-1, dims=[1," + r +
         more + "]} : opaque[]\n%order = get(%sorts){ints=[0]} : i32[1000]\n" +
         "%offsets = get(%sorts){ints=[1]} : i32[" + ends + "]\n";
}

int count_ops(const Graph& graph, OpKind op) {
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                        [&](const Node& node) { return node.op == op; }));
}

TEST(LowerScatters, GpusSort) {
  expect_rewrite(
      lower_on_gpu, graph_of(put("put_sum", "0,1,-1", 16), 16),
      graph_of(sorted(16, ",0,-1") + "%y = segment_sum(%x, %s, %order, %offsets){dim=0}", 16));
}

TEST(LowerScatters, AnIndexOfNoRowAndNegativeOnesAreTheSortsBusiness) {
  expect_rewrite(
      lower_on_gpu, graph_of(put("put_max", "1,1,7", 16), 16),
      graph_of(sorted(16, ",1,7") + "%y = segment_max(%x, %s, %order, %offsets){dim=0}", 16));
}

TEST(LowerScatters, OneIndexIsSortedForOnce) {
  const std::string two = put("put_sum", "0,1,-1", 16) + "\n%z = put_last(%y, %s, %i, %x)" +
                          "{ints=[0,0,1,-1], name=\"aten.index_copy.default\", integer=1} : "
                          "f32[16,4]";
  const Graph graph = lower_on_gpu(read_graph(graph_of(two, 16, "outputs (%z)")));
  EXPECT_EQ(count_ops(graph, OpKind::k_library), 1);
  EXPECT_EQ(count_ops(graph, OpKind::k_segment_sum), 1);
  EXPECT_EQ(count_ops(graph, OpKind::k_segment_last), 1);
}

// Tables of 16 and 20 rows, the second one's last row for padding.
TEST(LowerScatters, GpusSortTheIndicesOfAllTablesTogether) {
  const std::string tables = R"(
    %x = input : f32[16,4]
    %z = input : f32[20,4]
    %s = input : f32[1000,4]
    %i = input : i64[1000]
    %j = input : i64[10,100]
)";
  const std::string put = R"({ints=[0,0,1,%], name="aten.index_add.default", integer=0} : )";
  const auto keeps = [&](int ignored) {
    return std::string(put).replace(put.find('%'), 1, std::to_string(ignored));
  };
  const std::string both = tables + "%k = reshape(%j){shape=[1000]}\n%y = put_sum(%x, %s, %i, %x)" +
                           keeps(-1) + "f32[16,4]\n%u = put_sum(%z, %s, %k, %z)" + keeps(19) +
                           "f32[20,4]\noutputs (%y, %u)\n";
  expect_rewrite([](const Graph& graph) { return merge_views(lower_on_gpu(graph)); }, both,
                 tables +
                     R"(
    %k = reshape(%j){shape=[1000]}
)"
                     "%sorts = library(%i, %k){name=\"torch_stitch.segments.default\", integer=-1, "
                     "dims=[1,16,0,-1,20,0,19]} : opaque[]"
                     R"(
    %order = get(%sorts){ints=[0]} : i32[1000]
    %offsets = get(%sorts){ints=[1]} : i32[17]
    %y = segment_sum(%x, %s, %order, %offsets){dim=0}
    %order2 = get(%sorts){ints=[2]} : i32[1000]
    %offsets2 = get(%sorts){ints=[3]} : i32[21]
    %u = segment_sum(%z, %s, %order2, %offsets2){dim=0}
    outputs (%y, %u)
  )");
  EXPECT_EQ(count_ops(lower_on_host(read_graph(both)), OpKind::k_library), 0);
}

// A graph's own tensors are inputs that may stand behind the first sort.
TEST(LowerScatters, AnIndexThatComesLaterIsSortedByItself) {
  const std::string how =
      R"({ints=[0,0,1,-1], name="aten.index_add.default", integer=0} : f32[16,4])";
  const Graph graph = lower_on_gpu(
      read_graph("%x = input : f32[16,4]\n%s = input : f32[1000,4]\n%i = input : i64[1000]\n"
                 "%y = put_sum(%x, %s, %i, %x)" +
                 how +
                 "\n%j = input : i64[1000]\n"
                 "%z = put_sum(%y, %s, %j, %y)" +
                 how + "\noutputs (%z)\n"));
  EXPECT_EQ(count_ops(graph, OpKind::k_library), 2);
}

TEST(LowerScatters, HostsCombineFewRowsInChunks) {
  const Graph few = lower_on_host(read_graph(graph_of(put("put_sum", "0,1,-1", 16), 16)));
  EXPECT_EQ(count_ops(few, OpKind::k_scatter_sum), 1);
  EXPECT_EQ(count_ops(few, OpKind::k_library), 0);
  const Graph many = lower_on_host(read_graph(graph_of(put("put_sum", "0,1,-1", 90000), 90000)));
  EXPECT_EQ(count_ops(many, OpKind::k_segment_sum), 1);
}

TEST(LowerScatters, TheLastOfFewRowsIsThatOfTheLargestPosition) {
  const Graph graph = lower_on_host(read_graph(graph_of(put("put_last", "0,1,-1", 16), 16)));
  EXPECT_EQ(count_ops(graph, OpKind::k_scatter_max), 1);
  EXPECT_EQ(count_ops(graph, OpKind::k_index), 1);
  EXPECT_EQ(count_ops(graph, OpKind::k_library), 0);
}

TEST(LowerScatters, OneRowIsASlice) {
  const std::string head = "%x = input : f32[8,4]\n%s = input : f32[1,4]\n%i = input : i64[1]\n";
  expect_rewrite(
      lower_on_host,
      head +
          "%y = put_last(%x, %s, %i, %x){ints=[0,1,1,-1], name=\"a\", integer=0} : "
          "f32[8,4]\noutputs (%y)",
      head + "%y = slice_scatter(%x, %s, reshape(%i){shape=[1,1]}){dim=0}\n" + "outputs (%y)");
}

TEST(LowerScatters, AnIndexThatIsBroadcastNamesRows) {
  const std::string wide =
      "%r = reshape(%i){shape=[1000,1]}\n%e = expand(%r){shape=[1000,4]}\n"
      "%y = put_sum(%x, %s, %e, %x, %e, %s){ints=[0,0,1,-1], name=\"a\", integer=0} : f32[16,4]";
  const Graph graph = lower_on_gpu(read_graph(graph_of(wide, 16)));
  ASSERT_EQ(count_ops(graph, OpKind::k_segment_sum), 1);
  for (const Node& node : graph.nodes)
    if (node.op == OpKind::k_segment_sum) {
      EXPECT_EQ(node.type.rank(), 2);
    }
}

TEST(LowerScatters, FarMoreElementsThanPositionsAreTheCallsBusiness) {
  const std::string head =
      "%x = input : f32[900,4]\n%s = input : f32[3,4]\n%i = input : i64[3,4]\n";
  expect_rewrite(lower_on_host,
                 head +
                     "%y = put_sum(%x, %s, %i, %x, %i, %s){ints=[0,0,1,-1], "
                     "name=\"aten.scatter_add.default\", integer=5} : f32[900,4]\noutputs (%y)",
                 head +
                     "%y = library(%x, %i, %s){name=\"aten.scatter_add.default\", integer=5} : "
                     "f32[900,4]\noutputs (%y)");
}

TEST(LowerScatters, WhatACallWritesInPlaceIsNotStoredAgain) {
  const std::string call = "{ints=[0,0,1,-1,2], name=\"aten.index_add_.default\", integer=0} : ";
  const std::string text = "%y = put_sum(%x, %s, %i, %x, %i, %s)" + call + "f32[90000,4]";
  const Graph graph =
      lower_on_host(read_graph(graph_of(text, 90000, "mutate %x <- %y\noutputs (none)")));
  EXPECT_TRUE(graph.mutations.empty());
  EXPECT_EQ(count_ops(graph, OpKind::k_library), 1);
  const std::string few = "%y = put_sum(%x, %s, %i, %x, %i, %s)" + call + "f32[16,4]";
  const Graph kept =
      lower_on_host(read_graph(graph_of(few, 16, "mutate %x <- %y\noutputs (none)")));
  EXPECT_EQ(kept.mutations.size(), 1u);
}

TEST(LowerScatters, TheResultHasTheStridesThatItsCallPromised) {
  const std::string turned =
      "%y = put_sum(%x, %s, %i, %x){ints=[0,0,1,-1], name=\"a\", integer=0}"
      " : f32[16,4](1,16)";
  const Graph graph = lower_on_host(read_graph(graph_of(turned, 16)));
  EXPECT_EQ(graph[graph.outputs[0].node].type.strides, (std::vector<Dim>{1, 16}));
}

}  // namespace
}  // namespace stitch
