// Sums of blocks: shuffles within warps, shared memory between them; any n.
__inline__ __device__ float warp_sum(float v) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2)
    v += __shfl_down_sync(0xffffffff, v, offset);
  return v;
}
extern "C" __global__ void reduce(const float* __restrict__ x, float* __restrict__ y, int n) {
  __shared__ float sums[32];
  int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v += x[i];
  v = warp_sum(v);
  if (lane == 0) sums[warp] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / warpSize ? sums[lane] : 0;
  if (warp == 0) v = warp_sum(v);
  if (threadIdx.x == 0) y[blockIdx.x] = v;
}
