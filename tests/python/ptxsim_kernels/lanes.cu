// Warp operations: every lane that a mask names must take part.
#define KERNEL extern "C" __global__ void

//# shuffle_in_half_a_warp: divergent_barrier <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float v = x[i];
  if (threadIdx.x % 32 < 16) v += __shfl_xor_sync(~0u, v, 8);  //!
  y[i] = v;
}

//# shuffle_names_half_a_warp: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float v = x[i];
  if (threadIdx.x % 32 < 16) v += __shfl_xor_sync(0xffffu, v, 8);
  y[i] = v;
}

//# tail_leaves_before_the_sum: divergent_barrier <<<2, 64>>> in f32[100], any zero f32[4], int 100
KERNEL k(const float* x, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);  //!
  if (i % 32 == 0) y[i / 32] = v;
}

//# tail_adds_zero: ok <<<2, 64>>> in f32[100], out f32[4], int 100
KERNEL k(const float* x, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float v = i < n ? x[i] : 0;
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);
  if (i % 32 == 0) y[i / 32] = v;
}

//# ballot_within_the_branch: divergent_barrier <<<2, 64>>> in f32[128], out i32[128]
KERNEL k(const float* x, int* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  unsigned mask = 0;
  if (threadIdx.x % 3 == 0) mask = __ballot_sync(~0u, x[i] > 0);  //!
  y[i] = mask;
}

//# ballot_before_the_branch: ok <<<2, 64>>> in f32[128], out i32[128]
KERNEL k(const float* x, int* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  unsigned mask = __ballot_sync(~0u, threadIdx.x % 3 == 0);
  int v = 0;
  if (threadIdx.x % 3 == 0) v = __reduce_add_sync(mask, i) + __popc(__ballot_sync(mask, x[i] > 0));
  y[i] = v;
}

//# syncwarp_in_a_branch: divergent_barrier <<<2, 64>>> out i32[128]
KERNEL k(int* y) {
  y[blockIdx.x * 64 + threadIdx.x] = 1;
  if (threadIdx.x % 2) __syncwarp();  //!
}

//# syncwarp_of_the_branch: ok <<<2, 64>>> out i32[128]
KERNEL k(int* y) {
  y[blockIdx.x * 64 + threadIdx.x] = 1;
  if (threadIdx.x % 2) __syncwarp(0xaaaaaaaau);
}

//# lane_not_in_its_own_mask: divergent_barrier <<<2, 64>>> in i32[128], out i32[128]
KERNEL k(const int* x, int* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = __shfl_xor_sync(0x7fffffffu, x[i], 1);  //!
}

//# source_lane_not_in_the_mask: uninitialized <<<2, 64>>> in i32[128], out i32[128]
KERNEL k(const int* x, int* y) {
  int i = blockIdx.x * 64 + threadIdx.x, v = x[i];
  if (threadIdx.x % 32 < 16) v = __shfl_sync(0xffffu, v, 20);  // not defined, but no crime
  y[i] = v;  //!
}

//# source_lane_in_the_mask: ok <<<2, 64>>> in i32[128], out i32[128]
KERNEL k(const int* x, int* y) {
  int i = blockIdx.x * 64 + threadIdx.x, v = x[i];
  if (threadIdx.x % 32 < 16) v = __shfl_sync(0xffffu, v, 4);
  y[i] = v;
}

//# short_warp_shuffles_in_full: divergent_barrier <<<2, 48>>> in i32[96], out i32[96]
KERNEL k(const int* x, int* y) {
  int i = blockIdx.x * 48 + threadIdx.x;
  y[i] = __shfl_xor_sync(~0u, x[i], 1);  //!
}

//# short_warp_shuffles_by_its_size: ok <<<2, 48>>> in i32[96], out i32[96]
KERNEL k(const int* x, int* y) {
  int i = blockIdx.x * 48 + threadIdx.x;
  y[i] = __shfl_xor_sync(threadIdx.x < 32 ? ~0u : 0xffffu, x[i], 1);
}

//# groups_by_match: ok <<<2, 64>>> in iota i32[128], out i32[128]
KERNEL k(const int* x, int* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  unsigned peers = __match_any_sync(~0u, x[i] % 5);
  y[i] = __reduce_max_sync(peers, i) - __shfl_sync(peers, i, __ffs(peers) - 1);
}

//# groups_by_match_of_the_neighbour: divergent_barrier <<<2, 64>>> in iota i32[128], out i32[128]
KERNEL k(const int* x, int* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  unsigned peers = __match_any_sync(~0u, x[i] % 5) << 1;
  y[i] = __reduce_max_sync(peers, i);  //!
}

//# masks_of_both_branches_apart: ok <<<2, 64>>> in i32[128], out i32[128]
KERNEL k(const int* x, int* y) {
  int i = blockIdx.x * 64 + threadIdx.x, v = x[i];
  if (threadIdx.x & 1) v = __shfl_xor_sync(0xaaaaaaaau, v, 2) * 3;
  else v = __shfl_xor_sync(0x55555555u, v, 4) - 1;
  y[i] = v;
}
