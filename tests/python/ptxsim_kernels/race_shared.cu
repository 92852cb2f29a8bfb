// Races of a block's threads in shared memory, and within one warp: lanes never move in step.
#define KERNEL extern "C" __global__ void

//# read_without_barrier: race+uninitialized <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = x[i];         //!
  y[i] = s[63 - t];  //!
}

//# read_after_barrier: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = x[i];
  __syncthreads();
  y[i] = s[63 - t];
}

//# read_of_a_cleared_word_without_barrier: race <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  s[t] = x[i];         //!
  y[i] = s[63 - t];  //!
}

//# own_word_needs_no_barrier: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  *(volatile float*)(s + t) = x[i];
  y[i] = *(volatile float*)(s + t);
}

//# loop_without_second_barrier: race <<<2, 64>>> in f32[512], any zero f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  float sum = 0;
  for (int j = 0; j < 4; ++j) {
    s[t] = x[j * 128 + blockIdx.x * 64 + t];  //!
    __syncthreads();
    sum += s[63 - t];  //!
  }
  y[blockIdx.x * 64 + t] = sum;
}

//# loop_with_two_barriers: ok <<<2, 64>>> in f32[512], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  float sum = 0;
  for (int j = 0; j < 4; ++j) {
    s[t] = x[j * 128 + blockIdx.x * 64 + t];
    __syncthreads();
    sum += s[63 - t];
    __syncthreads();
  }
  y[blockIdx.x * 64 + t] = sum;
}

//# loop_with_two_buffers: ok <<<2, 64>>> in f32[512], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[2][64];
  int t = threadIdx.x;
  float sum = 0;
  for (int j = 0; j < 4; ++j) {
    s[j & 1][t] = x[j * 128 + blockIdx.x * 64 + t];
    __syncthreads();
    sum += s[j & 1][63 - t];
  }
  y[blockIdx.x * 64 + t] = sum;
}

//# buffers_alternate_too_late: race <<<2, 64>>> in f32[512], any zero f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[2][64];
  int t = threadIdx.x;
  float sum = 0;
  for (int j = 0; j < 4; ++j) {
    s[j / 2][t] = x[j * 128 + blockIdx.x * 64 + t];  //!
    __syncthreads();
    sum += s[j / 2][63 - t];  //!
  }
  y[blockIdx.x * 64 + t] = sum;
}

//# tree_without_barrier_in_the_loop: race <<<2, 64>>> in f32[128], out f32[2]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  for (int d = 32; d > 0; d /= 2)
    if (t < d) s[t] += s[t + d];  //!
  if (t == 0) y[blockIdx.x] = s[0];
}

//# tree_with_barriers: ok <<<2, 64>>> in f32[128], out f32[2]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  for (int d = 32; d > 0; d /= 2) {
    __syncthreads();
    if (t < d) s[t] += s[t + d];
  }
  if (t == 0) y[blockIdx.x] = s[0];
}

//# scan_in_place: race <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  for (int d = 1; d < 64; d *= 2) {
    __syncthreads();
    if (t >= d) s[t] += s[t - d];  //!
  }
  y[blockIdx.x * 64 + t] = s[t];
}

//# scan_in_place_with_two_barriers: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  for (int d = 1; d < 64; d *= 2) {
    __syncthreads();
    float v = t >= d ? s[t - d] : 0;
    __syncthreads();
    s[t] += v;
  }
  y[blockIdx.x * 64 + t] = s[t];
}

//# all_write_one_word: race <<<2, 64>>> out i32[2]
KERNEL k(int* y) {
  __shared__ int s;
  s = threadIdx.x;  //!
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = s;
}

//# one_writes_one_word: ok <<<2, 64>>> out i32[128]
KERNEL k(int* y) {
  __shared__ int s;
  if (threadIdx.x == 63) s = threadIdx.x;
  __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = s;
}

//# plain_histogram: race <<<2, 64>>> in iota i32[128], any zero i32[16]
KERNEL k(const int* x, int* y) {
  __shared__ int s[8];
  int t = threadIdx.x;
  if (t < 8) s[t] = 0;
  __syncthreads();
  s[x[t] & 7] += 1;  //!
  __syncthreads();
  if (t < 8) y[blockIdx.x * 8 + t] = s[t];
}

//# atomic_histogram: ok <<<2, 64>>> in iota i32[128], out i32[16]
KERNEL k(const int* x, int* y) {
  __shared__ int s[8];
  int t = threadIdx.x;
  if (t < 8) s[t] = 0;
  __syncthreads();
  atomicAdd(&s[x[t] & 7], 1);
  __syncthreads();
  if (t < 8) y[blockIdx.x * 8 + t] = s[t];
}

