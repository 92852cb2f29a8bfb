// Plans with one fault each: what would make a kernel read what is not there, or never run.
#include "plan/plan_graph.h"
#include "support/faults.h"

namespace stitch {
namespace {

using PlanFaults = std::vector<Fault<Planned>>;

void expect_plan_faults(const char* text, const char* target, const PlanFaults& faults) {
  expect_refused(
      faults, [&] { return plan_graph(text, target); },
      [](const Planned& planned) { verify_plan(planned.graph, planned.plan); });
}

PlannedKernel& first(Planned& p) { return p.plan.kernels.at(0); }

// Two kernels around a call.
TEST(VerifyPlan, StepsAndWhatTheyRead) {
  const char* text = R"(
    %x = input : f32[64,64]
    %a = exp(%x)
    %m = library(%a){name="aten.mm.default"} : f32[64,64]
    %y = sum(mul(%m, %a)){axes=[1]}
    outputs (%y)
  )";
  expect_plan_faults(
      text, "h200",
      {{"a kernel without a step", [](Planned& p) { p.plan.steps.pop_back(); },
        "kernel-in-one-step"},
       {"a kernel in two steps", [](Planned& p) { p.plan.steps.push_back(p.plan.steps.back()); },
        "kernel-in-one-step"},
       {"a stage in no kernel", [](Planned& p) { first(p).phases[0].blocks.pop_back(); },
        "stage-in-one-kernel"},
       {"a stage in two kernels",
        [](Planned& p) { p.plan.kernels[1].phases[0].blocks.push_back({{0}}); },
        "stage-in-one-kernel"},
       {"a stage without a schedule", [](Planned& p) { p.plan.schedules.pop_back(); },
        "schedule-per-stage"},
       {"the call before its operand is stored",
        [](Planned& p) { std::swap(p.plan.steps[0], p.plan.steps[1]); }, "load-before-store"},
       {"a kernel before the call that it reads",
        [](Planned& p) { std::swap(p.plan.steps[1], p.plan.steps[2]); }, "load-before-store"},
       {"no call", [](Planned& p) { p.plan.steps.erase(p.plan.steps.begin() + 1); },
        "load-before-store"},
       {"an output that nothing stores", [](Planned& p) { p.plan.stages[1].stores.clear(); },
        "load-before-store"},
       {"a value that is stored twice",
        [](Planned& p) { p.plan.stages[1].stores.push_back(p.plan.stages[0].stores[0]); },
        "one-store"},
       {"an operand that is neither loaded nor evaluated",
        [](Planned& p) { p.plan.stages[1].loads.pop_back(); }, "operand-is-there"},
       {"templates of other stages", [](Planned& p) { first(p).templates.resize(3); },
        "template-per-stage"}});
}

// Parts of the largest element, then behind a barrier what is scaled by it.
TEST(VerifyPlan, PhasesAndTheirJoins) {
  const char* text = R"(
    %x = input : f32[4096,4096]
    %parts = amax(abs(%x)){axes=[1]}
    %y = div(%x, amax(%parts))
    outputs (%y)
  )";
  expect_plan_faults(
      text, "h200",
      {{"a phase without blocks", [](Planned& p) { first(p).phases.push_back({Join::kGrid}); },
        "phase-has-blocks"},
       {"blocks without stages",
        [](Planned& p) { first(p).phases[1].blocks.push_back(PlannedBlocks{}); },
        "phase-has-blocks"},
       {"a barrier before the first phase",
        [](Planned& p) { first(p).phases[0].join = Join::kGrid; }, "first-phase-is-launch"},
       {"no barrier between phases", [](Planned& p) { first(p).phases[1].join = Join::kLaunch; },
        "first-phase-is-launch"},
       {"the last block in the first phase",
        [](Planned& p) { first(p).phases[0].join = Join::kLastBlock; }, "first-phase-is-launch"},
       {"a grid barrier after the last block",
        [](Planned& p) {
          first(p).phases[1].join = Join::kLastBlock;
          p.plan.stages.push_back(p.plan.stages.back());
          p.plan.schedules.push_back(p.plan.schedules.back());
          const int added = static_cast<int>(p.plan.stages.size()) - 1;
          first(p).phases.push_back({Join::kGrid, {PlannedBlocks{{added}}}});
        },
        "last-block-is-alone"},
       {"phases in the other order",
        [](Planned& p) {
          std::swap(first(p).phases[0].blocks, first(p).phases[1].blocks);
          first(p).kept.clear();
        },
        "load-before-store"},
       {"a phase that reads what its neighbour stores",
        [](Planned& p) {
          std::vector<PlannedPhase>& phases = first(p).phases;
          phases[0].blocks.push_back(phases[1].blocks[0]);
          phases.erase(phases.begin() + 1);
          first(p).kept.clear();
        },
        "load-before-store"},
       {"two kept stages of one phase", [](Planned& p) { first(p).kept = {{0, 0}}; },
        "kept-one-of-a-phase"},
       {"a kept stage that comes later first", [](Planned& p) { first(p).kept = {{1, 0}}; },
        "kept-one-of-a-phase"},
       {"blocks of two sizes", [](Planned& p) { p.plan.schedules[0].threads *= 2; },
        "blocks-of-one-size"}});
}

