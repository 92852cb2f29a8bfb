// Reads of what nobody wrote: shared memory, outputs, registers, local arrays.
#define KERNEL extern "C" __global__ void

//# shared_of_absent_warps: uninitialized <<<2, 64>>> in f32[128], out f32[2]
KERNEL k(const float* x, float* y) {
  __shared__ float s[4];
  int t = threadIdx.x;
  if (t % 32 == 0) s[t / 32] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t == 0) y[blockIdx.x] = s[0] + s[1] + s[2] + s[3];  //!
}

//# shared_of_all_warps: ok <<<2, 64>>> in f32[128], out f32[2]
KERNEL k(const float* x, float* y) {
  __shared__ float s[4];
  int t = threadIdx.x;
  if (t % 32 == 0) s[t / 32] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t == 0) y[blockIdx.x] = s[0] + s[1];
}

//# shared_tail_left_out: uninitialized <<<2, 64>>> in f32[100], out f32[128], int 100
KERNEL k(const float* x, float* y, int n) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  if (i < n) s[t] = x[i];
  __syncthreads();
  y[i] = s[63 - t];  //!
}

//# shared_tail_filled: ok <<<2, 64>>> in f32[100], out f32[128], int 100
KERNEL k(const float* x, float* y, int n) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  y[i] = s[63 - t];
}

//# shared_histogram_not_cleared: uninitialized <<<2, 64>>> in iota i32[128], any zero i32[8]
KERNEL k(const int* x, int* bins) {
  __shared__ int s[8];
  int t = threadIdx.x;
  atomicAdd(&s[x[blockIdx.x * 64 + t] & 7], 1);  //!
  __syncthreads();
  if (t < 8) atomicAdd(&bins[t], s[t]);
}

//# shared_histogram_cleared: ok <<<2, 64>>> in iota i32[128], any zero i32[8]
KERNEL k(const int* x, int* bins) {
  __shared__ int s[8];
  int t = threadIdx.x;
  if (t < 8) s[t] = 0;
  __syncthreads();
  atomicAdd(&s[x[blockIdx.x * 64 + t] & 7], 1);
  __syncthreads();
  if (t < 8) atomicAdd(&bins[t], s[t]);
}

//# shared_of_the_block_before: uninitialized <<<4, 64>>> in f32[64], out f32[4x64]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  if (blockIdx.x == 0) s[t] = x[t];
  __syncthreads();
  y[blockIdx.x * 64 + t] = s[t];  //!
}

//# shared_bytes_in_part: uninitialized <<<2, 32>>> in u8[64], out i32[64]
KERNEL k(const unsigned char* x, int* y) {
  __shared__ __align__(4) unsigned char s[128];
  int i = blockIdx.x * 32 + threadIdx.x, t = threadIdx.x;
  for (int j = 0; j < 3; ++j) s[t * 4 + j] = x[i];
  y[i] = *(volatile int*)(s + t * 4);  //!
}

//# shared_bytes_in_full: ok <<<2, 32>>> in u8[64], out i32[64]
KERNEL k(const unsigned char* x, int* y) {
  __shared__ __align__(4) unsigned char s[128];
  int i = blockIdx.x * 32 + threadIdx.x, t = threadIdx.x;
  for (int j = 0; j < 4; ++j) s[t * 4 + j] = x[i];
  y[i] = *(volatile int*)(s + t * 4);
}

//# output_is_accumulated: uninitialized <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] += x[i];  //!
}

//# unrestricted_is_accumulated: ok <<<2, 64>>> in f32[128], any f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] += x[i];
}

//# output_by_atomics: uninitialized+unwritten <<<2, 64>>> in i32[128], out i32[8]
KERNEL k(const int* x, int* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  atomicAdd(&y[i & 7], x[i]);  //!
}

//# unrestricted_by_atomics: ok <<<2, 64>>> in i32[128], any zero i32[8]
KERNEL k(const int* x, int* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  atomicAdd(&y[i & 7], x[i]);
}

//# output_read_before_its_write: uninitialized <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float old = *(volatile float*)(y + i);  //!
  y[i] = old > 0 ? x[i] : -x[i];
}

