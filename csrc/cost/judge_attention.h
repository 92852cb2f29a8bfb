// Does the library's attention beat two batched products with a stitched softmax between them?
#pragma once

#include "base/verdict.h"
#include "cost/device_spec.h"
#include "ops/type.h"

namespace stitch {

struct AttentionWork {
  double score_bytes = 0;  // of all scores, which the library's kernel never stores
  int64_t rows = 0;        // queries of one head
  DType dtype = DType::kF32;
};

Verdict judge_attention(const AttentionWork& work, const DeviceSpec& device);

inline constexpr int kRuleScoresInCache = 36;
inline constexpr int kRuleOneQuery = 38;        // both products are of a matrix and a vector
inline constexpr int kRuleProductsInBf16 = 39;  // the host multiplies bf16 as it is

}  // namespace stitch
