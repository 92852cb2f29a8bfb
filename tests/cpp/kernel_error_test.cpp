#include "compilation.h"

#include "plan/plan_graph.h"
#include "support/own_node.h"

namespace stitch {
namespace {

// Two kernels around a library call; op n of the text has position 10 + n, but for one that was
// made in here.
Planned two_kernels() {
  Planned planned = plan_graph(R"(
    %x = input : f32[64,64]
    %e = exp(neg(%x))
    %m = library(%e, %x){name="aten.mm.default"} : f32[64,64]
    %y = tanh(%m)
    outputs (%y)
  )",
                               "cpu");
  for (int n = 0; n < planned.graph.size(); ++n) {
    Node& node = own(planned.graph.nodes[n]);
    if (node.op != OpKind::k_neg) node.origin.position = 10 + n;
  }
  return planned;
}

TEST(KernelError, NamesTheOpsOfTheKernelThatFailed) {
  const Planned planned = two_kernels();
  ASSERT_EQ(planned.plan.kernels.size(), 2u) << to_string(planned.plan, planned.graph);
  int calls = 0;
  try {
    for_each_kernel(planned.graph, planned.plan, [&](size_t k) {
      ++calls;
      if (k == 1) throw UnsupportedError("no way to say this");
    });
    FAIL() << "nothing was thrown";
  } catch (const KernelError& error) {
    EXPECT_STREQ(error.what(), "no way to say this");
    ASSERT_EQ(error.ops.size(), 1u);
    EXPECT_EQ(planned.graph.nodes[error.ops[0] - 10]->op, OpKind::k_tanh);
  }
  EXPECT_EQ(calls, 2);
}

TEST(KernelError, OpsOfKernelsAreFoundOnceAndOnesWithoutPositionAreLeftOut) {
  const Planned planned = two_kernels();
  const auto find_ops = [&](const std::vector<size_t>& kernels) {
    return KernelError(InternalError("broken"), planned.graph, planned.plan, kernels).ops;
  };
  EXPECT_EQ(find_ops({0, 1}).size(), 2u);
  const std::vector<int> ops = find_ops({0});
  ASSERT_EQ(ops.size(), 1u);
  EXPECT_EQ(planned.graph.nodes[ops[0] - 10]->op, OpKind::k_exp);
  EXPECT_TRUE(find_ops({}).empty());
}

}  // namespace
}  // namespace stitch
