// Nothing can go on and somebody waits; and endless loops, which end by the budget.
#define KERNEL extern "C" __global__ void
#define ASM asm volatile
__device__ void named_sync(int id, int threads) {
  ASM("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ void named_arrive(int id, int threads) {
  ASM("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ void lock(int* word) {
  while (atomicCAS(word, 0, 1) != 0) {}
  __threadfence();
}
__device__ void unlock(int* word) {
  __threadfence();
  atomicExch(word, 0);
}

//# partner_never_comes: deadlock <<<2, 64>>> out i32[128]
KERNEL k(int* y) {
  y[blockIdx.x * 64 + threadIdx.x] = 1;
  if (threadIdx.x < 32) named_sync(1, 64);  //!
}

//# partner_comes: ok <<<2, 64>>> out i32[128]
KERNEL k(int* y) {
  y[blockIdx.x * 64 + threadIdx.x] = 1;
  if (threadIdx.x < 32) named_sync(1, 64);
  else named_arrive(1, 64);
}

//# barriers_in_opposite_order: deadlock <<<2, 64>>> out i32[128]
KERNEL k(int* y) {
  int first = threadIdx.x < 32 ? 1 : 2;
  named_sync(first, 64);
  named_sync(3 - first, 64);
  y[blockIdx.x * 64 + threadIdx.x] = 1;
}

//# barriers_in_the_same_order: ok <<<2, 64>>> out i32[128]
KERNEL k(int* y) {
  int first = blockIdx.x + 1;
  named_sync(first, 64);
  named_sync(3 - first, 64);
  y[blockIdx.x * 64 + threadIdx.x] = 1;
}

//# consumer_expects_one_more: deadlock <<<2, 64>>> out i32[128]
KERNEL k(int* y) {
  y[blockIdx.x * 64 + threadIdx.x] = 1;
  if (threadIdx.x < 32) {
    for (int j = 0; j < 3; ++j) { named_arrive(1, 64); named_sync(2, 64); }
  } else {
    for (int j = 0; j < 4; ++j) { named_sync(1, 64); named_arrive(2, 64); }  //!
  }
}

//# consumer_expects_as_many: ok <<<2, 64>>> out i32[128]
KERNEL k(int* y) {
  y[blockIdx.x * 64 + threadIdx.x] = 1;
  if (threadIdx.x < 32) {
    for (int j = 0; j < 4; ++j) { named_arrive(1, 64); named_sync(2, 64); }
  } else {
    for (int j = 0; j < 4; ++j) { named_sync(1, 64); named_arrive(2, 64); }
  }
}

//# flag_is_never_raised: deadlock|budget <<<2, 64>>> any zero i32[2] budget=4000000
KERNEL k(int* flag) {
  if (threadIdx.x == 0 && blockIdx.x == 1)
    while (*(volatile int*)flag == 0) {}
}

//# flag_is_raised: ok <<<2, 64>>> any zero i32[2]
KERNEL k(int* flag) {
  if (threadIdx.x == 0 && blockIdx.x == 0) *(volatile int*)flag = 1;
  if (threadIdx.x == 0 && blockIdx.x == 1)
    while (*(volatile int*)flag == 0) {}
}

//# flag_is_raised_by_a_lane_of_the_same_warp: ok <<<2, 64>>> any zero i32[2]
KERNEL k(int* flags) {
  volatile int* flag = flags + blockIdx.x;
  if (threadIdx.x >= 32) return;
  if (threadIdx.x < 31) while (*flag == 0) {}
  else *flag = 1;
}

//# locked_twice: deadlock|budget <<<2, 64>>> any zero i32[1] budget=4000000
KERNEL k(int* word) {
  if (threadIdx.x) return;
  lock(word);
  lock(word);
  unlock(word);
}

//# two_locks_crosswise: deadlock|budget <<<2, 64>>> any zero i32[3] budget=4000000
KERNEL k(int* words) {
  if (threadIdx.x) return;
  int mine = blockIdx.x;
  lock(words + mine);
  atomicAdd(words + 2, 1);
  while (*(volatile int*)(words + 2) < 2) {}
  lock(words + 1 - mine);
  unlock(words + 1 - mine);
  unlock(words + mine);
}

//# two_locks_in_order: ok <<<2, 64>>> any zero i32[3]
KERNEL k(int* words) {
  if (threadIdx.x % 8) return;
  lock(words);
  lock(words + 1);
  words[2] += 1;
  unlock(words + 1);
  unlock(words);
}

//# steps_over_the_end: budget <<<2, 64>>> out i32[128], int 2 budget=4000000
KERNEL k(int* y, int step) {
  unsigned sum = 0;
  for (unsigned j = 1; j != 100; j += step) {
    asm volatile("");
    sum += j;
  }
  y[blockIdx.x * 64 + threadIdx.x] = sum;
}

//# steps_onto_the_end: ok <<<2, 64>>> out i32[128], int 3 budget=4000000
KERNEL k(int* y, int step) {
  unsigned sum = 0;
  for (unsigned j = 1; j != 100; j += step) {
    asm volatile("");
    sum += j;
  }
  y[blockIdx.x * 64 + threadIdx.x] = sum;
}

//# one_lane_never_ends: budget <<<2, 64>>> out i32[128], int 77 budget=4000000
KERNEL k(int* y, int start) {
  int i = blockIdx.x * 64 + threadIdx.x;
  unsigned v = i == start ? 0 : i + 1, turns = 0;
  while (v != 1) {
    asm volatile("");
    v = v & 1 ? 3 * v + 1 : v / 2;
    ++turns;
  }
  y[i] = turns;
}

//# all_lanes_end: ok <<<2, 64>>> out i32[128], int 128 budget=4000000
KERNEL k(int* y, int start) {
  int i = blockIdx.x * 64 + threadIdx.x;
  unsigned v = i == start ? 0 : i + 1, turns = 0;
  while (v != 1) {
    asm volatile("");
    v = v & 1 ? 3 * v + 1 : v / 2;
    ++turns;
  }
  y[i] = turns;
}

//# counts_for_ever: budget <<<2, 64>>> any zero i32[128] budget=4000000
KERNEL k(int* y) {
  volatile int* mine = y + blockIdx.x * 64 + threadIdx.x;
  for (unsigned j = 0; j != 0xffffffffu; j += 2) *mine += 1;
}

//# counts_for_long: ok <<<2, 64>>> any zero i32[128] budget=4000000
KERNEL k(int* y) {
  volatile int* mine = y + blockIdx.x * 64 + threadIdx.x;
  for (unsigned j = 0; j != 2000; j += 2) *mine += 1;
}
