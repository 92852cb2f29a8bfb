// A fair lock: one draws a ticket and waits, with acquire, until it is served; leaves with release.
__device__ unsigned draw(unsigned* next) {
  unsigned v;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;" : "=r"(v) : "l"(next) : "memory");
  return v;
}
__device__ unsigned served(unsigned* now) {
  unsigned v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(now) : "memory");
  return v;
}
__device__ void leave(unsigned* now, unsigned v) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(now), "r"(v) : "memory");
}
extern "C" __global__ void deposit(unsigned* lock, const int* amounts, long long* account, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned ticket = draw(lock);
  while (served(lock + 1) != ticket) {}
  account[0] += amounts[i];
  account[1] += 1;
  leave(lock + 1, ticket + 1);
}
