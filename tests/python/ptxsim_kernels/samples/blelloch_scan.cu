// Exclusive scan of one segment per block: up-sweep and down-sweep in dynamic shared memory.
extern "C" __global__ void scan(const int* in, int* out, int n) {
  extern __shared__ int temp[];
  int t = threadIdx.x, size = 2 * blockDim.x, base = blockIdx.x * size;
  for (int i = t; i < size; i += blockDim.x) temp[i] = base + i < n ? in[base + i] : 0;
  int offset = 1;
  for (int d = size >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (t < d) temp[offset * (2 * t + 2) - 1] += temp[offset * (2 * t + 1) - 1];
    offset *= 2;
  }
  if (t == 0) temp[size - 1] = 0;
  for (int d = 1; d < size; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (t < d) {
      int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
      int v = temp[a];
      temp[a] = temp[b];
      temp[b] += v;
    }
  }
  __syncthreads();
  for (int i = t; i < size; i += blockDim.x)
    if (base + i < n) out[base + i] = temp[i];
}
