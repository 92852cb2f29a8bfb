// float to half and to bfloat16 and back, by the instructions.
extern "C" __global__ void convert(const float* x, unsigned short* h, unsigned short* b, float* y,
                                   int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float back;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h[i]) : "f"(x[i]));
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b[i]) : "f"(x[i]));
  unsigned short half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x[i]));
  asm("cvt.f32.f16 %0, %1;" : "=f"(back) : "h"(half));
  y[i] = back;
}
