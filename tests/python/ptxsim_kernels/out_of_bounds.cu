// Accesses outside every view of the launch, freed memory, shared, local and constant arrays.
// cases.py explains the headers.
#define KERNEL extern "C" __global__ void

//# load_past_end: out_of_bounds <<<2, 64>>> in f32[100], out f32[128], int 128
KERNEL k(const float* x, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = x[i];  //!
}

//# load_ragged: ok <<<2, 64>>> in f32[100], out f32[100], int 100
KERNEL k(const float* x, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = x[i];
}

//# store_past_end: out_of_bounds <<<2, 64>>> in f32[128], out f32[127]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];  //!
}

//# store_to_the_last_element: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];
}

//# load_before_begin: out_of_bounds <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i] + x[i - 1];  //!
}

//# left_neighbour_guarded: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i] + (i > 0 ? x[i - 1] : 0.0f);
}

//# last_row_to_its_pitch: out_of_bounds <<<2, 32>>> in f32[6x5/8], out f32[48]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (i < 48) y[i] = x[i];  //!
}

//# rows_of_a_pitched_view: ok <<<2, 32>>> in f32[6x5/8], out f32[30]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (i < 30) y[i] = x[i / 5 * 8 + i % 5];
}

//# vector_over_the_tail: out_of_bounds <<<2, 64>>> in f32[510], out f32[512]
KERNEL k(const float4* x, float4* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];  //!
}

//# vector_with_scalar_tail: ok <<<2, 64>>> in f32[510], out f32[510], int 510
KERNEL k(const float* x, float* y, int n) {
  int i = (blockIdx.x * 64 + threadIdx.x) * 4;
  if (i + 4 <= n) {
    *(float4*)(y + i) = *(const float4*)(x + i);
  } else {
    for (; i < n; ++i) y[i] = x[i];
  }
}

//# bin_past_the_histogram: out_of_bounds <<<2, 64>>> in iota i32[128], any zero i32[127]
KERNEL k(const int* x, int* bins) {
  atomicAdd(&bins[x[blockIdx.x * 64 + threadIdx.x]], 1);  //!
}

//# bins_of_a_histogram: ok <<<2, 64>>> in iota i32[128], any zero i32[16]
KERNEL k(const int* x, int* bins) {
  atomicAdd(&bins[x[blockIdx.x * 64 + threadIdx.x] & 15], 1);
}

//# index_overflows_32_bits: out_of_bounds <<<2, 64>>> in f32[128], out f32[128], int 100000
KERNEL k(const float* x, float* y, int pitch) {
  int i = blockIdx.x * 64 + threadIdx.x;
  unsigned row = (unsigned)(i + 1) * (unsigned)pitch * (unsigned)pitch;  // wraps
  y[i] = x[(int)(row % 999983)];  //!
}

//# index_in_64_bits: ok <<<2, 64>>> in f32[128], out f32[128], int 100000
KERNEL k(const float* x, float* y, int pitch) {
  int i = blockIdx.x * 64 + threadIdx.x;
  long long row = (long long)i * pitch * pitch;
  y[i] = x[row / pitch / pitch];
}

//# null_is_read: out_of_bounds <<<2, 64>>> in f32[128], null, out f32[128]
KERNEL k(const float* x, const float* bias, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i] + bias[threadIdx.x];  //!
}

//# null_is_looked_at: ok <<<2, 64>>> in f32[128], null, out f32[128]
KERNEL k(const float* x, const float* bias, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = bias ? x[i] + bias[threadIdx.x] : x[i];
}

//# freed_is_read: out_of_bounds <<<2, 64>>> stale f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];  //!
}

//# freed_is_written: out_of_bounds <<<2, 64>>> in f32[128], stale f32[128]
KERNEL k(const float* x, float* workspace) {
  int i = blockIdx.x * 64 + threadIdx.x;
  workspace[i] = x[i];  //!
}

