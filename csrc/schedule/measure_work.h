// KernelSchedule -> KernelWork: the numbers its predicted time follows from.
#pragma once

#include "cost/estimate_kernel.h"
#include "schedule/kernel_schedule.h"

namespace stitch {

KernelWork measure_work(const Graph& graph, const PlannedKernel& kernel,
                        const KernelSchedule& schedule);

}  // namespace stitch
