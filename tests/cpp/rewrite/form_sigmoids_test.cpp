#include "rewrite/expect_rewrite.h"
#include "rewrite/rewrite_graph.h"

namespace stitch {
namespace {

void expect_formed(const std::string& before, const std::string& after,
                   const std::string& type = "f32") {
  SCOPED_TRACE(before);
  const std::string head = "%x = input : " + type + "[8]\n%z = input : " + type +
                           "[8]\n%two = full{value=2} : " + type + "\n";
  expect_rewrite([](const Graph& graph) { return remove_dead(form_sigmoids(graph)); },
                 head + "%y = " + before + "\noutputs (%y)\n",
                 head + "%y = " + after + "\noutputs (%y)\n");
}

TEST(FormSigmoids, OneMoreThanATanhIsTwiceASigmoid) {
  expect_formed("add(tanh(%x), 1.0)", "mul(sigmoid(mul(%x, %two)), %two)");
  expect_formed("add(1.0, tanh(mul(%x, 0.75)))", "mul(sigmoid(mul(%x, 1.5)), 2.0)");
  for (const char* other : {"add(tanh(%x), 2.0)", "sub(tanh(%x), 1.0)", "add(exp(%x), 1.0)"})
    expect_formed(other, other);
  expect_formed("add(tanh(%x), 1.0)", "add(tanh(%x), 1.0)", "f64");
}

TEST(FormSigmoids, FactorsThatCancelAreGoneWhereTheyLoseNoDigit) {
  expect_formed("mul(mul(%x, 0.5), mul(2.0, %z))", "mul(%x, %z)");
  expect_formed("mul(mul(%x, 0.5), add(tanh(%z), 1.0))", "mul(%x, sigmoid(mul(%z, 2.0)))");
  for (const char* other : {"mul(mul(%x, 0.5), mul(%z, 4.0))", "mul(mul(%x, 0.5), %z)",
                            "mul(mul(%x, 10.0), mul(%z, 0.1))"})
    expect_formed(other, other);
}

TEST(FormSigmoids, WhatAComparisonDependsOnStaysAsEagerRoundsIt) {
  const std::string compared = "gt(add(tanh(%x), 1.0), %z)";
  expect_formed(compared, compared, "bf16");
}

}  // namespace
}  // namespace stitch
