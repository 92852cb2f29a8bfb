// Two stages of different mappings that one block runs one after the other (PlannedChain).
//
// The first stage keeps the mapping it would have alone: parallelism has priority.  The second, if
// it is element-wise, is mapped so that each block has the range of the first's results that the
// same block made (AStitch 3.4, proactive adaptation); one that reduces keeps its own mapping too,
// and its blocks must happen to have the same ranges (the passive check).
#pragma once

#include <optional>

#include "schedule/schedule_stage.h"

namespace stitch {

struct ChainedStages {
  const PlannedStage *first, *then;
  const std::vector<NodeId>& in_shared;
};

struct ChainSchedules {
  StageSchedule first, then;
};

// Nothing where sizes are not static, a block would need another one's results, or those of one
// block do not fit in its share of shared memory.
std::optional<ChainSchedules> schedule_chain(const Graph& graph, const ChainedStages& chain,
                                             const DeviceSpec& device, SymbolTable& symbols,
                                             const BlockBounds& bounds);

}  // namespace stitch
