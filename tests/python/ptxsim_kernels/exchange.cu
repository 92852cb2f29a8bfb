// Values exchanged by strong accesses (volatile, relaxed): no race, but is the value there yet?
#define KERNEL extern "C" __global__ void
#define ASM asm volatile
__device__ void store_relaxed(float* p, float v) {
  ASM("st.relaxed.cta.f32 [%0], %1;" ::"l"(p), "f"(v) : "memory");
}
__device__ float load_relaxed(float* p) {
  float v;
  ASM("ld.relaxed.cta.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
  return v;
}

//# mirror_within_a_warp: uninitialized <<<2, 32>>> in f32[64], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s[32];
  int t = threadIdx.x, b = blockIdx.x * 32;
  s[t] = x[b + t];
  y[b + t] = s[31 - t];  //!
}

//# mirror_after_a_warp_barrier: ok <<<2, 32>>> in f32[64], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s[32];
  int t = threadIdx.x, b = blockIdx.x * 32;
  s[t] = x[b + t];
  __syncwarp();
  y[b + t] = s[31 - t];
}

//# mirror_after_a_shuffle: uninitialized <<<2, 32>>> in f32[64], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s[32];
  int t = threadIdx.x, b = blockIdx.x * 32;
  s[t] = x[b + t];
  float other = __shfl_xor_sync(~0u, x[b + t], 1);
  y[b + t] = s[31 - t] + other;  //!
}

//# mirror_after_a_vote: uninitialized <<<2, 32>>> in f32[64], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s[32];
  int t = threadIdx.x, b = blockIdx.x * 32;
  s[t] = x[b + t];
  if (__any_sync(~0u, t == 7)) y[b + t] = s[31 - t];  //!
}

//# mirror_after_a_fence: uninitialized <<<2, 32>>> in f32[64], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s[32];
  int t = threadIdx.x, b = blockIdx.x * 32;
  s[t] = x[b + t];
  __threadfence_block();
  y[b + t] = s[31 - t];  //!
}

//# mirror_of_halves_that_met_apart: uninitialized <<<2, 32>>>
//#+ in f32[64], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ float s[32];
  int t = threadIdx.x, b = blockIdx.x * 32;
  store_relaxed(s + t, x[b + t]);
  __syncwarp(t < 16 ? 0x0000ffff : 0xffff0000);
  y[b + t] = load_relaxed(s + 31 - t);  //!
}

//# mirror_within_halves_that_met: ok <<<2, 32>>> in f32[64], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ float s[32];
  int t = threadIdx.x, b = blockIdx.x * 32;
  store_relaxed(s + t, x[b + t]);
  __syncwarp(t < 16 ? 0x0000ffff : 0xffff0000);
  y[b + t] = load_relaxed(s + (t ^ 15));
}

//# second_exchange_after_a_shuffle: race <<<2, 32>>> in f32[64], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s[32];
  int t = threadIdx.x, b = blockIdx.x * 32;
  s[t] = 0;
  __syncwarp();
  s[t] = x[b + t];
  float other = __shfl_xor_sync(~0u, x[b + t], 1);
  y[b + t] = s[31 - t] + other;  //!
}

//# second_exchange_after_a_ballot: race <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s[64];
  int t = threadIdx.x, b = blockIdx.x * 64;
  s[t] = 0;
  __syncthreads();
  s[t] = x[b + t];
  unsigned positive = __ballot_sync(~0u, x[b + t] > 0);
  y[b + t] = s[t ^ 1] + __popc(positive);  //!
}

//# second_exchange_of_one_for_all: race <<<2, 32>>> in f32[64], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ float s;
  int t = threadIdx.x, b = blockIdx.x * 32;
  if (t == 0) store_relaxed(&s, 1);
  __syncwarp();
  if (t == 7) store_relaxed(&s, x[b]);
  int all = __all_sync(~0u, t < 40);
  y[b + t] = load_relaxed(&s) * all;  //!
}

//# exchanges_with_shuffles_between: race <<<2, 32>>> in f32[64], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s[32];
  int t = threadIdx.x, b = blockIdx.x * 32;
  float v = x[b + t];
  s[t] = 0;
  __syncwarp();
  for (int n = 1; n < 32; n *= 2) {
    s[t] = v;
    float other = __shfl_xor_sync(~0u, v, n);
    v = s[t ^ n] - other;  //!
    __syncwarp();
  }
  y[b + t] = v;
}

