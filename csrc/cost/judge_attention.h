// Does the library's attention beat two batched products with a stitched softmax between them?
#pragma once

#include "base/verdict.h"
#include "cost/device_spec.h"

namespace stitch {

struct AttentionWork {
  double score_bytes = 0;  // of all scores, which the library's kernel never stores
  bool is_16_bit = false;
};

Verdict judge_attention(const AttentionWork& work, const DeviceSpec& device);

inline constexpr int kRuleScoresInCache = 36;

}  // namespace stitch
