#include "compilation.h"

#include <gtest/gtest.h>

#include <climits>

#include "base/log.h"
#include "jit/nvrtc_directories.h"
#include "plan/plan_stitches.h"
#include "rewrite/rewrite_graph.h"
#include "support/read_graph.h"

namespace stitch {
namespace {

std::vector<KernelChoice> choices(const std::vector<double>& times) {
  std::vector<KernelChoice> list;
  for (double us : times) list.push_back({.us = us});
  return list;
}

// Choices are told apart by their predicted times; each spills as many bytes, those of 100 and more
// none.
TEST(TryChoices, WithoutTheClockTheFirstThatDoesNotSpillIsTakenElseTheOneThatSpillsLeast) {
  std::vector<Trial> kernels = {
      {3, {.us = 50}, 50, 0, choices({60, 10, 55, 20, 90, 10, 30})},  // all spill
      {5, {.us = 60}, 50, 0, choices({100, 101, 102, 40})},           // three do not
      {7, {.us = 50}, 50, 0, choices({50, 60})},                      // none is better
      {8, {.us = 50}, 50, 0, {}}};
  std::vector<size_t> rounds;
  try_choices(kernels, [&](std::vector<Trial>& trials) {
    rounds.push_back(trials.size());
    for (Trial& trial : trials)
      trial.spilled_bytes = trial.choice.us < 100 ? static_cast<int>(trial.choice.us) : 0;
  });
  EXPECT_EQ(kernels[0].choice.us, 10);
  EXPECT_EQ(kernels[0].spilled_bytes, 10);
  EXPECT_EQ(kernels[1].choice.us, 102) << "the first that does not spill";
  EXPECT_EQ(kernels[1].spilled_bytes, 0);
  EXPECT_EQ(kernels[2].choice.us, 50) << "as it was";
  EXPECT_EQ(kernels[3].choice.us, 50);
  EXPECT_EQ(rounds, (std::vector<size_t>{10, 3})) << "several at once, of all kernels";
}

// A kernel of one block, which spilled least, was chosen over one of 256 and took 33 ms for 0.3.
TEST(TryChoices, WhatTakesMoreThanTwiceAsLongIsNoRemedyButForWhatDoesNotCompile) {
  std::vector<Trial> kernels = {{0, {.us = 50}, 80, 0, choices({5000, 101, 70})},
                                {1, {.us = 50}, INT_MAX, 0, choices({5000, 101})}};
  try_choices(kernels, [&](std::vector<Trial>& trials) {
    for (Trial& trial : trials) trial.spilled_bytes = trial.choice.us == 5000 ? 0 : 60;
  });
  EXPECT_EQ(kernels[0].choice.us, 70);
  EXPECT_EQ(kernels[1].choice.us, 5000);
}

// By the clock a choice takes twice its predicted time.
TEST(TryChoices, TheClocksFastestIsTakenSpillsIncluded) {
  std::vector<Trial> kernels = {
      {0, {.us = 50}, 0, 100, choices({10, 60, 40, 45, 55})},  // 10 is beyond the first few
      {1, {.us = 50}, 0, 100, choices({49, 51})},              // by less than the clock can tell
      {2, {.us = 50}, 8, 100, choices({90, 30})},              // 30 spills, 90 does not
      {3, {.us = 50}, 0, 100, choices({30})},                  // 30 spills, and this did not
      {4, {.us = 50}, 8, 100, choices({60, 90})}};             // neither spills
  int rounds = 0;
  try_choices(kernels, [&](std::vector<Trial>& trials) {
    ++rounds;
    for (Trial& trial : trials) {
      trial.us = 2 * trial.choice.us;
      trial.spilled_bytes = trial.choice.us == 30 ? 8 : 0;
    }
  });
  EXPECT_EQ(kernels[0].choice.us, 40);
  EXPECT_EQ(kernels[0].us, 80);
  EXPECT_EQ(kernels[1].choice.us, 50);
  EXPECT_EQ(kernels[2].choice.us, 30);
  EXPECT_EQ(kernels[2].spilled_bytes, 8);
  EXPECT_EQ(kernels[3].choice.us, 30);
  EXPECT_EQ(kernels[4].choice.us, 50) << "what does not spill is slower";
  EXPECT_EQ(kernels[4].spilled_bytes, 8);
  EXPECT_EQ(rounds, 1);
}

TEST(TryChoices, OfWhatTheClockCannotTellApartOrHasNoTimeForWhatSpillsLeastIsTaken) {
  const KernelChoice present = {.us = 50};
  std::vector<Trial> kernels = {
      {0, present, 8, 100, choices({51})},   // by less than the clock can tell
      {1, present, 8, 100, choices({49})},   // the same, but spills more
      {2, present, 8, 100, choices({90})},   // 90 cannot be read
      {3, present, 8, 0, choices({20})},     // this cannot
      {4, present, 8, 0, choices({20, 30})}  // nor this, but of the others the faster is known
  };
  try_choices(kernels, [&](std::vector<Trial>& trials) {
    for (Trial& trial : trials) {
      trial.spilled_bytes = trial.choice.us == 49 ? 16 : 0;
      trial.us = trial.choice.us == 90 ? 0 : 2 * trial.choice.us;
    }
  });
  const auto settled = map_to_vector(kernels, [](const Trial& kernel) { return kernel.choice.us; });
  EXPECT_EQ(settled, (std::vector<double>{51, 50, 90, 20, 20}));
}

TEST(TryChoices, ARoundThatGainsNothingByTheClockIsTheLast) {
  const std::vector<KernelChoice> slower = choices({10, 60, 60, 60, 60});
  std::vector<Trial> kernels = {{0, {.us = 50}, 8, 100, slower},  // all spill
                                {1, {.us = 50}, 8, 100, choices({10, 40, 60, 60, 60})},
                                {2, {.us = 50}, 8, 0, slower}};  // has no time
  std::vector<size_t> rounds;
  try_choices(kernels, [&](std::vector<Trial>& trials) {
    rounds.push_back(trials.size());
    for (Trial& trial : trials) {
      trial.spilled_bytes = 8;
      trial.us = 2 * trial.choice.us;
    }
  });
  EXPECT_EQ(kernels[0].choice.us, 50);
  EXPECT_EQ(kernels[1].choice.us, 10);
  EXPECT_EQ(kernels[2].choice.us, 50);
  EXPECT_EQ(rounds, (std::vector<size_t>{12, 2}));
}

// How often a clock that can read nothing is asked about a softmax.
int count_questions(const std::string& type, const std::string& clock) {
  CompileRequest request{.graph = read_graph("%x = input : " + type + R"(
                           %e = exp(sub(%x, amax(%x){axes=[1], keepdim}))
                           %y = div(%e, sum(%e){axes=[1], keepdim})
                           outputs (%y)
                         )"),
                         .target = "h200",
                         .load = false};
  request.settings.clock = clock;
  request.settings.cache = "off";
  Compilation c{.request = request};
  c.graph = rewrite_for_target(request.graph, request.settings, c.target).graph;
  c.plan = plan_stitches(c.graph, c.target, request.settings.policy);
  name_blocks(c.graph.symbols, c.plan);
  c.options = choose_lowering(c.graph, c.plan, c.device, request.settings);
  c.sources = {emit(c, 0)};
  int questions = 0;
  const std::vector<Binary> binaries =
      settle_kernels(c, [&](const KernelSource&, const Binary&) -> double {
        ++questions;
        throw UnsupportedError("an opcode that no row has");
      });
  EXPECT_EQ(binaries.at(0).spill_bytes, 0);
  return questions;
}

TEST(SettleKernels, OnlyWhatSpillsIsTimedUnlessTheClockIsAsked) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::string spills = "f32[256,40960]", fits = "f32[256,1024]";
  std::vector<std::string> warnings;
  set_warning_sink([&](const std::string& message) { warnings.push_back(message); });
  EXPECT_EQ(count_questions(fits, "false"), 0);
  EXPECT_GT(count_questions(spills, "false"), 1) << "of what it is, and could be: none spills";
  EXPECT_TRUE(warnings.empty()) << "of a clock that nobody asked: " << warnings[0];
  EXPECT_EQ(count_questions(fits, "choose"), 1);
  EXPECT_EQ(warnings.size(), 1u);
  set_warning_sink(nullptr);
}

}  // namespace
}  // namespace stitch
