// Elements of outputs that nobody writes, or somebody writes twice.
#define KERNEL extern "C" __global__ void

//# guard_one_short: unwritten <<<2, 64>>> in f32[100], out f32[100], int 100
KERNEL k(const float* x, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n - 1) y[i] = x[i];
}

//# guard_exact: ok <<<2, 64>>> in f32[100], out f32[100], int 100
KERNEL k(const float* x, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = x[i];
}

//# tail_without_vector: unwritten <<<2, 64>>> in f32[510], out f32[510], int 510
KERNEL k(const float* x, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n / 4) ((float4*)y)[i] = ((const float4*)x)[i];
}

//# vectors_and_tail: ok <<<2, 64>>> in f32[510], out f32[510], int 510
KERNEL k(const float* x, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n / 4) ((float4*)y)[i] = ((const float4*)x)[i];
  if (i < n % 4) y[n / 4 * 4 + i] = x[n / 4 * 4 + i];
}

//# grid_too_small: unwritten <<<2, 64>>> in f32[192], out f32[192]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];
}

//# grid_strides: ok <<<2, 64>>> in f32[500], out f32[500], int 500
KERNEL k(const float* x, float* y, int n) {
  for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) y[i] = x[i];
}

//# only_positive_is_written: unwritten <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (x[i] > 0) y[i] = x[i];
}

//# one_byte_missing: unwritten <<<2, 64>>> out i32[128]
KERNEL k(unsigned char* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[4 * i] = y[4 * i + 1] = y[4 * i + 2] = 1;
}

//# bytes_by_four: ok <<<2, 64>>> out u8[512]
KERNEL k(unsigned char* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  for (int j = 0; j < 4; ++j) y[j * 128 + i] = 1;
}

//# second_output_forgotten: unwritten <<<2, 64>>> in f32[128], out f32[128], out f32[128]
KERNEL k(const float* x, float* y, float* z) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];
  if (i == 0) z[0] = 0;
}

//# gaps_of_a_pitched_output: ok <<<2, 32>>> in f32[30], out f32[6x5/8]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (i < 30) y[i / 5 * 8 + i % 5] = x[i];
}

//# twice_by_one_thread: unwritten <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  *(volatile float*)(y + i) = 0;
  *(volatile float*)(y + i) = x[i];  //!
}

//# once_by_one_thread: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float sum = 0;
  for (int j = 0; j < 4; ++j) sum += x[(i + j) & 127];
  y[i] = sum;
}

//# twice_with_a_barrier_between: unwritten <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];
  __syncthreads();
  y[i ^ 1] = x[i];  //!
}

//# unrestricted_twice_with_a_barrier_between: ok <<<2, 64>>> in f32[128], any f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];
  __syncthreads();
  y[i ^ 1] = x[i];
}

//# loop_writes_each_turn: unwritten <<<2, 64>>> in f32[512], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float sum = 0;
  for (int j = 0; j < 4; ++j) {
    sum += x[j * 128 + i];
    *(volatile float*)(y + i) = sum;  //!
  }
}

//# vectors_that_overlap: unwritten <<<1, 64>>> in f32[128], out f32[130]
KERNEL k(const float* x, float* y) {
  int t = threadIdx.x;
  if (t < 32) {
    ((float4*)y)[t] = ((const float4*)x)[t];
    __syncwarp();
    if (t == 0) ((float2*)y)[63] = make_float2(0, 0);  //!
    if (t == 1) ((float2*)y)[64] = make_float2(0, 0);
  }
}
