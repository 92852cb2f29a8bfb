#include <gtest/gtest.h>

#include <numeric>

#include "ir/graph.h"
#include "plan/kernels/schedule_kernel.h"
#include "rewrite/interpret_graph.h"
#include "rewrite/rewrite_graph.h"
#include "support/read_graph.h"

namespace stitch {
namespace {

Graph split(const std::string& text, const char* target = "h200") {
  Graph graph = split_reductions(read_graph(text), device_spec(target), 4);
  verify_graph(graph);
  return graph;
}

// Shapes of what the reductions of this op read, in order.
std::vector<std::string> operands_of(const Graph& graph, OpKind op) {
  std::vector<std::string> operands;
  for (const Node& node : graph.nodes) {
    if (node.op == op) operands.push_back(to_string(graph[node.inputs[0]].type));
  }
  return operands;
}

using Operands = std::vector<std::string>;

TEST(SplitReductions, SmallOnesAndThoseWithEnoughBlocksStay) {
  for (const char* text : {"%x = input : f32[64,64]\n%y = sum(%x)\noutputs (%y)\n",
                           "%x = input : f32[4096,4096]\n%y = sum(%x){axes=[1]}\noutputs (%y)\n",
                           "%x = input : f32[8,65536,768]\n%y = amax(%x){axes=[0]}\n"
                           "outputs (%y)\n"}) {
    EXPECT_EQ(to_string(split(text)), to_string(read_graph(text)));
  }
}

TEST(SplitReductions, AWholeTensorBecomesPieces) {
  const Graph graph = split("%x = input : f32[1048576]\n%y = sum(%x)\noutputs (%y)\n");
  const Operands operands = operands_of(graph, OpKind::k_sum);
  ASSERT_EQ(operands.size(), 2u);
  EXPECT_EQ(operands[0], "f32[256,4096]");
  EXPECT_EQ(operands[1], "f32[256]");
}

// AStitch 3.3: 80 multiprocessors hold 160 blocks of 1024 threads.
DeviceSpec volta() {
  DeviceSpec device = device_spec("a100");
  device.multiprocessors = 80;
  device.dram_bytes_per_us = 0.81e6;
  return device;
}

TEST(SplitReductions, FewLongRowsFillOneWaveAsPublished) {
  const std::string text = "%x = input : f32[64,30000]\n%y = sum(%x){axes=[1]}\noutputs (%y)\n";
  const Graph graph = split_reductions(read_graph(text), volta(), 4);
  EXPECT_EQ(operands_of(graph, OpKind::k_sum), (Operands{"f32[64,2,15000]", "f32[64,2]"}));
  EXPECT_EQ(operands_of(split(text, "h200"), OpKind::k_sum),
            (Operands{"f32[64,4,7500]", "f32[64,4]"}));
}

TEST(SplitReductions, ManyShortRowsShareBlocksAsPublished) {
  const std::string text = "%x = input : f32[750000,32]\n%y = sum(%x){axes=[1]}\noutputs (%y)\n";
  const Graph graph = read_graph(text);
  for (const DeviceSpec& device : {volta(), device_spec("h200")}) {
    EXPECT_EQ(to_string(split_reductions(graph, device, 4)), to_string(graph));
    const Stages stages = {{{NodeId(1)}, {NodeId(1)}, {NodeId(0)}, {NodeId(1)}}};
    const StageSchedule schedule =
        KernelScheduler{graph, stages, {device, 4}}.schedule_alone(0, {});
    const MappedAxis &row = schedule.axes[0], &column = schedule.axes[1];
    EXPECT_GE(row.threads(), 8) << "rows of a block";
    EXPECT_GE(schedule.threads, 128);
    EXPECT_EQ(column.threads() * column.vector(), 32) << "a row is one access of each of its lanes";
    EXPECT_EQ(schedule.shared_bytes, 0) << "within a warp";
  }
}

TEST(SplitReductions, ABarrierMustCostLessThanIdleMultiprocessors) {
  auto pieces = [](const char* type) {
    return operands_of(
        split(std::string("%x = input : ") + type + "\n%y = sum(%x){axes=[0]}\noutputs (%y)\n"),
        OpKind::k_sum);
  };
  EXPECT_EQ(pieces("f32[2048,2048]"), (Operands{"f32[4,512,2048]", "f32[4,2048]"}));
  EXPECT_EQ(pieces("f32[256,2048]"), (Operands{"f32[256,2048]"}));
  EXPECT_EQ(pieces("f32[1024,4096]"), (Operands{"f32[1024,4096]"})) << "128 blocks of columns";
}

TEST(SplitReductions, PiecesAreOfADimensionThatIsLongEnough) {
  const Graph graph =
      split("%x = input : f32[4,4,262144]\n%y = sum(%x){axes=[1,2]}\noutputs (%y)\n");
  EXPECT_EQ(operands_of(graph, OpKind::k_sum), (Operands{"f32[4,4,64,4096]", "f32[4,64]"}));
}

// Norms' gradients of [batch, tokens, features] are cut like those of [tokens, features].
TEST(SplitReductions, LeadingDimensionsAreCutAsOne) {
  const Graph graph = split(R"(
    %x = input : f32[32,128,768]
    %columns = sum(%x){axes=[0,1]}
    %rows = sum(%x){axes=[2]}
    outputs (%columns, %rows)
  )");
  EXPECT_EQ(operands_of(graph, OpKind::k_sum),
            (Operands{"f32[256,16,768]", "f32[256,768]", "f32[32,128,768]"}));
  const Graph apart = split(R"(
    %x = input : f32[32,128,768]
    %first = sum(%x){axes=[0,2]}
    %second = sum(%x){axes=[1,2]}
    outputs (%first, %second)
  )");
  EXPECT_EQ(operands_of(apart, OpKind::k_sum)[0].find("f32[32,128,"), 0u)
      << "no reduction of one has the other";
}

TEST(SplitReductions, ReductionsOfOneTensorAreSplitAlongOneAxis) {
  const Graph graph = split(R"(
    %x = input : f32[4096,4096]
    %columns = sum(%x){axes=[0]}
    %rows = sum(%x){axes=[1]}
    %largest = amax(%x)
    outputs (%columns, %rows, %largest)
  )");
  const Operands sums = operands_of(graph, OpKind::k_sum);
  const Operands maxima = operands_of(graph, OpKind::k_amax);
  EXPECT_EQ(sums, (Operands{"f32[256,16,4096]", "f32[256,4096]", "f32[4096,4096]"}));
  EXPECT_EQ(maxima, (Operands{"f32[256,16,4096]", "f32[256]"}));
}

// Of 1024 rows half as many pieces have half the partial rows to write and read, an eighth of all
// bytes; of 4096 those are too few to leave multiprocessors with one block.  Of 704, 176 pieces end
// no sooner than 88: some multiprocessors have two.
TEST(SplitReductions, FewerPiecesWherePartialResultsCostMore) {
  for (const auto& [rows, piece] : {std::pair(1024, "128,8"), {4096, "256,16"}, {704, "88,8"}}) {
    const Graph graph = split("%x = input : f32[" + std::to_string(rows) + R"(,4096]
      %columns = sum(%x){axes=[0]}
      %rows = sum(%x){axes=[1]}
      outputs (%columns, %rows)
    )");
    EXPECT_EQ(operands_of(graph, OpKind::k_sum)[0], "f32[" + std::string(piece) + ",4096]");
  }
}

TEST(SplitReductions, TheHostSplitsForItsWorkers) {
  const Graph graph =
      split("%x = input : f32[16384,256]\n%y = sum(%x){axes=[0]}\noutputs (%y)\n", "cpu");
  const Operands operands = operands_of(graph, OpKind::k_sum);
  ASSERT_EQ(operands.size(), 2u);
  EXPECT_EQ(operands[0], "f32[32,512,256]");
}

TEST(SplitReductions, PrimeExtentsArePaddedWithTheIdentity) {
  const Graph graph = split("%x = input : f32[1000003]\n%y = amax(%x)\noutputs (%y)\n");
  const Node* pad = nullptr;
  for (const Node& node : graph.nodes) {
    if (node.op == OpKind::k_pad) pad = &node;
  }
  ASSERT_NE(pad, nullptr) << to_string(graph);
  EXPECT_EQ(pad->number, -HUGE_VAL);
  const int64_t padded = pad->type.shape[0].value();
  EXPECT_GE(padded, 1000003);
  EXPECT_LT(padded, 1000003 + 4096);
  EXPECT_EQ(operands_of(graph, OpKind::k_amax).size(), 2u);
}

TEST(SplitReductions, IntegersArePaddedWithTheirOwnExtremes) {
  const Graph smallest = split("%x = input : i32[1000003]\n%y = amin(%x)\noutputs (%y)\n");
  const Graph largest = split("%x = input : u8[1000003]\n%y = amax(%x)\noutputs (%y)\n");
  for (const Node& node : smallest.nodes) {
    if (node.op != OpKind::k_pad) continue;
    EXPECT_EQ(node.integer, INT32_MAX);
  }
  for (const Node& node : largest.nodes) {
    if (node.op != OpKind::k_pad) continue;
    EXPECT_EQ(node.integer, 0);
  }
  EXPECT_EQ(operands_of(smallest, OpKind::k_amin).size(), 2u);
  EXPECT_EQ(operands_of(largest, OpKind::k_amax).size(), 2u);
}

TEST(SplitReductions, PartialSumsKeepTheAccumulatorsPrecision) {
  const Graph graph = split("%x = input : f16[1048576]\n%y = sum(%x) : f16\noutputs (%y)\n");
  std::vector<DType> dtypes;
  for (const Node& node : graph.nodes) {
    if (node.op == OpKind::k_sum) dtypes.push_back(node.type.dtype);
  }
  EXPECT_EQ(dtypes, (std::vector<DType>{DType::kF32, DType::kF32}));
  EXPECT_EQ(graph[graph.outputs[0].node].type.dtype, DType::kF16);
}

TEST(SplitReductions, PositionsAreNotSplit) {
  const std::string text = "%x = input : f32[1048576]\n%y = argmax(%x)\noutputs (%y)\n";
  EXPECT_EQ(to_string(split(text)), to_string(read_graph(text)));
}

TEST(SplitReductions, SymbolicExtentsArePaddedToPieces) {
  const Graph graph = split(R"(
    symbols s0 = input(0) hint 1000000
    %x = input : f32[s0]
    %y = sum(%x)
    outputs (%y)
  )");
  const Operands operands = operands_of(graph, OpKind::k_sum);
  ASSERT_EQ(operands.size(), 2u) << to_string(graph);
  ASSERT_EQ(graph.symbols.symbols.size(), 2u);
  EXPECT_EQ(graph.symbols.symbols[1].kind, Symbol::Kind::kFloorDiv);
  // Pieces times their length cover every length, not only the hint.
  for (int64_t length : {1, 5, 244, 245, 1000003}) {
    const std::vector<int64_t> symbols = graph.symbols.evaluate({length});
    for (const Node& node : graph.nodes) {
      if (node.op != OpKind::k_pad) continue;
      EXPECT_GE(evaluate(node.type.shape[0], symbols), length);
    }
  }
}

// Deviations from each piece's own mean, put together (Chan, Golub and LeVeque 1979).
TEST(SplitReductions, SquaredDeviationsNeedNoSecondPassAndStayExact) {
  const Graph graph = split("%x = input : f32[65536]\n%y = sum_sq_dev(%x) : f32\noutputs (%y)\n");
  ASSERT_EQ(operands_of(graph, OpKind::k_sum_sq_dev), Operands{});
  // Of values, of deviations and of their squares: first of the pieces, then of all.
  Operands sums = operands_of(graph, OpKind::k_sum), of_both(3, "f32[16,4096]");
  of_both.insert(of_both.end(), 3, "f32[16]");
  std::ranges::sort(sums);
  EXPECT_EQ(sums, of_both);
  // A large offset: the textbook formula (sum of squares minus square of sum) loses everything.
  ReferenceTensor x{{65536}, {}};
  for (int i = 0; i < 65536; ++i) x.elements.push_back(10000 + i % 7 + i / 4096);
  const double mean = std::accumulate(x.elements.begin(), x.elements.end(), 0.0) / 65536;
  double expected = 0;
  for (double element : x.elements) expected += (element - mean) * (element - mean);
  const double split_result = interpret(rewrite_graph(graph), {x}, {})[0].elements[0];
  EXPECT_NEAR(split_result / expected, 1, 1e-6);
}

// 73 pieces of 4,112: the last holds 3,937 elements.
TEST(SplitReductions, DeviationsOfUnevenPiecesCountWhatThesePiecesHold) {
  const Graph graph = split("%x = input : f32[300001]\n%y = sum_sq_dev(%x) : f32\noutputs (%y)\n");
  const Operands sums = operands_of(graph, OpKind::k_sum);
  EXPECT_EQ(std::ranges::count(sums, "f32[73,4112]"), 3) << "values, deviations, squares";
  EXPECT_EQ(operands_of(graph, OpKind::k_minimum), Operands{"i64[73]"});
  EXPECT_EQ(operands_of(graph, OpKind::k_lt), Operands{"i64[73,4112]"});
}

// exp(x - amax(x)) of rows of this type, summed, and the maxima.
std::string exponentials(const std::string& type, const std::string& result) {
  return "%x = input : " + type + R"(
    %wide = cast(%x) : f32
    %largest = amax(%wide){axes=[1], keepdim}
    %below = sub(%wide, %largest)
    %exp = exp(%below)
    %sum = sum(%exp){axes=[1]} : f32
    outputs ()" +
         result + ")\n";
}

TEST(SplitReductions, ExponentialsWaitForNoMaximumInPiecesThatAThreadHolds) {
  const Graph f32 = split(exponentials("f32[4096,49152]", "%sum, %largest"));
  const Operands maxima = {"f32[4096,24,4,128,4]", "f32[4096,24,128]"};
  EXPECT_EQ(operands_of(f32, OpKind::k_amax), maxima) << to_string(f32);
  EXPECT_EQ(operands_of(f32, OpKind::k_sum), maxima);
  // A vector of 16 bytes is eight of these; 12 pieces of 4,096 are as many elements.
  const Graph bf16 = split(exponentials("bf16[4096,49152]", "%sum"));
  EXPECT_EQ(operands_of(bf16, OpKind::k_sum),
            (Operands{"f32[4096,12,4,128,8]", "f32[4096,12,128]"}));
  const Graph odd = split(exponentials("f32[4096,50257]", "%sum"));
  EXPECT_EQ(operands_of(odd, OpKind::k_sum)[0], "f32[4096,25,4,128,4]") << "padded";
}

TEST(SplitReductions, RowsThatABlockHoldsStayWhole) {
  for (const std::string& text :
       {exponentials("f32[4096,16384]", "%sum"), exponentials("f32[4096,16384]", "%exp, %sum"),
        exponentials("bf16[4096,65536]", "%exp, %sum"),
        exponentials("f32[4096,50257]", "%exp, %sum")})
    EXPECT_EQ(to_string(split(text)), to_string(read_graph(text)));
  const Graph longer = split(exponentials("f32[4096,65792]", "%exp, %sum"));
  EXPECT_EQ(operands_of(longer, OpKind::k_amax).size(), 2u) << "written out, but held by no block";
}

// 32000 = 4 pieces of 4 vectors of 500 threads.
TEST(SplitReductions, ThreadsLookAgainAtRowsThatABlockHoldsWithoutPadding) {
  const auto sums = [](const std::string& type, const char* result) {
    return operands_of(split(exponentials(type, result)), OpKind::k_sum);
  };
  EXPECT_EQ(sums("f32[4096,32000]", "%exp, %sum"),
            (Operands{"f32[4096,4,4,500,4]", "f32[4096,4,500]"}));
  EXPECT_EQ(sums("f32[4096,65536]", "%exp, %sum")[0], "f32[4096,8,4,512,4]");
  EXPECT_EQ(sums("f32[192,32000]", "%exp, %sum")[0], "f32[192,32000]") << "a third has no block";
}

TEST(SplitReductions, RowsOfTooManyPiecesOfThreadsAreCutForBlocksFirst) {
  const Graph graph = split(exponentials("f32[256,1048576]", "%sum"));
  EXPECT_EQ(operands_of(graph, OpKind::k_amax),
            (Operands{"f32[256,64,8,4,128,4]", "f32[256,64,8,128]", "f32[256,64]"}));
}

TEST(SplitReductions, FewLongRowsThatAreWrittenOutAreLookedAtInPieces) {
  const Graph f32 = split(exponentials("f32[12,1048576]", "%exp, %sum"));
  EXPECT_EQ(operands_of(f32, OpKind::k_amax),
            (Operands{"f32[12,64,4,4,256,4]", "f32[12,64,4,256]", "f32[12,64]"}));
  const Graph bf16 = split(exponentials("bf16[12,1048576]", "%exp, %sum"));
  EXPECT_EQ(operands_of(bf16, OpKind::k_amax), (Operands{"f32[12,64,16384]", "f32[12,64]"}));
}

TEST(SplitReductions, ASumOfExponentialsOfFewRowsIsOfItsPiecesOwnMaxima) {
  const Graph graph = split(exponentials("f32[4,1048576]", "%sum"));
  const Operands pieces = {"f32[4,64,8,4,128,4]", "f32[4,64,8,128]", "f32[4,64]"};
  EXPECT_EQ(operands_of(graph, OpKind::k_sum), pieces);
  EXPECT_EQ(operands_of(graph, OpKind::k_amax), pieces);
  const Graph fewer = split(exponentials("f32[24,131072]", "%sum"));
  EXPECT_EQ(operands_of(fewer, OpKind::k_sum), (Operands{"f32[24,8,16384]", "f32[24,8]"}))
      << "192 blocks do not keep 132 multiprocessors busy";
}

// Entropy of rows of this type, `log` being the logarithms as they are read again.
std::string entropy(const std::string& type, const std::string& log) {
  return "%x = input : " + type + R"(
    %wide = cast(%x) : f32
    %largest = amax(%wide){axes=[1], keepdim}
    %below = sub(%wide, %largest)
    %sum = sum(exp(%below)){axes=[1], keepdim} : f32
    %exact = sub(%below, log(%sum))
    %log = )" +
         log + R"(
    %entropy = sum(neg(mul(%log, exp(%log)))){axes=[1]} : f32
    outputs (%entropy)
  )";
}

