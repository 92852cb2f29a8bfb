// Barriers that not everyone reaches, named barriers, and barriers of the grid.
#define KERNEL extern "C" __global__ void
#define ASM asm volatile
__device__ void named_sync(int id, int threads) {
  ASM("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ void named_arrive(int id, int threads) {
  ASM("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ void grid_barrier(int* count, int goal) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    while (*(volatile int*)count < goal) {}
    __threadfence();
  }
  __syncthreads();
}

//# within_a_part_of_a_warp: divergent_barrier <<<2, 64>>> out i32[128]
KERNEL k(int* y) {
  if (threadIdx.x < 40) __syncthreads();  //!
  y[blockIdx.x * 64 + threadIdx.x] = 1;
}

//# within_a_branch_of_the_block: ok <<<2, 64>>> out i32[128]
KERNEL k(int* y) {
  if (blockIdx.x == 1) __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = 1;
}

//# tail_threads_leave_first: divergent_barrier <<<2, 64>>> in f32[100], out f32[100], int 100
KERNEL k(const float* x, float* y, int n) {
  __shared__ float s;
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  if (threadIdx.x == 0) s = x[i];
  __syncthreads();  //!
  y[i] = s;
}

//# tail_threads_stay: ok <<<2, 64>>> in f32[100], out f32[100], int 100
KERNEL k(const float* x, float* y, int n) {
  __shared__ float s;
  int i = blockIdx.x * 64 + threadIdx.x;
  if (threadIdx.x == 0) s = x[i];
  __syncthreads();
  if (i < n) y[i] = s;
}

//# a_warp_leaves_first: divergent_barrier <<<2, 96>>> out i32[192]
KERNEL k(int* y) {
  y[blockIdx.x * 96 + threadIdx.x] = 1;
  if (threadIdx.x / 32 == 1) return;
  __syncthreads();  //!
}

//# a_block_leaves_first: ok <<<2, 64>>> out i32[128]
KERNEL k(int* y) {
  y[blockIdx.x * 64 + threadIdx.x] = 1;
  if (blockIdx.x == 1) return;
  __syncthreads();
}

//# turns_differ: divergent_barrier <<<2, 64>>> out i32[128]
KERNEL k(int* y) {
  for (int j = 0; j <= threadIdx.x % 2; ++j) __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = 1;
}

//# turns_of_warps_differ: divergent_barrier <<<2, 64>>> out i32[128]
KERNEL k(int* y) {
  for (int j = 0; j <= threadIdx.x / 32; ++j) __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = 1;
}

//# turns_of_blocks_differ: ok <<<2, 64>>> out i32[128]
KERNEL k(int* y) {
  for (int j = 0; j <= blockIdx.x; ++j) __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = 1;
}

//# both_branches_have_one: divergent_barrier <<<2, 64>>> any zero f32[128]
KERNEL k(float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (threadIdx.x % 2) {
    y[i] = 1;
    __syncthreads();
    y[i] *= 3;
  } else {
    __syncthreads();
    y[i] = i;
  }
}

//# vote_of_a_part_of_the_block: divergent_barrier <<<2, 64>>> in f32[128], out i32[128]
KERNEL k(const float* x, int* y) {
  int i = blockIdx.x * 64 + threadIdx.x, any = 0;
  if (threadIdx.x < 48) any = __syncthreads_or(x[i] > 0);  //!
  y[i] = any;
}

//# vote_of_the_block: ok <<<2, 64>>> in f32[128], out i32[128]
KERNEL k(const float* x, int* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = __syncthreads_or(x[i] > 0) + 2 * __syncthreads_and(x[i] > 0) +
         4 * __syncthreads_count(x[i] > 0);
}

//# counts_differ: divergent_barrier+deadlock <<<2, 96>>> out i32[192]
KERNEL k(int* y) {
  y[blockIdx.x * 96 + threadIdx.x] = 1;
  if (threadIdx.x < 32) named_sync(1, 64);
  else if (threadIdx.x < 64) named_sync(1, 96);
}

//# not_aligned_in_branches_of_a_warp: ok <<<2, 64>>> any zero f32[128]
KERNEL k(float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (threadIdx.x % 2) {
    y[i] = i;
    ASM("barrier.sync 0;" ::: "memory");
  } else {
    ASM("barrier.sync 0;" ::: "memory");
    y[i] = y[i ^ 1] * 0;
  }
}

//# named_pair: ok <<<2, 64>>> in f32[128], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ float s[32];
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    s[lane] = x[blockIdx.x * 64 + lane];
    named_arrive(1, 64);
  } else {
    named_sync(1, 64);
    y[blockIdx.x * 32 + lane] = s[31 - lane];
  }
}

