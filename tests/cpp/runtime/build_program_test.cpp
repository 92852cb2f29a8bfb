#include "runtime/build_program.h"

#include <gtest/gtest.h>

#include <random>

#include "cpp/runtime/fake_frame.h"
#include "ops/library_calls.h"
#include "support/own_node.h"

namespace stitch {
namespace {

using Kind = Buffer::Kind;

int count_kind(const Program& program, Kind kind) {
  int count = 0;
  for (const Buffer& buffer : program.buffers) count += buffer.kind == kind;
  return count;
}

template <class T>
int count_steps(const Program& program) {
  int count = 0;
  for (const Step& step : program.steps) count += std::holds_alternative<T>(step);
  return count;
}

std::vector<float> run_on(const Program& program, const std::vector<std::vector<float>>& arguments,
                          int output = 0) {
  FakeFrame frame(program);
  for (size_t i = 0; i < arguments.size(); ++i) frame.set(static_cast<int>(i), arguments[i]);
  run(program, frame, {});
  return frame.output(output);
}

TEST(BuildProgram, IntermediatesLiveInTheSlabAndOutputsAreFresh) {
  FakePlan plan;
  NodeId x = plan.add_input(floats({8}));
  for (int i = 0; i < 5; ++i) x = plan.add_kernel(x, 1, 8);
  plan.returns(x);
  const Program program = plan.build();
  EXPECT_EQ(count_kind(program, Kind::kSlab), 4);
  EXPECT_EQ(count_kind(program, Kind::kFresh), 1);
  EXPECT_EQ(program.slots.size(), 2u) << "a chain needs two slots, in turn";
  EXPECT_EQ(run_on(program, {std::vector<float>(8, 1)}), std::vector<float>(8, 6));
}

TEST(BuildProgram, LargeValuesHaveMemoryOfTheirOwnWhileTheyLive) {
  constexpr int64_t kCount = 64 * 1024;  // 256 KB
  FakePlan plan;
  NodeId x = plan.add_input(floats({kCount}));
  for (int i = 0; i < 5; ++i) x = plan.add_kernel(x, 1, kCount);
  plan.returns(x);
  const Program program = plan.build();
  EXPECT_EQ(count_kind(program, Kind::kSlab), 0);
  EXPECT_EQ(count_steps<AllocateStep>(program), 5);
  EXPECT_EQ(count_steps<ReleaseStep>(program), 5) << "the argument and all but the result";
  EXPECT_EQ(run_on(program, {std::vector<float>(kCount, 1)}), std::vector<float>(kCount, 6));
}

TEST(BuildProgram, SlotsNeverHoldTwoLiveValues) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    FakePlan plan;
    std::vector<NodeId> values = {plan.add_input(floats({64}))};
    for (int i = 0; i < 30; ++i) {
      const NodeId x = values[random() % values.size()];
      if (random() % 4 == 0) {
        values.push_back(plan.add_call(x, i));
      } else if (random() % 5 == 0) {
        values.push_back(plan.add_alias(x, plan.graph[x].type, 0));
      } else {
        values.push_back(plan.add_kernel(x, 1, 64));
      }
    }
    plan.returns(values.back());
    plan.returns(values[random() % values.size()]);
    const Program program = plan.build();
    const std::vector<Lifetime> lifetimes = find_lifetimes(program);
    for (const std::vector<BufferId>& slot : program.slots) {
      for (size_t i = 1; i < slot.size(); ++i) {
        EXPECT_LT(lifetimes[slot[i - 1].index()].last, lifetimes[slot[i].index()].first)
            << to_string(program);
      }
    }
  }
}

TEST(BuildProgram, NothingIsReleasedBeforeItsLastUseOrTwice) {
  FakePlan plan;
  const NodeId x = plan.add_input(floats({4}));
  const NodeId y = plan.add_call(x, 0);
  const NodeId view = plan.add_alias(y, floats({2}), 1);
  const NodeId z = plan.add_kernel(y, 1, 4);
  const NodeId w = plan.add_kernel(view, 1, 2);
  plan.returns(w);
  plan.returns(z);
  const Program program = plan.build();
  const std::vector<Lifetime> lifetimes = find_lifetimes(program);
  std::vector<int> releases(program.buffers.size());
  for (int i = 0; i < static_cast<int>(program.steps.size()); ++i) {
    const ReleaseStep* release = std::get_if<ReleaseStep>(&program.steps[i]);
    if (!release) continue;
    ++releases[release->buffer.index()];
    EXPECT_GT(i, lifetimes[release->buffer.index()].last);
  }
  EXPECT_EQ(releases, (std::vector<int>{1, 0, 0, 1, 1})) << to_string(program);
  const std::vector<float> given = {1, 2, 3, 4};
  EXPECT_EQ(run_on(program, {given}), (std::vector<float>{5, 7}));
  EXPECT_EQ(run_on(program, {given}, 1), (std::vector<float>{3, 5, 7, 9}));
}