TEST(SplitReductions, AnEntropyWaitsForNothingOfItsRow) {
  const auto reads_again = [](const Graph& graph) {
    const Operands sums = operands_of(graph, OpKind::k_sum);
    return std::ranges::count_if(sums, [](const std::string& type) {
             return type.ends_with("[160,131072]") || type.starts_with("bf16");
           }) > 0;
  };
  const Graph f32 = split(entropy("f32[160,131072]", "sub(%exact, full{number=0} : f32)"));
  const Operands pieces = {"f32[160,8,8,4,128,4]", "f32[160,8,8,128]", "f32[160,8]"};
  Operands both = pieces;
  both.insert(both.end(), pieces.begin(), pieces.end());
  EXPECT_EQ(operands_of(f32, OpKind::k_sum), both);
  EXPECT_FALSE(reads_again(split(entropy("bf16[160,131072]", "cast(%exact){integer=1} : bf16"))));
  EXPECT_TRUE(reads_again(split(entropy("bf16[160,131072]", "cast(%exact) : bf16"))))
      << "the user's rounding stays";
  const std::string text = entropy("bf16[160,131072]", "cast(%exact){integer=1} : bf16");
  EXPECT_TRUE(reads_again(split_reductions(read_graph(text), device_spec("h200"), 4, true)))
      << "eager's rounding is asked for";
}