//# second_exchange_after_a_warp_barrier: ok <<<2, 32>>> in f32[64], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s[32];
  int t = threadIdx.x, b = blockIdx.x * 32;
  s[t] = 0;
  __syncwarp();
  s[t] = x[b + t];
  __syncwarp();
  float other = __shfl_xor_sync(~0u, x[b + t], 1);
  y[b + t] = s[31 - t] + other;
}

//# second_store_of_ones_own: ok <<<2, 32>>> in f32[64], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s[32];
  int t = threadIdx.x, b = blockIdx.x * 32;
  s[t] = 0;
  s[t] = x[b + t];
  float other = __shfl_xor_sync(~0u, x[b + t], 1);
  y[b + t] = s[t] + other;
}

//# all_store_the_same_twice: ok <<<2, 32>>> in f32[64], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s;
  int t = threadIdx.x, b = blockIdx.x * 32;
  s = 1;
  __syncwarp();
  s = x[b];
  float other = __shfl_xor_sync(~0u, x[b + t], 1);
  y[b + t] = s + other;
}

//# flag_that_a_vote_waits_for: ok <<<2, 32>>> any zero i32[64]
KERNEL k(int* y) {
  __shared__ volatile int flag;
  int t = threadIdx.x;
  if (t == 3) flag = 0;
  __syncwarp();
  if (t == 3) flag = 1;
  while (!__all_sync(~0u, flag)) {}
  y[blockIdx.x * 32 + t] = 1;
}

//# bound_that_may_be_late: ok <<<2, 32>>> in i32[64], out i32[64]
KERNEL k(const int* x, int* y) {
  __shared__ volatile int bound;
  int t = threadIdx.x, b = blockIdx.x * 32, v = x[b + t] & 31;
  if (t == 0) bound = 64;
  __syncwarp();
  if (t == 1) bound = 32;
  int any = __any_sync(~0u, v < 32);
  y[b + t] = v < bound ? v + any : -1;
}

//# own_element: ok <<<2, 32>>> in f32[64], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s[32];
  int t = threadIdx.x, b = blockIdx.x * 32;
  s[t] = x[b + t];
  y[b + t] = s[t];
}

//# one_tells_all: uninitialized <<<2, 32>>> in f32[64], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s;
  int t = threadIdx.x, b = blockIdx.x * 32;
  if (t == 5) s = x[b];
  y[b + t] = s;  //!
}

//# one_tells_another_warp: uninitialized <<<2, 64>>> in f32[128], out f32[2]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s;
  if (threadIdx.x == 0) s = x[blockIdx.x];
  if (threadIdx.x == 40) y[blockIdx.x] = s;  //!
}

//# one_tells_all_after_a_barrier: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s;
  int t = threadIdx.x, b = blockIdx.x * 64;
  if (t == 5) s = x[b];
  __syncthreads();
  y[b + t] = s;
}

//# through_an_output: uninitialized <<<2, 32>>>
//#+ in f32[64], out f32[64], out f32[64]
KERNEL k(const float* x, float* y, float* z) {
  volatile float* s = z + blockIdx.x * 32;
  int t = threadIdx.x, b = blockIdx.x * 32;
  s[t] = x[b + t];
  y[b + t] = s[t ^ 1];  //!
}

//# vectors: uninitialized <<<2, 32>>> in f32[128], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ float2 s[32];
  int t = threadIdx.x, b = blockIdx.x * 32;
  unsigned at = (unsigned)__cvta_generic_to_shared(s + t);
  ASM("st.volatile.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(x[b + t]), "f"(x[b + t + 64]));
  float u, v;
  at = (unsigned)__cvta_generic_to_shared(s + (t ^ 16));
  ASM("ld.volatile.shared.v2.f32 {%0, %1}, [%2];" : "=f"(u), "=f"(v) : "r"(at));  //!
  y[b + t] = u + v;
}

//# count_that_may_not_be_reset_yet: uninitialized <<<2, 32>>> out i32[2]
KERNEL k(int* y) {
  __shared__ int n;
  if (threadIdx.x == 0) *(volatile int*)&n = 0;
  atomicAdd(&n, 1);  //!
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = n;
}

//# count_that_is_reset: ok <<<2, 32>>> out i32[2]
KERNEL k(int* y) {
  __shared__ int n;
  if (threadIdx.x == 0) *(volatile int*)&n = 0;
  __syncwarp();
  atomicAdd(&n, 1);
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = n;
}

