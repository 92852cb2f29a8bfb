#include "compilation.h"

#include <gtest/gtest.h>

#include <climits>

namespace stitch {
namespace {

std::vector<KernelChoice> choices(const std::vector<double>& times) {
  std::vector<KernelChoice> list;
  for (double us : times) list.push_back({.us = us});
  return list;
}

// Choices are told apart by their predicted times; each spills as many bytes, those of 100 and more
// none.
TEST(TryChoices, TheFirstThatDoesNotSpillIsTakenElseTheOneThatSpillsLeast) {
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
TEST(TryChoices, OfThoseThatDoNotSpillTheClocksFastestIsTaken) {
  std::vector<Trial> kernels = {
      {0, {.us = 50}, 0, 100, choices({10, 60, 40, 45, 55})},  // 10 is beyond the first few
      {1, {.us = 50}, 0, 100, choices({49, 51})},              // by less than the clock can tell
      {2, {.us = 50}, 8, 100, choices({90, 30})},              // 30 spills, and so did this
      {3, {.us = 50}, 0, 100, choices({30})}};                 // 30 spills, and this did not
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
  EXPECT_EQ(kernels[2].choice.us, 90) << "slower, but does not spill";
  EXPECT_EQ(kernels[3].choice.us, 50);
  EXPECT_EQ(rounds, 1);
}

}  // namespace
}  // namespace stitch