TEST(VerifyPlan, Chains) {
  const char* text = R"(
    %x = input : f32[64,1024,256]
    %e = exp(sub(%x, amax(%x){axes=[2], keepdim}))
    %y = div(%e, sum(%e){axes=[2], keepdim})
    %o = layout(permute(%y){order=[0,2,1]}) : f32[64,256,1024]
    outputs (%o)
  )";
  expect_plan_faults(
      text, "h200",
      {{"a chain in the other order",
        [](Planned& p) { std::ranges::reverse(first(p).phases[0].blocks[0].stages); },
        "load-before-store"},
       {"a later phase that reads what only the chain's blocks have",
        [](Planned& p) {
          PlannedBlocks& chain = first(p).phases[0].blocks[0];
          first(p).phases.push_back({Join::kGrid, {PlannedBlocks{{chain.stages[1]}}}});
          chain.stages.pop_back();
        },
        "load-before-store"},
       {"a kept stage of a chain", [](Planned& p) { first(p).kept = {{0}}; },
        "kept-outside-chains"}});
}

// The call and the last kernel read what %y and %t might be stored over.
TEST(VerifyPlan, WhatIsStoredOverIsReadNoMore) {
  const char* text = R"(
    %x = input : f32[512,64]
    %w = input : f32[64,64]
    %m = library(%x){name="aten.mm.default"} : f32[512,64]
    %y = exp(%m)
    %t = add(%x, 1)
    %z = library(%y, %m){name="aten.mm.default"} : f32[512,64]
    %q = mul(%z, %x)
    mutate %x <- %t
    outputs (%q, %z)
  )";
  const auto find = [](const Planned& p, OpKind op) {
    return NodeId(std::ranges::find(p.graph.nodes, op, &Node::op) - p.graph.nodes.begin());
  };
  const auto store_over = [&](OpKind store, OpKind load) {
    return [=](Planned& p) { p.plan.stored_over[find(p, store)] = find(p, load); };
  };
  expect_plan_faults(
      text, "cpu",
      {{"memory of another size",
        [&](Planned& p) { p.plan.stored_over[find(p, OpKind::k_exp)] = p.graph.inputs[1]; },
        "stored-over-fits"},
       {"a call that reads what is gone", store_over(OpKind::k_exp, OpKind::k_library),
        "read-before-overwritten"},
       {"an output that is gone",
        [&](Planned& p) {
          NodeId z;
          for (const PlanStep& step : p.plan.steps)
            if (step.call.valid()) z = step.call;
          p.plan.stored_over[find(p, OpKind::k_mul)] = z;
        },
        "read-before-overwritten"},
       {"a mutation in place before its input is read",
        [](Planned& p) { p.plan.in_place[0] = true; }, "read-before-overwritten"}});
}

}  // namespace
}  // namespace stitch
