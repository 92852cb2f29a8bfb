// a * x + y on pairs of 16-bit numbers, rounded once per element; an odd last element by itself.
extern "C" __global__ void fma_f16(const unsigned short* x, const unsigned short* y,
                                   unsigned short* z, unsigned a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (2 * i + 1 < n) {
    unsigned p = ((const unsigned*)x)[i], q = ((const unsigned*)y)[i], r;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(p), "r"(q));
    ((unsigned*)z)[i] = r;
  } else if (2 * i < n) {
    asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(z[2 * i])
        : "h"((unsigned short)a), "h"(x[2 * i]), "h"(y[2 * i]));
  }
}
extern "C" __global__ void fma_bf16(const unsigned short* x, const unsigned short* y,
                                    unsigned short* z, unsigned a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (2 * i + 1 < n) {
    unsigned p = ((const unsigned*)x)[i], q = ((const unsigned*)y)[i], r;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(p), "r"(q));
    ((unsigned*)z)[i] = r;
  } else if (2 * i < n) {
    asm("fma.rn.bf16 %0, %1, %2, %3;" : "=h"(z[2 * i])
        : "h"((unsigned short)a), "h"(x[2 * i]), "h"(y[2 * i]));
  }
}
