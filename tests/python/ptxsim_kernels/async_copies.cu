// cp.async: the bytes arrive at some moment before the wait that covers them.
#define KERNEL extern "C" __global__ void
#define ASM asm volatile
__device__ unsigned at(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
__device__ void copy16(void* shared, const void* global) {
  ASM("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at(shared)), "l"(global) : "memory");
}
__device__ void copy4(void* shared, const void* global) {
  ASM("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at(shared)), "l"(global) : "memory");
}
__device__ void copy4_if(void* shared, const void* global, bool is_there) {
  ASM("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at(shared)), "l"(global),
      "r"(is_there ? 4 : 0) : "memory");
}
__device__ void commit() { ASM("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ void wait() { ASM("cp.async.wait_group %0;" ::"n"(kPending) : "memory"); }
__device__ void wait_all() { ASM("cp.async.wait_all;" ::: "memory"); }

//# not_waited_for: race <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  copy4(s + t, x + i);
  __syncthreads();
  y[i] = s[t];  //!
}

//# waited_for: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  copy4(s + t, x + i);
  wait_all();
  __syncthreads();
  y[i] = s[63 - t];
}

//# waited_for_without_a_barrier: race+uninitialized <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  copy4(s + t, x + i);
  wait_all();
  y[i] = s[63 - t];
}

//# own_copy_needs_no_barrier: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  copy4(s + t, x + i);
  wait_all();
  y[i] = s[t];
}

//# not_committed: race <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  copy4(s + t, x + i);
  wait<0>();
  __syncthreads();
  y[i] = s[t];  //!
}

//# committed: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  copy4(s + t, x + i);
  commit();
  wait<0>();
  __syncthreads();
  y[i] = s[t];
}

//# waits_for_a_group_too_few: race <<<2, 64>>> in f32[256], out f32[256]
KERNEL k(const float* x, float* y) {
  __shared__ float s[2][64];
  int i = blockIdx.x * 128 + threadIdx.x, t = threadIdx.x;
  copy4(s[0] + t, x + i);
  commit();
  copy4(s[1] + t, x + i + 64);
  commit();
  wait<1>();
  __syncthreads();
  y[i] = s[0][t];
  y[i + 64] = s[1][t];  //!
}

//# waits_group_by_group: ok <<<2, 64>>> in f32[256], out f32[256]
KERNEL k(const float* x, float* y) {
  __shared__ float s[2][64];
  int i = blockIdx.x * 128 + threadIdx.x, t = threadIdx.x;
  copy4(s[0] + t, x + i);
  commit();
  copy4(s[1] + t, x + i + 64);
  commit();
  wait<1>();
  __syncthreads();
  y[i] = s[0][63 - t];
  wait<0>();
  __syncthreads();
  y[i + 64] = s[1][63 - t];
}

//# destination_is_overwritten: race <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  copy4(s + t, x + i);
  s[t] = 0;  //!
  wait_all();
  y[i] = s[t];
}

//# ring_is_refilled_too_early: race <<<2, 64>>> in f32[512], any zero f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  float sum = 0;
  for (int j = 0; j < 4; ++j) {
    copy4(s + t, x + j * 128 + i);
    wait_all();
    __syncthreads();
    sum += s[63 - t];
  }
  y[i] = sum;
}

//# ring_of_two: ok <<<2, 64>>> in f32[512], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[2][64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  float sum = 0;
  copy4(s[0] + t, x + i);
  commit();
  for (int j = 0; j < 4; ++j) {
    if (j < 3) copy4(s[(j + 1) & 1] + t, x + (j + 1) * 128 + i);
    commit();
    wait<1>();
    __syncthreads();
    sum += s[j & 1][63 - t];
    __syncthreads();
  }
  y[i] = sum;
}

//# source_is_overwritten: race <<<2, 64>>> any f32[128], out f32[128]
KERNEL k(float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  copy4(s + t, x + i);
  x[i] = 0;
  wait_all();
  y[i] = s[t];
}

//# source_is_overwritten_after_the_wait: ok <<<2, 64>>> any f32[128], out f32[128]
KERNEL k(float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  copy4(s + t, x + i);
  wait_all();
  x[i] = 0;
  y[i] = s[t];
}

//# sixteen_bytes_past_the_end: out_of_bounds <<<2, 32>>> in f32[254], out f32[254]
KERNEL k(const float* x, float* y) {
  __shared__ __align__(16) float s[128];
  int b = blockIdx.x * 128, t = threadIdx.x;
  for (int j = t; j < 128; j += 32) s[j] = 0;
  __syncthreads();
  copy16(s + 4 * t, x + b + 4 * t);  //!
  wait_all();
  for (int j = 0; j < 4; ++j)
    if (b + 4 * t + j < 254) y[b + 4 * t + j] = s[4 * t + j];
}

//# zeros_past_the_end: ok <<<2, 64>>> in f32[100], out f32[128], int 100
KERNEL k(const float* x, float* y, int n) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  copy4_if(s + t, x + i, i < n);
  wait_all();
  __syncthreads();
  y[i] = s[63 - t];
}

//# sixteen_bytes_from_a_shifted_view: misaligned <<<2, 32>>> in f32[256]+2, out f32[256]
KERNEL k(const float* x, float* y) {
  __shared__ __align__(16) float s[128];
  int b = blockIdx.x * 128, t = threadIdx.x;
  for (int j = t; j < 128; j += 32) s[j] = 0;
  __syncthreads();
  copy16(s + 4 * t, x + b + 4 * t);
  wait_all();
  for (int j = 0; j < 4; ++j) y[b + 4 * t + j] = s[4 * t + j];
}

//# sixteen_bytes_from_an_even_view: ok <<<2, 32>>> in f32[256]+4, out f32[256]
KERNEL k(const float* x, float* y) {
  __shared__ __align__(16) float s[128];
  int b = blockIdx.x * 128, t = threadIdx.x;
  copy16(s + 4 * t, x + b + 4 * t);
  wait_all();
  for (int j = 0; j < 4; ++j) y[b + 4 * t + j] = s[4 * t + j];
}
