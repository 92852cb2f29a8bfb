// Planning takes time about in proportion to the graph.  Stages that are scored stand for the time:
// a stage is bounded, and its schedule takes most of it.
#include <ctime>
#include <limits>
#include <sstream>

#include "compile.h"
#include "plan/plan_graph.h"
#include "plan/random_graph.h"
#include "plan/stitch_stages.h"

namespace stitch {
namespace {

struct Shape {
  const char* name;
  const char* step;  // "#": its number, "@": what the step before made
  bool returns_all;

  friend std::ostream& operator<<(std::ostream& out, const Shape& s) { return out << s.name; }
};

const Shape kShapes[] = {
    {"Chain", R"(
      %s# = sum(@){axes=[1], keepdim}
      %y# = exp(sub(@, %s#))
     )",
     false},
    {"Wide", R"(
      %x# = input : f32[512,768]
      %e# = exp(%x#)
      %y# = div(%e#, sum(%e#){axes=[1], keepdim})
     )",
     true},
    {"OneReadByAll", R"(
      %s# = sum(mul(%e, %weight)){axes=[1]}
      %y# = amax(add(%e, %weight)){axes=[0]}
     )",
     true},
    {"Layers", R"(
      %e# = exp(sub(@, amax(@){axes=[1], keepdim}))
      %r# = add(div(%e#, sum(%e#){axes=[1], keepdim}), @)
      %d# = sub(%r#, mul(sum(%r#){axes=[1], keepdim}, 0.0013))
      %v# = sum(mul(%d#, %d#)){axes=[1], keepdim}
      %y# = mul(mul(%d#, rsqrt(%v#)), %weight)
     )",
     false},
    {"RowsAndColumns", R"(
      %m# = amax(@){axes=[1], keepdim}
      %c# = sum(mul(@, %x)){axes=[0], keepdim}
      %y# = tanh(add(mul(@, %m#), %c#))
     )",
     true},
    {"Updates", R"(
      %p# = input : f32[512,768]
      %g# = input : f32[512,768]
      %m# = add(mul(%g#, 0.1), mul(%x, 0.9))
      %v# = add(mul(mul(%g#, %g#), 0.001), mul(%x, 0.999))
      %y# = sub(mul(%p#, 0.9999), div(%m#, add(sqrt(%v#), 1e-8)))
     )",
     true},
};

Graph repeat(const Shape& shape, int steps) {
  std::ostringstream text;
  text << "%x = input : f32[512,768]\n%weight = input : f32[768]\n%e = exp(%x)\n";
  std::string last = "%x", outputs;
  for (int step = 0; step < steps; ++step) {
    for (const char* at = shape.step; *at; ++at) {
      if (*at == '#') {
        text << step;
      } else if (*at == '@') {
        text << last;
      } else {
        text << *at;
      }
    }
    last = "%y" + std::to_string(step);
    if (shape.returns_all || step + 1 == steps) outputs += (outputs.empty() ? "" : ", ") + last;
  }
  text << "\noutputs (" << outputs << ")\n";
  return read_graph(text.str());
}

int count_scored(const Graph& graph, const std::string& target, const std::string& policy) {
  Planning planning(graph, target_of(target));
  int scored = 0;
  planning.prices.score = [&](const Graph& of, const Stage& stage, const Target& on) {
    ++scored;
    return score_stage(of, stage, on);
  };
  plan_by_policy(policy, planning.request());
  return scored;
}

class LargeGraphs : public testing::TestWithParam<Shape> {};

TEST_P(LargeGraphs, TwiceTheGraphIsAboutTwiceTheScoring) {
  // Beyond what "auto" explores patterns for: on a GPU it asks two policies, on the host one.
  const std::string step = GetParam().step;
  const int steps = 560 / static_cast<int>(std::count(step.begin(), step.end(), '('));
  for (const char* target : {"h200", "cpu"}) {
    for (const char* policy : {"auto", "fusionstitching2020"}) {
      const int once = count_scored(repeat(GetParam(), steps), target, policy);
      const int twice = count_scored(repeat(GetParam(), 2 * steps), target, policy);
      EXPECT_LE(twice, 2.3 * once) << policy << " for " << target;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LargeGraphs, testing::ValuesIn(kShapes),
                         [](const auto& instance) { return std::string(instance.param.name); });

double seconds_of_this_process() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// From a graph to the text of its kernels; the least of some times.
double seconds_to_compile(const Shape& shape, int steps, int times) {
  const CompileRequest request{repeat(shape, steps), default_settings(), "cpu", false};
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < times; ++i) {
    const double start = seconds_of_this_process();
    compile(request);
    least = std::min(least, seconds_of_this_process() - start);
  }
  return least;
}

// Passes that nothing counts show in the time alone: one in which each node looks at all others
// takes 16 times as long.
TEST(LargeGraphs, FourTimesTheGraphIsCompiledInLessThanEightTimesTheTime) {
  for (const Shape& shape : kShapes) {
    if (shape.name != std::string("Layers") && shape.name != std::string("Updates")) continue;
    const std::string step = shape.step;
    const int steps = 1000 / static_cast<int>(std::count(step.begin(), step.end(), '('));
    const double few = seconds_to_compile(shape, steps, 2);
    const double many = seconds_to_compile(shape, 4 * steps, 1);
    EXPECT_LT(many, 8 * few) << shape.name << ": " << few << " s and " << many << " s";
    RecordProperty(shape.name, std::to_string(many / few));
  }
}

// Whatever is joined with whatever: what a stage loads was stored before.
TEST(LargeGraphs, StepsOfJoinedStagesCanRun) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const Graph graph = read_graph(random_graph(seed, 80, seed % 2 == 1));
    Planning planning(graph, target_of("cpu"));
    const Demands& demands = planning.demands;
    uint32_t noise = seed;
    planning.prices.score = [&](const Graph&, const Stage& stage, const Target&) -> StageScore {
      noise = noise * 1664525u + 1013904223u;
      const bool refuses = stage.roots.size() > 1 && (noise >> 16) % 3 == 0;
      return {refuses ? Verdict::no(99, "the test says so") : Verdict::yes(), 1};
    };
    const JoinedStages joined =
        join_stages(planning.request(), find_roots(graph, demands, true, planning.target.device),
                    JoinRule::kFaster);
    std::set<NodeId> made;
    auto is_made = [&](NodeId id) {
      if (graph[id].op == OpKind::k_get) id = graph[id].inputs[0];
      return family(graph[id]) == Family::kInput || made.count(id) > 0;
    };
    for (const PlanStep& step : joined.steps) {
      if (step.call.valid()) {
        made.insert(step.call);
        continue;
      }
      const Stage& stage = joined.stages[step.kernel];
      EXPECT_TRUE(std::all_of(stage.loads.begin(), stage.loads.end(), is_made)) << "seed " << seed;
      for (NodeId store : stage.stores) {
        EXPECT_TRUE(made.insert(store).second) << "%" << store << " is stored twice";
      }
    }
    for (int n = 0; n < graph.size(); ++n) {
      EXPECT_TRUE(!demands.is_demanded[n] || is_made(NodeId(n))) << "seed " << seed << " %" << n;
    }
  }
}

}  // namespace
}  // namespace stitch
