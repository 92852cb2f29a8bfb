// A 3x3 mean on a 2-D grid, borders clamped, weights in constant memory; grid and block are 2-D.
__constant__ int kernel[3][3] = {{1, 2, 1}, {2, 4, 2}, {1, 2, 1}};
extern "C" __global__ void blur(const unsigned char* in, unsigned char* out, int width,
                                int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int sum = 8;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) {
      int sx = min(max(x + dx, 0), width - 1), sy = min(max(y + dy, 0), height - 1);
      sum += kernel[dy + 1][dx + 1] * in[sy * width + sx];
    }
  out[y * width + x] = sum / 16;
}