// Softmax of columns, and the sums that it divides by.
std::string columns_of(const std::string& type, const std::string& result) {
  return "%x = input : " + type + R"(
    %largest = amax(%x){axes=[0]}
    %exp = exp(sub(%x, %largest))
    %sum = sum(%exp){axes=[0]} : f32
    outputs ()" +
         result + ")\n";
}

TEST(SplitReductions, AllBlocksLookAgainAtWhatNoTwoHold) {
  const auto waits = [](const Graph& graph) {  // for the maximum of all
    return std::ranges::count(graph.nodes, OpKind::k_minimum, &Node::op) == 0;
  };
  const char *written = "%sum, %exp", *summed = "%sum";
  EXPECT_FALSE(waits(split(columns_of("f32[5120,2048]", written)))) << "32 columns of 1280 rows";
  EXPECT_TRUE(waits(split(columns_of("f32[6144,2048]", written)))) << "32 columns of 1536 rows";
  EXPECT_FALSE(waits(split(columns_of("f32[6144,2048]", summed)))) << "threads hold what they need";
}

// 1280 rows are 128 pieces of 10, so that 64 threads have two each.
TEST(SplitReductions, ThreadsLookAgainAtTheRowsOfColumnsThatBlocksOfThemDivide) {
  const Graph graph = split(columns_of("f32[5120,2048]", "%sum, %exp"));
  EXPECT_EQ(operands_of(graph, OpKind::k_sum),
            (Operands{"f32[4,128,10,2048]", "f32[4,128,2048]", "f32[4,2048]"}));
}

