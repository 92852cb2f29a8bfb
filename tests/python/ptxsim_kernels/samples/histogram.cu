// Histogram of bytes: atomics in shared memory, then in global memory.
extern "C" __global__ void histogram(const unsigned char* data, int n, unsigned* bins, int count) {
  extern __shared__ unsigned local[];
  for (int b = threadIdx.x; b < count; b += blockDim.x) local[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[data[i] % count], 1u);
  __syncthreads();
  for (int b = threadIdx.x; b < count; b += blockDim.x)
    if (local[b]) atomicAdd(&bins[b], local[b]);
}
