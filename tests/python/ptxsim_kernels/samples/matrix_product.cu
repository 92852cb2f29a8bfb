// Tiles of both factors in shared memory; ragged on all three sides.
constexpr int kTile = 8;
extern "C" __global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float as[kTile][kTile], bs[kTile][kTile + 1];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * kTile + ty, column = blockIdx.x * kTile + tx;
  float sum = 0;
  for (int p = 0; p < k; p += kTile) {
    as[ty][tx] = row < m && p + tx < k ? a[row * k + p + tx] : 0;
    bs[ty][tx] = p + ty < k && column < n ? b[(p + ty) * n + column] : 0;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kTile; ++j) sum += as[ty][j] * bs[j][tx];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
