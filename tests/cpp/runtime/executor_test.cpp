#include "runtime/executor.h"

#include <gtest/gtest.h>

#include "cpp/runtime/fake_frame.h"
#include "runtime/driver.h"
#include "support/own_node.h"

namespace stitch {
namespace {

template <KernelFailure failure>
void fail(void* const*, const int64_t*, int64_t, int64_t, int32_t* error) {
  *error = static_cast<int32_t>(failure);
}

// A program of one op that fails.
Program failing_program(OpKind op, DType dtype, Origin origin, decltype(&fail<{}>) entry) {
  FakePlan plan;
  const NodeId x = plan.add_input(floats({2}));
  const NodeId y = plan.add_kernel(x, 1, 2);
  Node& node = own(plan.graph.nodes[y.index()]);
  node.op = op;
  node.inputs = {x, x};
  node.ints = {0};
  node.type.dtype = dtype;
  node.origin = std::move(origin);
  plan.sources[0].may_fail = true;
  plan.kernels[0].entry = reinterpret_cast<void*>(entry);
  plan.returns(y);
  return plan.build();
}

template <class Failure>
std::string message_of(const Program& program) {
  FakeFrame frame(program);
  frame.set(0, {1, 2});
  try {
    run(program, frame, {});
  } catch (const Failure& error) {
    return error.what();
  }
  return "no error";
}

TEST(Executor, SymbolsGiveSizesGridsAndTheSlab) {
  FakePlan plan;
  const Dim n = plan.graph.symbols.add_input(0, 4);
  plan.graph.integer_positions = {1};
  NodeId x = plan.add_input(floats({n, 100}));
  plan.graph.argument_count = 2;
  x = plan.add_kernel(plan.add_kernel(x, n, 100), n, 100);
  plan.returns(x);
  const Program program = plan.build();
  for (const int64_t size : {1, 9, 0}) {
    FakeFrame frame(program);
    frame.set(0, std::vector<float>(size * 100, 1));
    EXPECT_EQ(run(program, frame, {size}), std::vector<int64_t>{size});
    EXPECT_EQ(frame.output(0), std::vector<float>(size * 100, 3));
    EXPECT_EQ(frame.slab_bytes, (std::max<int64_t>(size * 400, 1) + 255) / 256 * 256);
  }
}

TEST(Executor, LargeLaunchesAreSplitAndSmallOnesAreNot) {
  for (const int64_t blocks : {1, 4, 1000}) {
    FakePlan plan;
    const NodeId x = plan.add_input(floats({blocks * 100}));
    plan.returns(plan.add_kernel(x, blocks, 100));
    const Program program = plan.build();
    FakeFrame frame(program);
    frame.set(0, std::vector<float>(blocks * 100, 1));
    run(program, frame, {});
    EXPECT_EQ(frame.parallel_calls, blocks == 1000 ? 1 : 0);
    EXPECT_EQ(frame.output(0), std::vector<float>(blocks * 100, 2));
  }
}

TEST(Executor, MisalignedAddressesAreAligned) {
  FakePlan plan;
  const NodeId x = plan.add_input(floats({9}));
  const NodeId view = plan.add_alias(x, floats({8}), 1);
  plan.returns(plan.add_kernel(view, 1, 8));
  plan.sources[0].pointers[0].alignment_bytes = 8;
  const Program program = plan.build();
  FakeFrame frame(program);
  frame.set(0, std::vector<float>(9, 1));
  run(program, frame, {});
  EXPECT_NE(std::find(frame.log.begin(), frame.log.end(), "align 2"), frame.log.end());
}

TEST(Executor, AnIndexOutOfRangeNamesTheOpsOfTheKernel) {
  const Program program =
      failing_program(OpKind::k_gather, DType::kF32, {"aten.gather.default", "model.py:31"},
                      &fail<KernelFailure::kIndexOutOfRange>);
  EXPECT_EQ(message_of<FailedCallError>(program),
            "index out of range in aten.gather.default at model.py:31");
}

TEST(Executor, ADivisionByZeroNamesTheOpsOfTheKernel) {
  const Program program =
      failing_program(OpKind::k_remainder, DType::kI32, {"aten.remainder.Tensor", "model.py:7"},
                      &fail<KernelFailure::kDivisionByZero>);
  EXPECT_EQ(message_of<FailedCallError>(program),
            "ZeroDivisionError in aten.remainder.Tensor at model.py:7");
}

TEST(Executor, AFailedAssertionSaysWhatTheUserSaid) {
  const Program program =
      failing_program(OpKind::k_assert_true, DType::kBool, {"aten._assert_async.msg", "model.py:9"},
                      &fail<KernelFailure::kAssertionFailed>);
  EXPECT_EQ(message_of<FailedCallError>(program), " in aten._assert_async.msg at model.py:9");
}

TEST(Executor, ManyPointersGoBeyondTheInlineArray) {
  FakePlan plan;
  std::vector<NodeId> inputs;
  for (int i = 0; i < 100; ++i) inputs.push_back(plan.add_input(floats({1})));
  const NodeId y = plan.add_kernel(inputs[0], 1, 1);
  plan.returns(y);
  std::vector<KernelArgument>& pointers = plan.sources[0].pointers;
  for (int i = 1; i < 100; ++i) pointers.push_back({inputs[i], false, 1});
  plan.kernels[0].entry =
      reinterpret_cast<void*>(+[](void* const* p, const int64_t*, int64_t, int64_t, int32_t*) {
        float sum = 0;
        for (int i = 0; i <= 100; ++i) sum += i == 1 ? 0 : *static_cast<float*>(p[i]);
        *static_cast<float*>(p[1]) = sum;
      });
  const Program program = plan.build();
  FakeFrame frame(program);
  for (int i = 0; i < 100; ++i) frame.set(i, {static_cast<float>(i)});
  run(program, frame, {});
  EXPECT_EQ(frame.output(0), std::vector<float>{4950});
}

}  // namespace
}  // namespace stitch
