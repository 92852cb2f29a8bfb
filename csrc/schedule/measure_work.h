// KernelSchedule -> KernelWork: the numbers its predicted time follows from.
#pragma once

#include "base/verdict.h"
#include "cost/estimate_kernel.h"
#include "schedule/kernel_schedule.h"

namespace stitch {

KernelWork measure_work(const Graph& graph, const PlannedKernel& kernel,
                        const KernelSchedule& schedule);

inline constexpr int kRuleLongKernel = 24;

// Compile time grows faster than the text (NVRTC 13: 0.6 s for 1,000 statements, 3.6 s for 4,000).
Verdict check_statements(const KernelSchedule& schedule);

inline constexpr int kRuleManyArguments = 25;

// A launch carries 4 KiB of arguments on every architecture we name (CUDA programming guide).
Verdict check_arguments(const PlannedKernel& kernel);

}  // namespace stitch
