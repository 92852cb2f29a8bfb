#include "cost/judge_attention.h"

namespace stitch {

// Written out over library time on one core of two hosts of 2 cores and AVX-512, heads of 64 [M,
// torch 2.13, 2026-11]; the softmax written out is torch's, which is slower than ours.
//   heads x rows x columns   fp32 scores   fp32   fp16   bf16 (avx512_bf16)   bf16 (without)
//    128 x    1 x  512         0.3 MB      0.85   0.32        0.24
//     12 x  128 x  128         0.8 MB      0.9     24         0.39                 2.9
//     48 x  128 x  128         3.1 MB      1.02    28                              2.7
//     12 x  512 x  512          13 MB      1.1-1.2 38         0.32                 3.2
//     12 x 1024 x 1024          50 MB      1.3-2.1 34         0.66                 3.4
// With AMX the library's kernel multiplies by tiles: unmeasured, taken as without.  GPUs have
// tensor cores for 16 bits only: unmeasured.
Verdict judge_attention(const AttentionWork& work, const DeviceSpec& device) {
  if (!device.is_cuda && work.rows == 1)
    return Verdict::no(kRuleOneQuery, "a query alone reads each key once, as the products do",
                       "attention=\"library\"");
  if (device.multiplies_bf16 && work.dtype == DType::kBF16)
    return Verdict::no(kRuleProductsInBf16,
                       "this processor multiplies bf16, the library's attention widens it",
                       "attention=\"library\"");
  const bool is_narrow = info(work.dtype).bytes == 2;
  if (is_narrow || work.score_bytes > static_cast<double>(device.l2_bytes)) return Verdict::yes();
  return Verdict::no(kRuleScoresInCache,
                     "the scores fit the cache, where the library's attention is no faster",
                     "attention=\"library\"");
}

}  // namespace stitch
