#include "rewrite/attention/attention.h"

#include <cmath>

#include "ops/library_calls.h"
#include "rewrite/attention_graph.h"
#include "rewrite/expect_rewrite.h"
#include "rewrite/rewrite_graph.h"

namespace stitch {
namespace {

Graph call_on(const Graph& graph, bool on_gpu) {
  std::vector<Attention> chosen = find_attention(graph);
  for (const Attention& attention : chosen) EXPECT_TRUE(attention.verdict);
  return remove_dead(merge_views(remove_dead(call_attention(graph, chosen, on_gpu))));
}

Graph call_all(const Graph& graph) { return call_on(graph, false); }

// What is called on a GPU for queries of [2,3,8,width], keys of [2,3,columns,width].
std::string name_on_gpu(const std::string& dtype, int columns, int width, bool is_masked) {
  const std::string c = std::to_string(columns), w = std::to_string(width);
  const std::string inputs = is_masked ? "%m = input : " + dtype + "[2,1,1," + c + "]\n" : "";
  const std::string q = dtype + "[2,3,8," + w + "]", k = dtype + "[2,3," + c + "," + w + "]";
  const std::string scores = is_masked ? "add(%s, %m)" : "%s";
  const Graph graph = call_on(
      read_graph(
          inputs + "%q = input : " + q + "\n%k = input : " + k + "\n%v = input : " + k +
          "\n%kt = permute(%k){order=[0,1,3,2]}\n%q3 = reshape(%q){shape=[6,8," + w +
          "]}\n%k3 = reshape(%kt){shape=[6," + w + "," + c + "]}\n%v3 = reshape(%v)" +
          "{shape=[6," + c + "," + w + "]}\n%s3 = library(%q3, %k3){name=\"aten.bmm.default\"," +
          " integer=0} : " + dtype + "[6,8," + c + "]\n%s = reshape(%s3){shape=[2,3,8," + c +
          "]}\n%x = cast(" + scores + ") : f32\n%e = exp(sub(%x, reshape(amax(%x){axes=[3]})" +
          "{shape=[2,3,8,1]}))\n%p = div(%e, reshape(sum(%e){axes=[3]}){shape=[2,3,8,1]})\n" +
          "%p3 = cast(reshape(%p){shape=[6,8," + c + "]}) : " + dtype +
          "\n%y = library(%p3, %v3){name=\"aten.bmm.default\", integer=1} : " + dtype + "[6,8," +
          w + "]\noutputs (%y)"),
      true);
  for (const Node& node : graph.nodes) {
    if (node.op == OpKind::k_library) return node.name;
  }
  return "";
}

const std::string kInputs = R"(
    %q = input : f32[2,3,8,4]
    %k = input : f32[2,3,6,4]
    %v = input : f32[2,3,6,4]
)";

std::string called(const std::string& operands, const std::string& scale) {
  return "%a = library(" + operands +
         "){name=\"aten.scaled_dot_product_attention.default\", integer=-1, number=" + scale +
         "} : f32[2,3,8,4](96,4,12,1)\n";
}

const char* const kRead = "%y = reshape(%a){shape=[6,8,4]}\noutputs (%y)";

TEST(CallAttention, WithoutMask) {
  expect_rewrite(call_all, attention_text("%x = div(%s, 2)"),
                 kInputs + called("%q, %k, %v", "0.5") + kRead);
}

TEST(CallAttention, TheReaderOfTheResultSeesItsHeadsAgain) {
  const Graph graph = call_all(
      read_graph(std::string(kHeads) + "%x = mul(%s, 0.5)" + kSoftmax +
                 "%y = library(%p3, %v3){name=\"aten.bmm.default\", integer=1} : f32[6,8,4]\n"
                 "%j = permute(reshape(%y){shape=[2,3,8,4]}){order=[0,2,1,3]}\n"
                 "%z = neg(reshape(%j){shape=[2,8,12]})\n"
                 "outputs (%z)"));
  int copies = 0;
  for (const Node& node : graph.nodes)
    copies += node.op == OpKind::k_reshape && node.type.shape == std::vector<Dim>{6, 8, 4};
  EXPECT_EQ(copies, 0) << to_string(graph);
}

TEST(CallAttention, MasksBecomeOneThatIsAdded) {
  const std::string inputs = "%c = input : bool[1,1,1,6]\n";
  expect_rewrite(call_all,
                 attention_text(R"(
    %t = select(%c, 0.0, -10000.0)
    %x = add(div(%s, 2), %t)
  )",
                                inputs),
                 inputs + kInputs + "%t = select(%c, 0.0, -10000.0)\n" +
                     called("%q, %k, %v, %t", "0.5") + kRead);
}

TEST(CallAttention, RowsThatMayBeHiddenAltogetherAreNaN) {
  const std::string inputs = "%c = input : bool[8,6]\n";
  expect_rewrite(call_all, attention_text("%x = select(%c, -inf, %s)", inputs),
                 inputs + kInputs + "%i = full{number=-inf} : f32[]\n" +
                     "%m = select(reshape(%c){shape=[1,1,8,6]}, %i, 0.0)\n" +
                     "%h = eq(reshape(amax(%m){axes=[3]}){shape=[1,1,8,1]}, %i)\n"
                     "%n = select(%h, nan, %m)\n" +
                     called("%q, %k, %v, %n", "1") + kRead);
}

