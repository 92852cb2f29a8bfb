// The work that a schedule's predicted time follows from.
#include "stage/schedule_stage.h"

#include <gtest/gtest.h>

#include "plan/plan_graph.h"

namespace stitch {
namespace {

StageWork work_of(const Planned& planned) {
  return measure_work(planned.graph, planned.plan.stages.front(), planned.only());
}

constexpr double kElements = 96 * 512 * 512;
constexpr const char* kSoftmax = R"(
  %x = input : f32[96,512,512]
  %e = exp(sub(%x, amax(%x){axes=[2], keepdim}))
  %y = div(%e, sum(%e){axes=[2], keepdim})
  outputs (%y)
)";

TEST(Work, CountsWhatAnArrayHoldsOnce) {
  const Planned planned = schedule_together(kSoftmax, "cpu");
  ASSERT_EQ(planned.only().kept_on_chip.size(), 1u) << "the exponentials";
  EXPECT_EQ(work_of(planned).specials, kElements);
}

TEST(Work, OfASoftmaxIsLeastInOneKernel) {
  const Planned planned = plan_graph(kSoftmax, "cpu");
  EXPECT_EQ(planned.plan.kernels.size(), 1u) << to_string(planned.plan, planned.graph);
}

TEST(Work, CountsWhatIsComputedAgainInEachNest) {
  // Rows known at run time have no arrays: the division's exponentials are its own.
  const Planned planned = schedule_together(R"(
    symbols s0 = input(0) hint 512
    %x = input : f32[1024,s0]
    %e = exp(sub(%x, amax(%x){axes=[1], keepdim}))
    %y = div(%e, sum(%e){axes=[1], keepdim})
    outputs (%y)
  )",
                                            "cpu");
  ASSERT_EQ(planned.only().kept_on_chip.size(), 0u);
  EXPECT_EQ(work_of(planned).specials, 2.0 * 1024 * 512);
}

TEST(Work, CountsWhatRootsOfOneNestShareOnce) {
  const Planned planned = schedule_together(R"(
    %x = input : f32[1024,512]
    %e = exp(%x)
    %y = mul(%e, 2)
    %z = add(%e, 3)
    outputs (%y, %z)
  )",
                                            "cpu");
  EXPECT_EQ(work_of(planned).specials, 1024.0 * 512);
}

TEST(Work, CountsARowInEachTripOfTheLoopsAroundIt) {
  const auto specials = [](const std::string& row) {
    return work_of(schedule_together("%x = input : f32[1024,512]\n%r = input : f32" + row +
                                         "\n%y = mul(%x, exp(%r))\noutputs (%y)\n",
                                     "cpu"))
        .specials;
  };
  EXPECT_EQ(specials("[512]"), 1024.0 * 512) << "all vectors of each row";
  EXPECT_EQ(specials("[1024,1]"), 1024.0 * 8) << "a number for each row, in a whole vector";
}

TEST(Work, OfALoadIsTheSameWhateverComputedIt) {
  const Planned planned = schedule_together(
      "%x = input : f32[1024,512]\n%y = neg(%x)\n"
      "outputs (%y)\n",
      "cpu");
  EXPECT_EQ(work_of(planned).operations, 2.0 * 1024 * 512) << "a load and a result for each";
}

// Lanes of a flipped axis lie before the first one's, those of another row behind it.
TEST(Work, OfAFlippedRowIsTheSameLinesAsOfAnother) {
  const auto lines_of = [](const std::string& value) {
    const Planned planned = schedule_together(
        "%x = input : f32[65536,16]\n%part = slice(%x){dim=1, start=0, count=15}\n%y = exp(" +
            value + ")\noutputs (%y)",
        "h200");
    return work_of(planned).lines;
  };
  const double lines = lines_of("%part");
  EXPECT_GT(lines, 0);
  EXPECT_EQ(lines_of("flip(%part){axes=[1]}"), lines);
  EXPECT_EQ(lines_of("flip(%part){axes=[0]}"), lines);
  EXPECT_EQ(lines_of("flip(%part){axes=[0,1]}"), lines);
}

}  // namespace
}  // namespace stitch
