// Plans, schedules, bodies and sources of many graphs: no verifier refuses any.
#include "plan/plan_graph.h"
#include "plan/random_graph.h"
#include "rewrite/rewrite_graph.h"
#include "support/golden_graphs.h"

namespace stitch {
namespace {

constexpr const char* kPolicies[] = {"auto", "astitch", "fusionstitching2020", "loops"};

void expect_sound(Graph graph, const char* target, const std::string& policy) {
  Planned planned{std::move(graph), {}};
  planned.plan = plan_stitches(planned.graph, target_of(target), policy);
  name_blocks(planned.graph.symbols, planned.plan);
  verify_planned(planned.graph, planned.plan);
  for (size_t k = 0; k < planned.plan.kernels.size(); ++k) emit_planned(planned, k);
}

TEST(VerifyPrograms, GoldenGraphsAreSoundUnderEachPolicy) {
  for (const GoldenGraph& golden : golden_graphs())
    for (const char* target : {"cpu", "h200"})
      for (const char* policy : kPolicies)
        EXPECT_NO_THROW(expect_sound(rewrite_graph(read_graph(golden.text)), target, policy))
            << golden.name << " " << target << " " << policy;
}

TEST(VerifyPrograms, FiveHundredRandomOnesAreSound) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const std::string text = random_graph(seed, 24, seed % 2 == 1);
    for (const char* target : {"cpu", "h200"})
      EXPECT_NO_THROW(expect_sound(read_graph(text), target, kPolicies[seed / 2 % 4]))
          << "seed " << seed << " " << target << "\n"
          << text;
  }
}

}  // namespace
}  // namespace stitch
