// Largest element of each row and the first place where it stands, by shuffles of pairs.
__device__ void combine(float& v, int& at, float other, int place) {
  if (other > v || (other == v && place < at)) v = other, at = place;
}
__device__ void reduce_warp(float& v, int& at) {
  for (int d = 16; d > 0; d /= 2)
    combine(v, at, __shfl_xor_sync(~0u, v, d), __shfl_xor_sync(~0u, at, d));
}
extern "C" __global__ void argmax(const float* x, float* most, long long* place, int columns) {
  __shared__ float values[8];
  __shared__ int places[8];
  const float* row = x + (long long)blockIdx.x * columns;
  float v = __int_as_float(0xff800000);
  int at = 0x7fffffff;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) combine(v, at, row[j], j);
  reduce_warp(v, at);
  if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = v, places[threadIdx.x / 32] = at;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < blockDim.x / 32; ++w) combine(v, at, values[w], places[w]);
    most[blockIdx.x] = v;
    place[blockIdx.x] = at;
  }
}
