// Operations of lanes that meet: values against a plain model, and who must be there.
#include <functional>

#include "ptxsim/launch_ptx.h"

namespace stitch::ptxsim {
namespace {

uint32_t value_of(uint32_t lane) { return lane * 2654435761u + 17; }

// Runs `operation`, which puts a result in %r20, with %r21 = value_of(lane).
std::vector<uint32_t> run_lanes(const std::string& operation, uint32_t block = 32) {
  Buffer out = buffer<uint32_t>(block, kOutput);
  expect_clean({.body = "mul.lo.u32 %r21, %r1, 2654435761; add.u32 %r21, %r21, 17;" + operation +
                        "add.u64 %d11, %d1, %d10; st.global.u32 [%d11], %r20;",
                .buffers = {&out},
                .block = block});
  return {out.as<uint32_t>(), out.as<uint32_t>() + block};
}

TEST(InterpretWarp, ShufflesWithinSegments) {
  struct Mode {
    const char* name;
    std::function<int(int lane, int step, int least, int most)> from;
    bool up;
  };
  const Mode modes[] = {
      {"up", [](int lane, int step, int, int) { return lane - step; }, true},
      {"down", [](int lane, int step, int, int) { return lane + step; }, false},
      {"bfly", [](int lane, int step, int, int) { return lane ^ step; }, false},
      {"idx", [](int, int step, int least, int most) { return least | (step & (most - least)); },
       false}};
  for (const Mode& mode : modes) {
    for (int width : {32, 16, 8, 2, 1}) {
      for (int step : {0, 1, 3, 16, 31}) {
        const int c = (32 - width) << 8 | (mode.up ? 0 : 31);
        SCOPED_TRACE(std::string(mode.name) + " " + std::to_string(width) + " " +
                     std::to_string(step));
        const std::string tail =
            ", %r21, " + std::to_string(step) + ", " + std::to_string(c) + ", -1;";
        const auto result = run_lanes("shfl.sync." + std::string(mode.name) + ".b32 %r20" + tail);
        const auto in_range = run_lanes("shfl.sync." + std::string(mode.name) + ".b32 %r22|%p1" +
                                        tail + "selp.u32 %r20, 1, 0, %p1;");
        for (int lane = 0; lane < 32; ++lane) {
          const int least = lane / width * width, most = least + width - 1;
          const int from = mode.from(lane, step, least, most);
          const bool in = mode.up ? from >= least : from <= most;
          ASSERT_EQ(result[lane], value_of(static_cast<uint32_t>(in ? from : lane))) << lane;
          ASSERT_EQ(in_range[lane], in) << lane;
        }
      }
    }
  }
}

TEST(InterpretWarp, VotesAndBallots) {
  const std::string some = "setp.lt.u32 %p1, %r1, 9;";
  const std::string all = "setp.lt.u32 %p1, %r1, 99;", none = "setp.gt.u32 %p1, %r1, 99;";
  const auto vote = [](const std::string& set, const std::string& mode, bool negated = false) {
    const auto result = run_lanes(set + "vote.sync." + mode + ".pred %p2, " + (negated ? "!" : "") +
                                  "%p1, -1; selp.u32 %r20, 1, 0, %p2;");
    EXPECT_EQ(result, std::vector<uint32_t>(32, result[0]));
    return result[0];
  };
  EXPECT_EQ(vote(some, "any"), 1u);
  EXPECT_EQ(vote(some, "all"), 0u);
  EXPECT_EQ(vote(some, "uni"), 0u);
  EXPECT_EQ(vote(all, "all"), 1u);
  EXPECT_EQ(vote(all, "all", true), 0u);
  EXPECT_EQ(vote(all, "uni"), 1u);
  EXPECT_EQ(vote(none, "any"), 0u);
  EXPECT_EQ(vote(none, "uni"), 1u);
  EXPECT_EQ(run_lanes(some + "vote.sync.ballot.b32 %r20, %p1, -1;"),
            std::vector<uint32_t>(32, 0x1ffu));
}

TEST(InterpretWarp, Matches) {
  const auto any = run_lanes("rem.u32 %r22, %r1, 5; match.any.sync.b32 %r20, %r22, -1;");
  const auto wide = run_lanes(
      "rem.u32 %r22, %r1, 5; mul.wide.u32 %d20, %r22, 0x40000000; "
      "match.any.sync.b64 %r20, %d20, -1;");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t expected = 0;
    for (uint32_t other = lane % 5; other < 32; other += 5) expected |= 1u << other;
    EXPECT_EQ(any[lane], expected);
    EXPECT_EQ(wide[lane], expected);
  }
  const auto all = [](const std::string& set) {
    return run_lanes(set +
                     "match.all.sync.b32 %r22|%p1, %r23, -1; selp.u32 %r24, 1, 0, %p1;"
                     "xor.b32 %r20, %r22, %r24;")[3];
  };
  EXPECT_EQ(all("mov.u32 %r23, 4;"), 0xfffffffeu);
  EXPECT_EQ(all("mov.u32 %r23, %r1;"), 0u);
}

TEST(InterpretWarp, Reductions) {
  uint32_t sum = 0, least = ~0u, most = 0, all = ~0u, any = 0, odd = 0;
  int32_t least_signed = INT32_MAX, most_signed = INT32_MIN;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t value = value_of(lane);
    sum += value, least = std::min(least, value), most = std::max(most, value);
    all &= value, any |= value, odd ^= value;
    least_signed = std::min(least_signed, static_cast<int32_t>(value));
    most_signed = std::max(most_signed, static_cast<int32_t>(value));
  }
  const auto reduce = [](const std::string& mode) {
    return run_lanes("redux.sync." + mode + " %r20, %r21, -1;")[11];
  };
  EXPECT_EQ(reduce("add.u32"), sum);
  EXPECT_EQ(reduce("add.s32"), sum);
  EXPECT_EQ(reduce("min.u32"), least);
  EXPECT_EQ(reduce("max.u32"), most);
  EXPECT_EQ(reduce("min.s32"), static_cast<uint32_t>(least_signed));
  EXPECT_EQ(reduce("max.s32"), static_cast<uint32_t>(most_signed));
  EXPECT_EQ(reduce("and.b32"), all);
  EXPECT_EQ(reduce("or.b32"), any);
  EXPECT_EQ(reduce("xor.b32"), odd);
}

