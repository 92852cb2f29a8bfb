#include "cost/judge_attention.h"

namespace stitch {

// 16 bits: the library wins at every size.  fp32: it wins where scores leave the cache.  Written
// out over library time on one core of a 2-core AVX-512 host with 2 MB of cache a core, heads of 64
// [M, torch 2.13, 2026-11]:
//   heads x rows x columns   scores in fp32   fp32   bf16   fp16
//     12 x  128 x  128           0.8 MB       0.88    2.9     24
//     48 x  128 x  128           3.1 MB       1.02    2.7     28
//     12 x  512 x  512            13 MB       1.09    3.2     38
//     96 x  512 x  512           101 MB       1.22    3.3
//     12 x 1024 x 1024            50 MB       1.32    3.4     34
// GPUs take the same rule, unmeasured: only the 16-bit kernels use tensor cores.
Verdict judge_attention(const AttentionWork& work, const DeviceSpec& device) {
  if (work.is_16_bit || work.score_bytes > static_cast<double>(device.l2_bytes))
    return Verdict::yes();
  return Verdict::no(kRuleScoresInCache,
                     "the scores fit the cache, where the library's attention is no faster",
                     "attention=\"library\"");
}

}  // namespace stitch
