// Verifiers of what the stages hand on: an InternalError names the broken rule and what breaks it,
// as "plan rule load-before-store: kernel 2 reads %7".  Bodies are verified where they are lowered
// (codegen/kernel_body.h).
#pragma once

#include "codegen/kernel_source.h"
#include "plan/stitch_plan.h"

namespace stitch {

// Before anything is made of it.
void verify_plan(const Graph& graph, const StitchPlan& plan);
// What is finished and has its block counts.
void verify_schedule(const Graph& graph, const Stage& stage, const StageSchedule& schedule);
// The end of a kernel's name, by its text without that name.
std::string hash_of(const std::string& text);
// Before it is compiled.
void verify_source(const KernelSource& source, const DeviceSpec& device);

// The plan and its schedules.
inline void verify_planned(const Graph& graph, const StitchPlan& plan) {
  verify_plan(graph, plan);
  for (size_t s = 0; s < plan.stages.size(); ++s)
    verify_schedule(graph, plan.stages[s], plan.schedules[s]);
}

}  // namespace stitch