TEST(BuildProgram, AViewThatIsReturnedKeepsItsBaseOutOfTheSlab) {
  FakePlan plan;
  const NodeId x = plan.add_input(floats({4}));
  const NodeId y = plan.add_kernel(x, 1, 4);
  plan.returns(plan.add_alias(y, floats({2}), 2));
  const Program program = plan.build();
  EXPECT_EQ(count_kind(program, Kind::kSlab), 0);
  EXPECT_EQ(run_on(program, {{1, 2, 3, 4}}), (std::vector<float>{4, 5}));
}

TEST(BuildProgram, AnInputOrAValueMayBeReturnedTwice) {
  FakePlan plan;
  const NodeId x = plan.add_input(floats({2}));
  const NodeId y = plan.add_kernel(x, 1, 2);
  for (const NodeId node : {x, y, y, x}) plan.returns(node);
  const Program program = plan.build();
  EXPECT_EQ(program.outputs[0].buffer, program.outputs[3].buffer);
  EXPECT_EQ(program.outputs[1].buffer, program.outputs[2].buffer);
  EXPECT_EQ(count_steps<ReleaseStep>(program), 0);
  EXPECT_EQ(run_on(program, {{1, 2}}, 2), (std::vector<float>{2, 3}));
}

TEST(BuildProgram, AMutationIsStoredInPlaceWhereThePlanAllowsIt) {
  FakePlan plan;
  const NodeId x = plan.add_input(floats({2}));
  const NodeId y = plan.add_kernel(x, 1, 2);
  plan.mutate(x, y, true);
  const Program program = plan.build();
  EXPECT_EQ(count_steps<CopyStep>(program), 0);
  EXPECT_EQ(program.stored_arguments.size(), 1u);
  FakeFrame frame(program);
  frame.set(0, {1, 2});
  run(program, frame, {});
  EXPECT_EQ(frame.log, std::vector<std::string>{"write back 0"});
  EXPECT_EQ(*static_cast<float*>(frame.data(program.stored_arguments[0])), 2);
}

TEST(BuildProgram, AMutationOfOtherLayoutOrThatIsReturnedIsCopied) {
  for (const bool returned : {false, true}) {
    FakePlan plan;
    TensorType transposed = floats({2, 3});
    transposed.strides = {1, 2};
    const NodeId x = plan.add_input(returned ? floats({2, 3}) : transposed);
    const NodeId y = plan.add_kernel(x, 1, 6);
    plan.mutate(x, y, true);
    if (returned) plan.returns(y);
    const Program program = plan.build();
    EXPECT_EQ(count_steps<CopyStep>(program), 1);
    EXPECT_TRUE(program.stored_arguments.empty());
    EXPECT_EQ(count_kind(program, Kind::kFresh), returned ? 1 : 0);
  }
}

TEST(BuildProgram, SwappedInputsKeepBothContents) {
  FakePlan plan;
  const NodeId x = plan.add_input(floats({2}));
  const NodeId y = plan.add_input(floats({2}));
  plan.mutate(x, y, false);
  plan.mutate(y, x, false);
  plan.returns(plan.add_alias(x, floats({1}), 1));
  const Program program = plan.build();
  FakeFrame frame(program);
  frame.set(0, {1, 2});
  frame.set(1, {3, 4});
  const auto* x_data = static_cast<float*>(frame.data(BufferId(0)));
  const auto* y_data = static_cast<float*>(frame.data(BufferId(1)));
  // Held here, since the frame drops arguments after their last use.
  FakeFrame kept = frame;
  run(program, frame, {});
  EXPECT_EQ(x_data[0], 3);
  EXPECT_EQ(y_data[1], 2);
  EXPECT_EQ(frame.output(0), std::vector<float>{2}) << "the contents before the call";
}

