// Calls that are not inlined: by value, by pointer to local memory, through a table of cases.
__constant__ float weights[5] = {0.5f, -1.0f, 2.0f, 0.25f, 8.0f};
__device__ __noinline__ float horner(float x, int terms) {
  float v = 0;
  for (int j = 0; j < terms; ++j) v = v * x + weights[j];
  return v;
}
__device__ __noinline__ void sort(float* v, int n) {
  for (int i = 1; i < n; ++i)
    for (int j = i; j > 0 && v[j - 1] > v[j]; --j) {
      float t = v[j];
      v[j] = v[j - 1];
      v[j - 1] = t;
    }
}
__device__ __noinline__ float pick(int what, float a, float b) {
  switch (what) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return fminf(a, b);
    case 4: return fmaxf(a, b);
    case 5: return -a;
    default: return b;
  }
}
extern "C" __global__ void medians(const float* x, float* y, float* z, int n, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float window[7];
  for (int j = 0; j < width; ++j) window[j] = x[min(i + j, n - 1)];
  sort(window, width);
  y[i] = window[width / 2];
  z[i] = pick(i % 7, horner(x[i], i % 6 ? 5 : 2), x[i]);
}