//# flag_that_was_never_lowered: uninitialized <<<2, 32>>> any zero i32[64]
KERNEL k(int* y) {
  __shared__ volatile int flag;
  int t = threadIdx.x;
  if (t == 3) flag = 1;
  while (flag != 1) {}  //!
  y[blockIdx.x * 32 + t] = 1;
}

//# flag_that_was_lowered: ok <<<2, 32>>> any zero i32[64]
KERNEL k(int* y) {
  __shared__ volatile int flag;
  int t = threadIdx.x;
  if (t == 3) flag = 0;
  __syncwarp();
  if (t == 3) flag = 1;
  while (flag != 1) {}
  y[blockIdx.x * 32 + t] = 1;
}

//# lanes_wait_for_a_lane: ok <<<2, 32>>> in f32[64], any f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ float data;
  __shared__ volatile int flag;
  int t = threadIdx.x, b = blockIdx.x * 32;
  if (t == 0) flag = 0;
  __syncthreads();
  if (t == 17) {
    data = x[b];
    __threadfence_block();
    flag = 1;
  }
  while (!flag) {}
  __threadfence_block();
  y[b + t] = data;
}

//# lanes_hand_on_in_turn: ok <<<2, 32>>> any zero i32[2]
KERNEL k(int* y) {
  __shared__ volatile int turn, sum;
  int t = threadIdx.x;
  if (t == 0) turn = sum = 0;
  __syncthreads();
  for (bool done = false; !done;) {
    if (turn == t) {
      __threadfence_block();
      sum = 3 * sum + t;
      __threadfence_block();
      turn = t + 1;
      done = true;
    }
  }
  if (t == 31) y[blockIdx.x] = sum;
}

//# early_end_of_a_search: ok <<<2, 64>>> in i32[128], any zero i32
KERNEL k(const int* x, int* found) {
  for (int i = threadIdx.x; i < 128; i += 64) {
    if (*(volatile int*)found) return;
    if (x[i] >= 0) *(volatile int*)found = 1;
  }
}

//# lock_step_sum: nondeterministic <<<2, 64>>> in f32[128], out f32[2]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s[64];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t >= 32) return;
  s[t] += s[t + 32];
  s[t] += s[t + 16];
  s[t] += s[t + 8];
  s[t] += s[t + 4];
  s[t] += s[t + 2];
  s[t] += s[t + 1];
  if (t == 0) y[blockIdx.x] = s[0];
}

//# sum_whose_steps_are_apart: ok <<<2, 64>>> in f32[128], out f32[2]
KERNEL k(const float* x, float* y) {
  __shared__ volatile float s[64];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t >= 32) return;
  for (int n = 32; n; n /= 2) {
    float sum = s[t] + s[t + n];
    __syncwarp();
    s[t] = sum;
    __syncwarp();
  }
  if (t == 0) y[blockIdx.x] = s[0];
}

//# lock_step_turn: nondeterministic <<<1, 32>>> any f32[32]
KERNEL k(volatile float* y) {
  int t = threadIdx.x;
  float v = y[31 - t];
  y[t] = v;
}

//# turn_in_two_steps: ok <<<1, 32>>> any f32[32]
KERNEL k(volatile float* y) {
  int t = threadIdx.x;
  float v = y[31 - t];
  __syncwarp();
  y[t] = v;
}

//# lock_step_scan: nondeterministic <<<1, 32>>> any iota f32[32]
KERNEL k(volatile float* y) {
  int t = threadIdx.x;
  for (int n = 1; n < 32; n *= 2) {
    if (t >= n) y[t] += y[t - n];
  }
}

//# grid_barrier_of_the_device_headers: ok cooperative <<<4, 64>>>
//#+ in f32[256], any f32[256], any zero i32, out f32[256]
using namespace stitch;
STITCH_KERNEL(k, 64, 1)(const f32* x, f32* s, u32* counter, f32* y) {
  const i64 i = block_index() * 64 + tid();
  s[i] = x[i];
  grid_barrier(counter);
  y[i] = s[255 - i];
}

//# last_block_of_the_device_headers: ok <<<4, 64>>>
//#+ in f32[256], any f32[256], any zero i32, any f32[64]
using namespace stitch;
STITCH_KERNEL(k, 64, 1)(const f32* x, f32* s, u32* counter, f32* y) {
  const i64 i = block_index() * 64 + tid();
  s[i] = x[i];
  if (is_last_block(counter)) y[tid()] = s[255 - tid()] + s[tid()];
}