TEST(BuildProgram, OneValueMayReplaceTwoInputs) {
  FakePlan plan;
  const NodeId x = plan.add_input(floats({2}));
  const NodeId y = plan.add_input(floats({2}));
  const NodeId z = plan.add_kernel(x, 1, 2);
  plan.mutate(x, z, true);
  plan.mutate(y, z, true);
  const Program program = plan.build();
  EXPECT_EQ(program.stored_arguments.size(), 1u);
  EXPECT_EQ(count_steps<CopyStep>(program), 1);
}

TEST(BuildProgram, ResultsThatNobodyReadsHaveNoBuffer) {
  FakePlan plan;
  const NodeId x = plan.add_input(floats({2}));
  const NodeId call = plan.add_call(x, 3);
  const NodeId unread = plan.add_node(OpKind::k_get, {call}, floats({2}));
  const NodeId read = plan.add_node(OpKind::k_get, {call}, floats({2}));
  own(plan.graph.nodes[unread.index()]).ints = {0};
  own(plan.graph.nodes[read.index()]).ints = {2};
  plan.returns(read);
  const Program program = plan.build();
  const CallStep& step = std::get<CallStep>(program.steps[0]);
  ASSERT_EQ(step.outputs.size(), 3u);
  EXPECT_FALSE(step.outputs[0].valid());
  EXPECT_FALSE(step.outputs[1].valid());
  EXPECT_EQ(step.outputs[2], program.outputs[0].buffer);
}

TEST(BuildProgram, AValueThatNothingStoresIsAnInternalError) {
  FakePlan plan;
  const NodeId x = plan.add_input(floats({2}));
  plan.returns(plan.add_node(OpKind::k_relu, {x}, floats({2})));
  EXPECT_THROW(plan.build(), InternalError);
}

// Whether a call made it or a kernel, which else would have it in the slab.
TEST(BuildProgram, AProductIsStoredOverWhatIsAddedUnlessThatLivesOn) {
  for (const auto& [is_called, is_returned] :
       {std::pair{true, false}, {true, true}, {false, false}, {false, true}}) {
    FakePlan plan;
    const NodeId x = plan.add_input(floats({4, 4}));
    const NodeId added = is_called ? plan.add_call(x, 0) : plan.add_kernel(x, 1, 16);
    const NodeId sum = plan.add_call(plan.add_alias(added, floats({4, 4}), 0), 1);
    Node& node = own(plan.graph.nodes[sum.index()]);
    node.name = "aten.addmm.default";
    node.inputs = {node.inputs[0], x, x};
    plan.returns(sum);
    if (is_returned) plan.returns(added);
    const Program program = plan.build();
    bool stores_over = false;  // the last call
    for (const Step& step : program.steps)
      if (const CallStep* call = std::get_if<CallStep>(&step)) stores_over = call->stores_over;
    EXPECT_EQ(stores_over, !is_returned) << to_string(program);
  }
}

TEST(BuildProgram, CallsThatTheCoreMakesAreListedApart) {
  FakePlan plan;
  NodeId x = plan.add_call(plan.add_input(floats({2})), 4);
  for (double number : {0.25, 0.5}) {
    x = plan.add_call(x, kMadeCall);
    own(plan.graph.nodes.back()).name = kAttentionCall;
    own(plan.graph.nodes.back()).number = number;
  }
  plan.returns(x);
  const Program program = plan.build();
  std::vector<int64_t> rows;
  for (const Step& step : program.steps)
    if (const CallStep* call = std::get_if<CallStep>(&step)) rows.push_back(call->call);
  EXPECT_EQ(rows, (std::vector<int64_t>{4, -1, -2}));
  ASSERT_EQ(program.made_calls.size(), 2u);
  EXPECT_EQ(program.made_calls[1].name, kAttentionCall);
  EXPECT_EQ(program.made_calls[1].number, 0.5);
  EXPECT_EQ(program.made_calls[1].inputs.size(), 1u);
  EXPECT_NE(to_string(program).find("= call aten.scaled_dot"), std::string::npos);
}

TEST(BuildProgram, TextNamesEveryStep) {
  FakePlan plan;
  const NodeId x = plan.add_input(floats({2}));
  plan.returns(plan.add_kernel(plan.add_call(x, 4), 1, 2));
  EXPECT_EQ(to_string(plan.build()),
            "cpu program of 1 arguments\n"
            "b0: f32[2] argument 0\n"
            "b1: f32[2] fresh\n"
            "b2: f32[2] result\n"
            "b2 = call 4(b0)\n"
            "release b0\n"
            "allocate b1\n"
            "launch relu_0<1>(b2, b1; 2)\n"
            "release b2\n"
            "return b1\n");
}

}  // namespace
}  // namespace stitch