TEST(InterpretWarp, GroupsOfLanesByMaskMeetByThemselves) {
  const auto sums = run_lanes(R"(
      rem.u32 %r22, %r1, 2; setp.eq.u32 %p1, %r22, 0;
      selp.b32 %r23, 0x55555555, 0xaaaaaaaa, %p1;
      redux.sync.add.u32 %r20, %r1, %r23;)");
  const auto split = run_lanes(R"(
      setp.lt.u32 %p1, %r1, 8; @%p1 bra few;
      redux.sync.add.u32 %r20, %r1, 0xffffff00; bra.uni join;
      few: redux.sync.add.u32 %r20, %r1, 0xff;
      join:)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(sums[lane], lane % 2 ? 256u : 240u);
    EXPECT_EQ(split[lane], lane < 8 ? 28u : 496u - 28u);
  }
}

TEST(InterpretWarp, ElectionsAndActiveLanes) {
  EXPECT_EQ(run_lanes("elect.sync %r20|%p1, -1;"), std::vector<uint32_t>(32, 0u));
  const auto leader = run_lanes("elect.sync _|%p1, -1; selp.u32 %r20, 1, 0, %p1;");
  EXPECT_EQ(leader[0], 1u);
  EXPECT_EQ(leader[1], 0u);
  EXPECT_EQ(run_lanes("activemask.b32 %r20;"), std::vector<uint32_t>(32, 0xffffffffu));
}

// Lanes that come by different ways meet at the shuffle.
TEST(InterpretWarp, LanesThatDivergedWaitForEachOther) {
  const auto result = run_lanes(R"(
      mov.u32 %r22, 0;
      head: setp.ge.u32 %p1, %r22, %r1; @%p1 bra done; add.u32 %r22, %r22, 1; bra head;
      done: shfl.sync.bfly.b32 %r20, %r22, 1, 31, -1;)");
  for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(result[lane], lane ^ 1);
}

PtxLaunch with_output(Buffer& out, const std::string& body, uint32_t block = 32) {
  return {.body = body + "add.u64 %d11, %d1, %d10; st.global.u32 [%d11], %r1;",
          .buffers = {&out},
          .block = block};
}

TEST(InterpretWarp, AbsentLanesAreAccused) {
  Buffer out = buffer<uint32_t>(32, kAny);
  constexpr FindingKind kKind = FindingKind::divergent_barrier;
  // Some have exited.
  expect_finding(with_output(out,
                             "setp.lt.u32 %p1, %r1, 4; @%p1 exit;"
                             "shfl.sync.bfly.b32 %r20, %r1, 8, 31, -1;"),
                 kKind, "lanes 0, 1, 2, 3, which have exited");
  // Some wait elsewhere.
  expect_finding(with_output(out, R"(
      setp.lt.u32 %p1, %r1, 4; @%p1 bra few;
      vote.sync.any.pred %p2, %p1, -1; bra.uni join;
      few: vote.sync.any.pred %p2, %p1, -1;
      join:)"),
                 kKind, "which do not come; lanes");
  // The mask lacks the lane itself.
  expect_finding(with_output(out, "bar.warp.sync 0xffff;"), kKind, "lacks its own lane");
  // Lanes that a short block does not have.
  expect_finding(with_output(out, "redux.sync.add.u32 %r20, %r1, -1;", 20), kKind, "never were");
  expect_clean(with_output(out, "bar.warp.sync -1;", 20));
  expect_clean(with_output(out, "redux.sync.add.u32 %r20, %r1, 0xfffff;", 20));
}

TEST(InterpretWarp, WhatALaneOutsideTheMaskHoldsIsNotDefined) {
  Buffer out = buffer<uint32_t>(32, kAny);
  expect_finding({.body = R"(
      setp.ge.u32 %p1, %r1, 16; @%p1 exit;
      shfl.sync.down.b32 %r20, %r1, 8, 31, 0xffff;
      add.u64 %d11, %d1, %d10; st.global.u32 [%d11], %r20;)",
                  .buffers = {&out}},
                 FindingKind::uninitialized, "");
}

}  // namespace
}  // namespace stitch::ptxsim