//# atomic_and_plain_read: race <<<2, 64>>> out i32[2]
KERNEL k(int* y) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  atomicAdd(&s, 1);                                 //!
  if (threadIdx.x == 40) y[blockIdx.x] = s > 1000;  //!
}

//# atomic_and_volatile_read: ok <<<2, 64>>> out i32[2]
KERNEL k(int* y) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  atomicAdd(&s, 1);
  if (threadIdx.x == 40) y[blockIdx.x] = *(volatile int*)&s > 1000;
}

//# bytes_of_one_word: ok <<<2, 64>>> out u8[128]
KERNEL k(unsigned char* y) {
  __shared__ unsigned char s[64];
  int t = threadIdx.x;
  s[t] = t;
  __syncthreads();
  y[blockIdx.x * 64 + t] = s[63 - t];
}

//# byte_and_its_word: race <<<2, 64>>> out i32[2]
KERNEL k(int* y) {
  __shared__ __align__(4) unsigned char s[4];
  if (threadIdx.x == 0) *(int*)s = 0;  //!
  if (threadIdx.x == 33) s[2] = 1;     //!
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = *(int*)s & 0xff;
}

//# transpose_in_place: race <<<2, dim3(8, 8)>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[8][8];
  int i = threadIdx.y, j = threadIdx.x, at = blockIdx.x * 64 + i * 8 + j;
  s[i][j] = x[at];
  __syncthreads();
  float v = s[j][i];  //!
  s[i][j] = v;        //!
  __syncthreads();
  y[at] = s[i][j];
}

//# transpose_through_registers: ok <<<2, dim3(8, 8)>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[8][8];
  int i = threadIdx.y, j = threadIdx.x, at = blockIdx.x * 64 + i * 8 + j;
  s[i][j] = x[at];
  __syncthreads();
  float v = s[j][i];
  __syncthreads();
  s[i][j] = v;
  y[at] = s[i][j];
}

//# warp_without_syncwarp: race+uninitialized <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = x[i];        //!
  y[i] = s[t ^ 1];  //!
}

//# warp_with_syncwarp: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = x[i];
  __syncwarp();
  y[i] = s[t ^ 1];
}

//# syncwarp_across_warps: race+uninitialized <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = x[i];  //!
  __syncwarp();
  y[i] = s[t ^ 32];  //!
}

//# shuffle_is_no_fence: race+uninitialized <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = x[i];  //!
  float v = __shfl_xor_sync(~0u, x[i], 1);
  y[i] = s[t ^ 1] - v;  //!
}

//# vote_is_no_fence: race+uninitialized <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = x[i];  //!
  unsigned positive = __ballot_sync(~0u, x[i] > 0);
  y[i] = s[t ^ 1] + __popc(positive);  //!
}

//# shuffle_and_syncwarp: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = x[i];
  float v = __shfl_xor_sync(~0u, x[i], 1);
  __syncwarp();
  y[i] = s[t ^ 1] - v;
}

//# half_warps_exchange_across: race+uninitialized <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = x[i];  //!
  __syncwarp(t & 16 ? 0xffff0000u : 0xffffu);
  y[i] = s[t ^ 16];  //!
}

//# half_warps_exchange_within: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = x[i];
  __syncwarp(t & 16 ? 0xffff0000u : 0xffffu);
  y[i] = s[t ^ 8];
}

//# lanes_of_a_branch_write_first: race <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = 0;
  __syncwarp();
  if (t & 1) s[t ^ 1] = x[i];  //!
  y[i] = s[t];                 //!
}

//# lanes_of_a_branch_meet: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
  s[t] = 0;
  __syncwarp();
  if (t & 1) s[t ^ 1] = x[i];
  __syncwarp();
  y[i] = s[t];
}

//# last_warp_of_a_tree_without_syncwarp: race <<<2, 64>>> in f32[128], out f32[2]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 32) {
    s[t] += s[t + 32];  //!
    for (int d = 16; d > 0; d /= 2)
      if (t < d) s[t] += s[t + d];  //!
  }
  if (t == 0) y[blockIdx.x] = s[0];
}

//# last_warp_of_a_tree_with_syncwarp: ok <<<2, 64>>> in f32[128], out f32[2]
KERNEL k(const float* x, float* y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 32) {
    s[t] += s[t + 32];
    for (int d = 16; d > 0; d /= 2) {
      __syncwarp();
      if (t < d) s[t] += s[t + d];
    }
  }
  if (t == 0) y[blockIdx.x] = s[0];
}
