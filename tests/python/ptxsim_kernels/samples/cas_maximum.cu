// Maximum of floats by a compare-and-swap loop.
__device__ void atomic_max(float* address, float value) {
  int* word = (int*)address;
  int old = *(volatile int*)word, assumed;
  while (__int_as_float(old) < value) {
    assumed = old;
    old = atomicCAS(word, assumed, __float_as_int(value));
    if (old == assumed) break;
  }
}
extern "C" __global__ void maximum(const float* x, float* most, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomic_max(most, x[i]);
}
