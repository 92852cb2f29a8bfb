// No race, yet the result depends on who comes first.
#define KERNEL extern "C" __global__ void

//# float_sum_by_atomics: nondeterministic <<<8, 64>>> in f32[512], any zero f32
KERNEL k(const float* x, float* sum) { atomicAdd(sum, x[blockIdx.x * 64 + threadIdx.x]); }

//# integer_sum_by_atomics: ok <<<8, 64>>> in i32[512], any zero i32
KERNEL k(const int* x, int* sum) { atomicAdd(sum, x[blockIdx.x * 64 + threadIdx.x]); }

//# fixed_point_sum_by_atomics: ok <<<8, 64>>> in f32[512], any zero i64
KERNEL k(const float* x, unsigned long long* sum) {
  long long v = x[blockIdx.x * 64 + threadIdx.x] * 1048576.0f;
  atomicAdd(sum, (unsigned long long)v);
}

//# float_sum_of_a_block_by_atomics: nondeterministic <<<2, 256>>> in f32[512], out f32[2]
KERNEL k(const float* x, float* y) {
  __shared__ float s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  atomicAdd(&s, x[blockIdx.x * 256 + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = s;
}

//# float_maximum_by_atomics: ok <<<8, 64>>> in f32[512], any zero i32
KERNEL k(const float* x, int* most) {
  atomicMax(most, __float_as_int(fabsf(x[blockIdx.x * 64 + threadIdx.x])));
}

//# first_come_first_stored: nondeterministic <<<8, 64>>> any zero i32, out i32[8]
KERNEL k(int* ticket, int* y) {
  if (threadIdx.x == 0) y[atomicAdd(ticket, 1)] = blockIdx.x;
}

//# tickets_name_the_work: ok <<<8, 64>>> any zero i32, out i32[8]
KERNEL k(int* ticket, int* y) {
  if (threadIdx.x == 0) {
    int work = atomicAdd(ticket, 1);
    y[work] = work * work;
  }
}

//# last_exchange_stays: nondeterministic <<<8, 64>>> any zero i32
KERNEL k(int* last) {
  if (threadIdx.x == 0) atomicExch(last, blockIdx.x + 1);
}

//# first_exchange_wins: nondeterministic <<<8, 64>>> any zero i32
KERNEL k(int* first) {
  if (threadIdx.x == 0) atomicCAS(first, 0, blockIdx.x + 1);
}

//# same_exchange_by_all: ok <<<8, 64>>> any zero i32
KERNEL k(int* first) {
  if (threadIdx.x == 0) atomicCAS(first, 0, 7);
}

//# counter_is_sampled: nondeterministic <<<8, 64>>> any zero i32, out i32[8]
KERNEL k(int* count, int* y) {
  if (threadIdx.x) return;
  atomicAdd(count, 1);
  y[blockIdx.x] = *(volatile int*)count;
}

//# last_block_sums_in_order: ok <<<8, 64>>> in f32[512], any f32[8], any zero i32, out f32
KERNEL k(const float* x, float* partial, int* count, float* y) {
  if (threadIdx.x) return;
  partial[blockIdx.x] = x[blockIdx.x * 64] + x[blockIdx.x * 64 + 1];
  __threadfence();
  if (atomicAdd(count, 1) != 7) return;
  __threadfence();
  float sum = 0;
  for (int j = 0; j < 8; ++j) sum += partial[j];
  *y = sum;
}
