// The named patterns whose plans, schedules and kernel texts are kept under tests/golden.
#pragma once

#include <string>
#include <vector>

namespace stitch {

struct GoldenGraph {
  const char* name;
  const char* text;
};

inline const std::vector<GoldenGraph> kGoldenGraphs = {
    {"softmax", R"(
        %x = input : f32[4096,1024]
        %e = exp(sub(%x, amax(%x){axes=[1], keepdim}))
        %y = div(%e, sum(%e){axes=[1], keepdim})
        outputs (%y)
      )"},
    {"dynamic_softmax", R"(
        symbols s0 = input(0) hint 4096, s1 = input(1) hint 1000
        %x = input : bf16[s0,s1]
        %f = cast(%x) : f32
        %e = exp(sub(%f, amax(%f){axes=[1], keepdim}))
        %y = cast(div(%e, sum(%e){axes=[1], keepdim})) : bf16
        outputs (%y)
      )"},
    {"layernorm", R"(
        %x = input : bf16[8192,1024]
        %w = input : bf16[1024]
        %b = input : bf16[1024]
        %f = cast(%x) : f32
        %mean = div(sum(%f){axes=[1], keepdim}, 1024)
        %variance = div(sum_sq_dev(%f){axes=[1], keepdim} : f32, 1024)
        %n = mul(sub(%f, %mean), rsqrt(add(%variance, 0.00001)))
        %y = cast(add(mul(%n, cast(%w) : f32), cast(%b) : f32)) : bf16
        outputs (%y)
      )"},
    {"groupnorm", R"(
        %x = input : f16[8,64,32,32]
        %w = input : f16[64]
        %b = input : f16[64]
        %f = cast(reshape(%x){shape=[8,32,2048]}) : f32
        %mean = div(sum(%f){axes=[2], keepdim}, 2048)
        %variance = div(sum_sq_dev(%f){axes=[2], keepdim} : f32, 2048)
        %n = mul(sub(%f, %mean), rsqrt(add(%variance, 0.00001)))
        %c = reshape(%n){shape=[8,64,32,32]}
        %w4 = cast(reshape(%w){shape=[64,1,1]}) : f32
        %b4 = cast(reshape(%b){shape=[64,1,1]}) : f32
        %y = cast(add(mul(%c, %w4), %b4)) : f16
        outputs (%y)
      )"},
    {"column_sum", R"(
        %x = input : f32[16384,768]
        %y = sum(%x){axes=[0]}
        outputs (%y)
      )"},
    {"sums_and_max", R"(
        %x = input : f32[4096,4096]
        %columns = sum(%x){axes=[0]}
        %rows = sum(%x){axes=[1]}
        %largest = amax(%x)
        outputs (%columns, %rows, %largest)
      )"},
    {"gelu_with_bias", R"(
        %x = input : bf16[8192,3072]
        %bias = input : bf16[3072]
        %f = add(cast(%x) : f32, cast(%bias) : f32)
        %y = cast(mul(mul(%f, 0.5), add(erf(mul(%f, 0.7071067811865476)), 1))) : bf16
        outputs (%y)
      )"},
    {"rope", R"(
        %q = input : f16[4,16,512,64]
        %cos = input : f16[512,64]
        %sin = input : f16[512,64]
        %first = slice(%q){dim=3, start=0, count=32}
        %second = slice(%q){dim=3, start=32, count=32}
        %rotated = cat(neg(%second), %first){dim=3}
        %y = add(mul(%q, %cos), mul(%rotated, %sin))
        outputs (%y)
      )"},
    {"norm_rope", R"(
        %q = input : bf16[2,512,8,64]
        %w = input : bf16[64]
        %cos = input : bf16[512,1,64]
        %sin = input : bf16[512,1,64]
        %f = cast(%q) : f32
        %scale = rsqrt(add(div(sum(mul(%f, %f)){axes=[3], keepdim}, 64), 0.000001))
        %n = mul(cast(mul(%f, %scale)) : bf16, %w)
        %first = slice(%n){dim=3, start=0, count=32}
        %second = slice(%n){dim=3, start=32, count=32}
        %rotated = cat(neg(%second), %first){dim=3}
        %y = add(mul(%n, %cos), mul(%rotated, %sin))
        outputs (%y)
      )"},
    {"embedding_layernorm", R"(
        %tokens = input : i64[8,128]
        %words = input : f32[30522,768]
        %positions = input : f32[128,768]
        %w = input : f32[768]
        %b = input : f32[768]
        %x = add(index(%words, %tokens){axes=[0]}, %positions)
        %mean = div(sum(%x){axes=[2], keepdim}, 768)
        %variance = div(sum_sq_dev(%x){axes=[2], keepdim} : f32, 768)
        %n = mul(sub(%x, %mean), rsqrt(add(%variance, 0.00001)))
        %y = add(mul(%n, %w), %b)
        outputs (%y)
      )"},
    {"argmax", R"(
        %x = input : f32[1024,50257]
        %y = argmax(%x){axes=[1]}
        outputs (%y)
      )"},
    {"segment_softmax", R"(
        %scores = input : f32[1000000]
        %target = input : i64[1000000]
        %order = input : i64[1000000]
        %offsets = input : i64[100001]
        %lowest = expand(-1000000.0){shape=[100000]} : f32
        %most = segment_max(%lowest, %scores, %order, %offsets){dim=0}
        %e = exp(sub(%scores, index(%most, %target){axes=[0]}))
        %zeros = expand(0.0){shape=[100000]} : f32
        %total = segment_sum(%zeros, %e, %order, %offsets){dim=0}
        %y = div(%e, index(%total, %target){axes=[0]})
        outputs (%y)
      )"},
    {"cache_write", R"(
        %cache = input : bf16[8,16,512,64]
        %place = input : i64[1]
        %key = input : bf16[8,16,1,64]
        %written = slice_scatter(%cache, %key, reshape(%place){shape=[1,1,1,1]}){dim=2}
        %y = amax(%written){axes=[3]}
        mutate %cache <- %written
        outputs (%y)
      )"},
    {"transpose", R"(
        %x = input : bf16[1000,301]
        %z = input : f32[301,1000]
        %y = add(cast(permute(%x){order=[1,0]}) : f32, %z)
        outputs (%y)
      )"},
    {"norm_of_middle", R"(
        %x = input : f32[64,512,256]
        %e = exp(permute(%x){order=[0,2,1]})
        %y = div(%e, sum(%e){axes=[2], keepdim})
        outputs (%y)
      )"},
};

inline const std::vector<GoldenGraph>& golden_graphs() { return kGoldenGraphs; }

}  // namespace stitch
