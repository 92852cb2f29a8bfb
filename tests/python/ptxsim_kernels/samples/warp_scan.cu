// Inclusive scan of a block's segment by shuffles, in two levels.
__device__ int scan_warp(int v) {
  for (int d = 1; d < 32; d <<= 1) {
    int below = __shfl_up_sync(0xffffffffu, v, d);
    if ((threadIdx.x & 31) >= d) v += below;
  }
  return v;
}
extern "C" __global__ void scan(const int* in, int* out, int n) {
  __shared__ int totals[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int v = scan_warp(i < n ? in[i] : 0);
  if (lane == 31) totals[warp] = v;
  __syncthreads();
  if (warp == 0) {
    int total = lane < blockDim.x / 32 ? totals[lane] : 0;
    totals[lane] = scan_warp(total) - total;
  }
  __syncthreads();
  if (i < n) out[i] = v + totals[warp];
}