// Heads side by side, times %w, of which `reads` makes the outputs.
std::string projected(const std::string& reads) {
  return std::string(kHeads) + "%x = select(%c, -inf, %s)" + kSoftmax +
         "%y = library(%p3, %v3){name=\"aten.bmm.default\", integer=1} : f32[6,8,4]\n"
         "%j = permute(reshape(%y){shape=[2,3,8,4]}){order=[0,2,1,3]}\n"
         "%j2 = reshape(%j){shape=[16,12]}\n" +
         reads;
}

// How often a NaN is chosen for elements of this type.
int count_marks(const Graph& graph, const std::string& type) {
  int marks = 0;
  for (const Node& node : graph.nodes) {
    marks += node.op == OpKind::k_select && to_string(node.type) == type &&
             std::isnan(graph[node.inputs[1]].number);
  }
  return marks;
}

TEST(CallAttention, HiddenRowsAreMarkedInTheProductThatAloneReadsThem) {
  const std::string weights = "%w = input : f32[12,5]\n%b = input : f32[5]\n";
  const std::string product =
      "%z = library(%b, %j2, %w){name=\"aten.addmm.default\", integer=2} : f32[16,5]\n";
  for (const std::string mask : {"bool[8,6]", "bool[2,1,1,6]", "bool[2,1,8,6]", "bool[1,1,1,6]"}) {
    const Graph graph = call_all(
        read_graph("%c = input : " + mask + "\n" + weights + projected(product + "outputs (%z)")));
    EXPECT_EQ(count_marks(graph, "f32[16,5]"), 1) << to_string(graph);
    EXPECT_EQ(graph[graph.outputs[0].node].op, OpKind::k_select) << to_string(graph);
  }
  const auto marks_mask = [&](const std::string& mask, const std::string& reads) {
    const Graph graph =
        call_all(read_graph("%c = input : " + mask + "\n" + weights + projected(reads)));
    return count_marks(graph, "f32[16,5]") == 0 && count_marks(graph, "f32" + mask.substr(4)) == 1;
  };
  EXPECT_TRUE(marks_mask("bool[1,3,1,6]", product + "outputs (%z)")) << "a mask of each head";
  EXPECT_TRUE(marks_mask("bool[2,1,1,6]", product + "outputs (%z, %j)")) << "the rows are seen";
  EXPECT_TRUE(marks_mask("bool[2,1,1,6]", product + "%n = neg(%j2)\noutputs (%z, %n)")) << "twice";
  EXPECT_TRUE(marks_mask("bool[2,1,1,6]",
                         "%t = reshape(%j2){shape=[12,16]}\n%l = input : f32[5,12]\n"
                         "%z = library(%l, %t){name=\"aten.mm.default\", integer=2} : f32[5,16]\n"
                         "outputs (%z)"))
      << "the rows are summed over";
}

TEST(CallAttention, AnOutputKeepsItsStrides) {
  const std::string text = attention_text("%x = mul(%s, 0.5)");
  std::string one_batch = text;
  for (size_t at = 0; (at = one_batch.find("[2,3,", at)) != std::string::npos;)
    one_batch.replace(at, 5, "[1,6,");
  const Graph graph = call_all(read_graph(one_batch));
  int products = 0;
  for (const Node& node : graph.nodes) products += node.name == "aten.bmm.default";
  EXPECT_EQ(products, 0);
  EXPECT_EQ(to_string(graph[graph.outputs[0].node].type), "f32[6,8,4]");
}

TEST(CallAttention, AKeyOfContiguousColumnsIsCopied) {
  const Graph graph = call_all(read_graph(R"(
    %q = input : f32[6,8,4]
    %k = input : f32[6,4,6]
    %v = input : f32[6,6,4]
    %x = library(%q, %k){name="aten.bmm.default", integer=0} : f32[6,8,6]
    %e = exp(sub(%x, reshape(amax(%x){axes=[2]}){shape=[6,8,1]}))
    %p = div(%e, reshape(sum(%e){axes=[2]}){shape=[6,8,1]})
    %y = library(%p, %v){name="aten.bmm.default", integer=1} : f32[6,8,4]
    outputs (%y)
  )"));
  for (const Node& node : graph.nodes) {
    if (node.op != OpKind::k_library) continue;
    EXPECT_EQ(to_string(graph[node.inputs[1]].type), "f32[6,1,6,4]");
    EXPECT_EQ(graph[node.inputs[1]].op, OpKind::k_layout);
  }
}

TEST(CallAttention, OnAGpuTheKernelIsNamedWhereSizesAllowIt) {
  EXPECT_EQ(name_on_gpu("bf16", 32, 64, false), kFlashAttention);
  EXPECT_EQ(name_on_gpu("bf16", 32, 512, false), kEfficientAttention);
  EXPECT_EQ(name_on_gpu("f32", 32, 64, false), kEfficientAttention);
  EXPECT_EQ(name_on_gpu("bf16", 32, 64, true), kEfficientAttention);
  EXPECT_EQ(name_on_gpu("bf16", 24, 64, true), kAttentionCall);  // half a tile of the mask
  EXPECT_EQ(name_on_gpu("bf16", 32, 4, false), kAttentionCall);  // half a read
}

TEST(CallAttention, NothingChosenChangesNothing) {
  const Graph graph = read_graph(attention_text("%x = div(%s, 2)"));
  EXPECT_EQ(to_string(call_attention(graph, {}, true)), to_string(graph));
}

TEST(CallAttention, TheTextOfACallReadsBack) {
  const std::string text = to_string(call_all(read_graph(attention_text("%x = mul(%s, 0.3)"))));
  EXPECT_EQ(to_string(read_graph(text)), text);
}

}  // namespace
}  // namespace stitch
