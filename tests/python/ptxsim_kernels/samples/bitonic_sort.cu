// Sorts segments of a power of two in shared memory; the last is filled up with the largest value.
extern "C" __global__ void sort(const int* in, int* out, int n) {
  extern __shared__ int s[];
  int t = threadIdx.x, size = 2 * blockDim.x, base = blockIdx.x * size;
  for (int i = t; i < size; i += blockDim.x) s[i] = base + i < n ? in[base + i] : 0x7fffffff;
  for (int k = 2; k <= size; k <<= 1)
    for (int j = k >> 1; j > 0; j >>= 1) {
      __syncthreads();
      int low = 2 * t - (t & (j - 1)), high = low + j;
      bool up = (low & k) == 0;
      if ((s[low] > s[high]) == up) {
        int v = s[low];
        s[low] = s[high];
        s[high] = v;
      }
    }
  __syncthreads();
  for (int i = t; i < size; i += blockDim.x)
    if (base + i < n) out[base + i] = s[i];
}
