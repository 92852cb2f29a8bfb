// Scan of the whole array in one launch: a block draws its place by ticket and waits for the total
// of the block before it.
extern "C" __global__ void scan(const int* in, int* out, int n, unsigned* ticket, int* totals,
                                unsigned* ready) {
  __shared__ int s[128], before;
  __shared__ unsigned place;
  int t = threadIdx.x;
  if (t == 0) place = atomicAdd(ticket, 1);
  __syncthreads();
  int i = place * blockDim.x + t;
  s[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int d = 1; d < blockDim.x; d <<= 1) {
    int v = t >= d ? s[t - d] : 0;
    __syncthreads();
    s[t] += v;
    __syncthreads();
  }
  if (t == 0) {
    int sum = 0;
    if (place > 0) {
      while (atomicAdd(&ready[place - 1], 0) == 0) {}
      __threadfence();
      sum = totals[place - 1];
    }
    totals[place] = sum + s[blockDim.x - 1];
    __threadfence();
    atomicExch(&ready[place], 1);
    before = sum;
  }
  __syncthreads();
  if (i < n) out[i] = s[t] + before;
}
