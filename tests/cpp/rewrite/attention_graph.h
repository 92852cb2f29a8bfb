// Graphs with attention written out, for the tests of what finds and calls it.
#pragma once

#include <string>

#include "support/read_graph.h"

namespace stitch {

inline constexpr const char* kHeads = R"(
    %q = input : f32[2,3,8,4]
    %k = input : f32[2,3,6,4]
    %v = input : f32[2,3,6,4]
    %kt = permute(%k){order=[0,1,3,2]}
    %q3 = reshape(%q){shape=[6,8,4]}
    %k3 = reshape(%kt){shape=[6,4,6]}
    %v3 = reshape(%v){shape=[6,6,4]}
    %s3 = library(%q3, %k3){name="aten.bmm.default", integer=0} : f32[6,8,6]
    %s = reshape(%s3){shape=[2,3,8,6]}
)";

inline constexpr const char* kSoftmax = R"(
    %e = exp(sub(%x, reshape(amax(%x){axes=[3]}){shape=[2,3,8,1]}))
    %p = div(%e, reshape(sum(%e){axes=[3]}){shape=[2,3,8,1]})
    %p3 = reshape(%p){shape=[6,8,6]}
)";

inline constexpr const char* kResult = R"(
    %y = library(%p3, %v3){name="aten.bmm.default", integer=1} : f32[6,8,4]
    outputs (%y)
)";

// `steps` make the masked scores %x of the scores %s; `inputs` come first.
inline std::string attention_text(const std::string& steps, const std::string& inputs = "") {
  return inputs + kHeads + steps + kSoftmax + kResult;
}

}  // namespace stitch