//# named_pair_the_wrong_way_round: race+uninitialized <<<2, 64>>> in f32[128], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ float s[32];
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    s[lane] = x[blockIdx.x * 64 + lane];  //!
    named_sync(1, 64);
  } else {
    named_arrive(1, 64);
    y[blockIdx.x * 32 + lane] = s[31 - lane];  //!
  }
}

//# named_ring: ok <<<2, 64>>> in f32[256], out f32[256]
KERNEL k(const float* x, float* y) {
  __shared__ float s[32];
  int lane = threadIdx.x % 32;
  for (int j = 0; j < 4; ++j) {
    int i = blockIdx.x * 128 + j * 32;
    if (threadIdx.x < 32) {
      if (j > 0) named_sync(2, 64);
      s[lane] = x[i + lane];
      named_arrive(1, 64);
    } else {
      named_sync(1, 64);
      y[i + lane] = s[31 - lane];
      if (j < 3) named_arrive(2, 64);
    }
  }
}

//# named_ring_without_the_way_back: race <<<2, 64>>> in f32[256], any zero f32[256]
KERNEL k(const float* x, float* y) {
  __shared__ float s[32];
  int lane = threadIdx.x % 32;
  for (int j = 0; j < 4; ++j) {
    int i = blockIdx.x * 128 + j * 32;
    if (threadIdx.x < 32) {
      s[lane] = x[i + lane];  //!
      named_sync(1, 64);
    } else {
      named_sync(1, 64);
      y[i + lane] = s[31 - lane];  //!
    }
  }
}

//# named_groups: ok <<<2, 128>>> in f32[256], out f32[256]
KERNEL k(const float* x, float* y) {
  __shared__ float s[128];
  int t = threadIdx.x, b = blockIdx.x * 128;
  s[t] = x[b + t];
  named_sync(1 + t / 64, 64);
  y[b + t] = s[t ^ 63];
}

//# named_groups_exchange_across: race+uninitialized <<<2, 128>>> in f32[256], out f32[256]
KERNEL k(const float* x, float* y) {
  __shared__ float s[128];
  int t = threadIdx.x, b = blockIdx.x * 128;
  s[t] = x[b + t];  //!
  named_sync(1 + t / 64, 64);
  y[b + t] = s[t ^ 64];  //!
}

//# grid_barrier_orders_blocks: ok cooperative <<<2, 64>>> any f32[128], any zero i32, out f32[128]
KERNEL k(float* x, int* count, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = i;
  grid_barrier(count, 2);
  y[i] = x[127 - i];
}

//# grid_barriers_in_a_loop: ok cooperative <<<3, 64>>> any f32[192], any zero i32
KERNEL k(float* x, int* count) {
  int i = blockIdx.x * 64 + threadIdx.x;
  for (int j = 1; j <= 4; ++j) {
    float v = x[(i + 64) % 192];
    grid_barrier(count, 3 * (2 * j - 1));
    x[i] = v;
    grid_barrier(count, 3 * 2 * j);
  }
}

//# grid_barrier_once_in_a_loop: race cooperative <<<3, 64>>> any f32[192], any zero i32
KERNEL k(float* x, int* count) {
  int i = blockIdx.x * 64 + threadIdx.x;
  for (int j = 1; j <= 4; ++j) {
    float v = x[(i + 64) % 192];  //!
    grid_barrier(count, 3 * j);
    x[i] = v;  //!
  }
}

//# grid_barrier_for_too_few: race cooperative <<<3, 64>>> any f32[192], any zero i32, out f32[192]
KERNEL k(float* x, int* count, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = i;  //!
  grid_barrier(count, 1);
  y[i] = x[191 - i];  //!
}

//# grid_barrier_without_fences: race cooperative <<<2, 64>>>
//#+ any f32[128], any zero i32, out f32[128]
KERNEL k(float* x, int* count, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = i;  //!
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(count, 1);
    while (*(volatile int*)count < 2) {}
  }
  __syncthreads();
  y[i] = x[127 - i];  //!
}

//# grid_barrier_without_barrier_before: race cooperative <<<2, 64>>>
//#+ any f32[128], any zero i32, out f32[128]
KERNEL k(float* x, int* count, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = i;  //!
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    while (*(volatile int*)count < 2) {}
    __threadfence();
  }
  __syncthreads();
  y[i] = x[127 - i];  //!
}

//# grid_barrier_without_barrier_after: race cooperative <<<2, 64>>>
//#+ any f32[128], any zero i32, out f32[128]
KERNEL k(float* x, int* count, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = i;  //!
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    while (*(volatile int*)count < 2) {}
    __threadfence();
  }
  y[i] = x[127 - i];  //!
}