TEST(SplitReductions, DeviationsOfLongRowsAreTakenFromTheirPiecesMeans) {
  const auto sums = [](const std::string& type, const std::string& axes) {
    return operands_of(split("%x = input : " + type + "\n%y = sum_sq_dev(%x){axes=" + axes +
                             "} : f32\noutputs (%y)\n"),
                       OpKind::k_sum);
  };
  EXPECT_EQ(sums("f32[4096,32768]", "[1]")[0], "f32[4096,16,4,128,4]");
  EXPECT_EQ(sums("f32[4096,64,512]", "[1,2]")[0], "f32[4096,16,4,128,4]") << "cut as one";
  EXPECT_EQ(sums("f32[256,1048576]", "[1]")[0], "f32[256,64,16384]") << "too many for threads";
  EXPECT_TRUE(sums("f32[4096,32769]", "[1]").empty()) << "padding would count as elements";
  EXPECT_EQ(sums("f32[64,256,4096]", "[0,2]")[0], "f32[64,1,256,4096]") << "lie apart";
}

TEST(SplitReductions, ColumnsAreCutInPiecesOfAFewRows) {
  const Graph graph = split(columns_of("f32[8192,8192]", "%sum, %exp"));
  EXPECT_EQ(operands_of(graph, OpKind::k_sum), (Operands{"f32[1024,8,8192]", "f32[1024,8192]"}));
}

}  // namespace
}  // namespace stitch