//# freed_counter: out_of_bounds <<<2, 64>>> stale i32[1], out i32[128]
KERNEL k(int* counter, int* y) {
  y[blockIdx.x * 64 + threadIdx.x] = 7;
  if (threadIdx.x == 0) atomicAdd(counter, 1);  //!
}

//# freed_is_not_touched: ok <<<2, 64>>> in f32[128], stale f32[128], out f32[128], int 0
KERNEL k(const float* x, const float* residual, float* y, int has_residual) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = has_residual ? x[i] + residual[i] : x[i];
}

//# freed_is_compared: ok <<<2, 64>>> in f32[128], stale f32[128], out f32[128]
KERNEL k(const float* x, const float* old, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = (old + i == x + i) ? 0.0f : x[i];  // its address is compared, no more
}

//# workspace_is_alive: ok <<<2, 64>>> in f32[128], any f32[128], out f32[128]
KERNEL k(const float* x, float* workspace, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  workspace[i] = x[i];
  y[i] = workspace[i] * 2;
}

//# shared_one_too_far: out_of_bounds <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = x[i];
  __syncthreads();
  y[i] = s[t + 1];  //!
}

//# shared_with_a_halo: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[65];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = x[i];
  if (t == 0) s[64] = 0;
  __syncthreads();
  y[i] = s[t + 1];
}

//# dynamic_shared_too_small: out_of_bounds <<<2, 64, 252>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  extern __shared__ float s[];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = x[i];  //!
  __syncthreads();
  y[i] = s[t == 63 ? 0 : 62 - t];
}

//# dynamic_shared_just_enough: ok <<<2, 64, 256>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  extern __shared__ float s[];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = x[i];
  __syncthreads();
  y[i] = s[63 - t];
}

//# dynamic_shared_forgotten: out_of_bounds <<<2, 64>>> in iota i32[128]
KERNEL k(const int* x) {
  extern __shared__ int bins[];
  atomicAdd(&bins[x[blockIdx.x * 64 + threadIdx.x] & 7], 1);  //!
}

//# shared_through_a_generic_pointer: out_of_bounds <<<2, 64>>> in f32[128], out f32[128], int 8
__device__ __noinline__ float get(const float* p, int i) {
  return p[i];  //!
}
KERNEL k(const float* x, float* y, int far) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = x[i];
  __syncthreads();
  y[i] = get(s, t + far);
}

//# shared_and_global_through_one_function: ok <<<2, 64>>> in f32[128], out f32[128]
__device__ __noinline__ float get(const float* p, int i) { return p[i]; }
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = get(x, i);
  __syncthreads();
  y[i] = get(s, 63 - t);
}

//# local_array_overrun: out_of_bounds <<<2, 64>>> in f32[512], out f32[128], int 4
KERNEL k(const float* x, float* y, int pick) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float a[4];
  for (int j = 0; j < 4; ++j) a[j] = x[i * 4 + j];
  y[i] = a[(threadIdx.x & 3) + pick];  //!
}

//# local_array_underrun: out_of_bounds <<<2, 64>>> in f32[512], out f32[128], int 1
KERNEL k(const float* x, float* y, int pick) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float a[4];
  for (int j = 0; j < 4; ++j) a[j] = x[i * 4 + j];
  y[i] = a[(int)(threadIdx.x & 3) - pick];  //!
}

//# local_array: ok <<<2, 64>>> in f32[512], out f32[128], int 3
KERNEL k(const float* x, float* y, int pick) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float a[4];
  for (int j = 0; j < 4; ++j) a[j] = x[i * 4 + j];
  y[i] = a[(threadIdx.x + pick) & 3];
}

//# constant_overrun: out_of_bounds <<<2, 64>>> out f32[128]
__constant__ float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
KERNEL k(float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = table[i & 15];  //!
}

//# constant_table: ok <<<2, 64>>> out f32[128]
__constant__ float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
KERNEL k(float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = table[i & 7];
}