//# output_read_after_its_write: ok <<<2, 64>>> in f32[128], out f32[128], out f32[128]
KERNEL k(const float* x, float* y, float* z) {
  int i = blockIdx.x * 64 + threadIdx.x;
  *(volatile float*)(y + i) = x[i];
  z[i] = *(volatile float*)(y + i) * 2;
}

//# register_on_one_path: uninitialized <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float v;
  asm volatile("{ .reg .f32 t; .reg .pred p; setp.gt.f32 p, %1, 0f00000000; @p mov.f32 t, %1;\n"
               "  add.f32 %0, t, %1; }" : "=f"(v) : "f"(i % 32 == 7 ? 1.0f : -1.0f));
  y[i] = v + x[i];  //!
}

//# register_on_both_paths: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float v;
  asm volatile("{ .reg .f32 t; .reg .pred p; setp.gt.f32 p, %1, 0f00000000; @p mov.f32 t, %1;\n"
               "  @!p mov.f32 t, 0f00000000; add.f32 %0, t, %1; }" : "=f"(v) : "f"(x[i]));
  y[i] = v + x[i];
}

//# register_as_an_address: uninitialized <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  int offset;
  asm volatile("{ .reg .b32 t; and.b32 %0, t, 127; }" : "=r"(offset));
  y[i] = x[offset];  //!
}

//# register_as_a_guard: uninitialized+unwritten <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  asm volatile("{ .reg .pred p; .reg .b32 t; setp.ge.u32 p, t, 5; @p st.f32 [%0], %1;\n"
               "  @!p st.f32 [%0], %1; }" :: "l"(y + i), "f"(x[i]) : "memory");
}

//# register_that_is_not_chosen: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float v;
  asm volatile("{ .reg .f32 t; .reg .pred p; setp.gt.f32 p, %1, 0f00000000; @p mov.f32 t, %1;\n"
               "  selp.f32 %0, t, 0f00000000, p; }" : "=f"(v) : "f"(x[i]));
  y[i] = v;
}

//# register_half_shifted_out: ok <<<2, 64>>> in bf16[128], out f32[128]
KERNEL k(const unsigned short* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float v;
  asm volatile("{ .reg .b16 t; .reg .b32 u; mov.b32 u, {%1, t}; shl.b32 u, u, 16;\n"
               "  mov.b32 %0, u; }" : "=f"(v) : "h"(x[i]));
  y[i] = v;
}

//# register_half_kept: uninitialized <<<2, 64>>> in bf16[128], out f32[128]
KERNEL k(const unsigned short* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float v;
  asm volatile("{ .reg .b16 t; .reg .b32 u; mov.b32 u, {t, %1}; shl.b32 u, u, 16;\n"
               "  mov.b32 %0, u; }" : "=f"(v) : "h"(x[i]));
  y[i] = v;  //!
}

//# register_computed_and_dropped: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  asm volatile("{ .reg .f32 t, u; add.f32 u, t, %0; mul.f32 u, u, u; }" :: "f"(x[i]));
  y[i] = x[i];
}

//# register_from_a_shuffle: uninitialized <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float v;
  asm volatile("{ .reg .f32 t; .reg .pred p; setp.ne.u32 p, %2, 3; @p mov.f32 t, %1;\n"
               "  shfl.sync.bfly.b32 %0, t, 1, 31, -1; }" : "=f"(v)
               : "f"(x[i]), "r"(threadIdx.x % 32));
  y[i] = v;  //!
}

//# local_array_half_filled: uninitialized <<<2, 64>>> in f32[512], out f32[128], int 3
KERNEL k(const float* x, float* y, int filled) {
  int i = blockIdx.x * 64 + threadIdx.x;
  volatile float a[4];
  for (int j = 0; j < filled; ++j) a[j] = x[i * 4 + j];
  y[i] = a[threadIdx.x & 3];  //!
}

//# local_array_filled: ok <<<2, 64>>> in f32[512], out f32[128], int 4
KERNEL k(const float* x, float* y, int filled) {
  int i = blockIdx.x * 64 + threadIdx.x;
  volatile float a[4];
  for (int j = 0; j < filled; ++j) a[j] = x[i * 4 + j];
  y[i] = a[threadIdx.x & 3];
}
