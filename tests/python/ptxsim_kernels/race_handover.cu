// Handing data over by a flag: which fences, scopes and barriers make it visible.
#define KERNEL extern "C" __global__ void
#define ASM asm volatile
__device__ void store_release(int* p, int v) {
  ASM("st.release.gpu.b32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ int load_acquire(int* p) {
  int v;
  ASM("ld.acquire.gpu.b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ void store_relaxed(int* p, int v) {
  ASM("st.relaxed.gpu.b32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ int load_relaxed(int* p) {
  int v;
  ASM("ld.relaxed.gpu.b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ void store_release_cta(int* p, int v) {
  ASM("st.release.cta.b32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ int load_acquire_cta(int* p) {
  int v;
  ASM("ld.acquire.cta.b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

//# release_acquire: ok <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  if (blockIdx.x == 0) { data[0] = 42; store_release(flag, 1); }
  else { while (!load_acquire(flag)) {} y[0] = data[0]; }
}

//# relaxed_flag: race <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  if (blockIdx.x == 0) { data[0] = 42; store_relaxed(flag, 1); }   //!
  else { while (!load_relaxed(flag)) {} y[0] = data[0]; }  //!
}

//# release_and_relaxed: race <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  if (blockIdx.x == 0) { data[0] = 42; store_release(flag, 1); }   //!
  else { while (!load_relaxed(flag)) {} y[0] = data[0]; }  //!
}

//# relaxed_and_acquire: race <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  if (blockIdx.x == 0) { data[0] = 42; store_relaxed(flag, 1); }   //!
  else { while (!load_acquire(flag)) {} y[0] = data[0]; }  //!
}

//# release_before_the_data: race <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  if (blockIdx.x == 0) { store_release(flag, 1); data[0] = 42; }   //!
  else { while (!load_acquire(flag)) {} y[0] = data[0]; }  //!
}

//# fences_and_relaxed: ok <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  if (blockIdx.x == 0) { data[0] = 42; __threadfence(); store_relaxed(flag, 1); }
  else { while (!load_relaxed(flag)) {} __threadfence(); y[0] = data[0]; }
}

//# fences_and_volatile: ok <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  volatile int* f = flag;
  if (blockIdx.x == 0) { data[0] = 42; __threadfence(); *f = 1; }
  else { while (!*f) {} __threadfence(); y[0] = data[0]; }
}

//# volatile_without_fences: race <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  volatile int* f = flag;
  if (blockIdx.x == 0) { data[0] = 42; *f = 1; }   //!
  else { while (!*f) {} y[0] = data[0]; }  //!
}

//# writer_without_fence: race <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  if (blockIdx.x == 0) { data[0] = 42; store_relaxed(flag, 1); }                     //!
  else { while (!load_relaxed(flag)) {} __threadfence(); y[0] = data[0]; }  //!
}

//# reader_without_fence: race <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  if (blockIdx.x == 0) { data[0] = 42; __threadfence(); store_relaxed(flag, 1); }  //!
  else { while (!load_relaxed(flag)) {} y[0] = data[0]; }                  //!
}

//# fence_of_a_block_between_blocks: race <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  if (blockIdx.x == 0) { data[0] = 42; __threadfence_block(); store_relaxed(flag, 1); }      //!
  else { while (!load_relaxed(flag)) {} __threadfence_block(); y[0] = data[0]; }  //!
}

//# fence_of_a_cluster_between_blocks: race <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {  // launched without clusters, a block is one of its own
  if (threadIdx.x != 33) return;
  if (blockIdx.x == 0) {
    data[0] = 42;  //!
    ASM("fence.acq_rel.cluster;" ::: "memory");
    store_relaxed(flag, 1);
  } else {
    while (!load_relaxed(flag)) {}
    ASM("fence.acq_rel.cluster;" ::: "memory");
    y[0] = data[0];  //!
  }
}

//# fence_of_a_block_within_a_block: ok <<<2, 64>>>
//#+ any zero i32[2], any zero i32[2], any zero i32[2]
KERNEL k(int* data, int* flag, int* y) {
  int b = blockIdx.x;
  if (threadIdx.x == 0) { data[b] = 42; __threadfence_block(); store_relaxed(flag + b, 1); }
  if (threadIdx.x != 33) return;
  while (!load_relaxed(flag + b)) {}
  __threadfence_block();
  y[b] = data[b];
}

//# fences_of_the_system: ok <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  volatile int* f = flag;
  if (blockIdx.x == 0) { data[0] = 42; __threadfence_system(); *f = 1; }
  else { while (!*f) {} __threadfence_system(); y[0] = data[0]; }
}

//# fence_then_plain_flag: race <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  if (blockIdx.x == 0) { data[0] = 42; __threadfence(); *flag = 1; }
  else { while (!load_relaxed(flag)) {} __threadfence(); y[0] = data[0]; }
}

//# cta_release_between_blocks: race <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  if (blockIdx.x == 0) { data[0] = 42; store_release_cta(flag, 1); }
  else { while (!load_acquire_cta(flag)) {} y[0] = data[0]; }
}

//# cta_release_within_a_block: ok <<<2, 64>>> any zero i32[2], any zero i32[2], any zero i32[2]
KERNEL k(int* data, int* flag, int* y) {
  int b = blockIdx.x;
  if (threadIdx.x == 0) { data[b] = 42; store_release_cta(flag + b, 1); }
  if (threadIdx.x == 33) { while (!load_acquire_cta(flag + b)) {} y[b] = data[b]; }
}

//# handover_in_shared: ok <<<2, 64>>> any zero i32[2]
KERNEL k(int* y) {
  __shared__ int data, flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) { data = 42; __threadfence_block(); *(volatile int*)&flag = 1; }
  if (threadIdx.x != 33) return;
  while (!*(volatile int*)&flag) {}
  __threadfence_block();
  y[blockIdx.x] = data;
}

//# handover_in_shared_without_fences: race <<<2, 64>>> any zero i32[2]
KERNEL k(int* y) {
  __shared__ int data, flag;
  if (threadIdx.x == 0) flag = data = 0;
  __syncthreads();
  if (threadIdx.x == 0) { data = 42; *(volatile int*)&flag = 1; }                          //!
  if (threadIdx.x == 33) { while (!*(volatile int*)&flag) {} y[blockIdx.x] = data; }  //!
}

//# atomics_with_fences: ok <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  if (blockIdx.x == 0) { data[0] = 42; __threadfence(); atomicExch(flag, 1); }
  else { while (!atomicAdd(flag, 0)) {} __threadfence(); y[0] = data[0]; }
}

//# atomics_without_fences: race <<<2, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  if (blockIdx.x == 0) { data[0] = 42; atomicExch(flag, 1); }       //!
  else { while (!atomicAdd(flag, 0)) {} y[0] = data[0]; }  //!
}

//# atomics_acq_rel: ok <<<2, 64>>> any zero i32, any zero i32, any zero i32
__device__ int exchange(int* p, int v) {
  int old;
  ASM("atom.acq_rel.gpu.exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
  return old;
}
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 33) return;
  if (blockIdx.x == 0) { data[0] = 42; exchange(flag, 1); }
  else { while (!exchange(flag, 0)) {} y[0] = data[0]; }
}

//# block_hands_over_to_a_block: ok <<<2, 64>>> any zero i32[64], any zero i32, any zero i32[64]
KERNEL k(int* data, int* flag, int* y) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = t;
    __syncthreads();
    if (t == 0) store_release(flag, 1);
  } else {
    if (t == 0) while (!load_acquire(flag)) {}
    __syncthreads();
    y[t] = data[63 - t];
  }
}

//# block_hands_over_without_barrier_before: race <<<2, 64>>>
//#+ any zero i32[64], any zero i32, any zero i32[64]
KERNEL k(int* data, int* flag, int* y) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = t;  //!
    if (t == 0) store_release(flag, 1);
  } else {
    if (t == 0) while (!load_acquire(flag)) {}
    __syncthreads();
    y[t] = data[63 - t];  //!
  }
}

//# block_hands_over_without_barrier_after: race <<<2, 64>>>
//#+ any zero i32[64], any zero i32, any zero i32[64]
KERNEL k(int* data, int* flag, int* y) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = t;  //!
    __syncthreads();
    if (t == 0) store_release(flag, 1);
  } else {
    if (t == 0) while (!load_acquire(flag)) {}
    y[t] = data[63 - t];  //!
  }
}

//# chain_of_three: ok <<<3, 64>>> any zero i32, any zero i32[2], any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { data[0] = 42; store_release(flag, 1); }
  if (blockIdx.x == 1) { while (!load_acquire(flag)) {} store_release(flag + 1, 1); }
  if (blockIdx.x == 2) { while (!load_acquire(flag + 1)) {} y[0] = data[0]; }
}

//# chain_with_a_relaxed_link: race <<<3, 64>>> any zero i32, any zero i32[2], any zero i32
KERNEL k(int* data, int* flag, int* y) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { data[0] = 42; store_release(flag, 1); }  //!
  if (blockIdx.x == 1) { while (!load_relaxed(flag)) {} store_release(flag + 1, 1); }
  if (blockIdx.x == 2) { while (!load_acquire(flag + 1)) {} y[0] = data[0]; }  //!
}

//# release_carried_by_relaxed_atomics: ok <<<3, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* count, int* y) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { data[0] = 42; __threadfence(); atomicAdd(count, 1); }
  if (blockIdx.x == 1) { while (load_relaxed(count) == 0) {} atomicAdd(count, 1); }
  if (blockIdx.x == 2) { while (load_acquire(count) != 2) {} y[0] = data[0]; }
}

//# release_cut_by_a_relaxed_store: race <<<3, 64>>> any zero i32, any zero i32, any zero i32
KERNEL k(int* data, int* count, int* y) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) { data[0] = 42; store_release(count, 1); }  //!
  if (blockIdx.x == 1) { while (load_relaxed(count) == 0) {} store_relaxed(count, 2); }
  if (blockIdx.x == 2) { while (load_acquire(count) != 2) {} y[0] = data[0]; }  //!
}

//# lock_with_fences: ok <<<2, 64>>> any zero i32, any zero i32
KERNEL k(int* lock, int* sum) {
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *sum += threadIdx.x;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

//# lock_without_fences: race <<<2, 64>>> any zero i32, any zero i32
KERNEL k(int* lock, int* sum) {
  if (threadIdx.x % 32) return;
  while (atomicCAS(lock, 0, 1) != 0) {}
  *(int*)sum += threadIdx.x;  //!
  asm volatile("" ::: "memory");
  atomicExch(lock, 0);
}

//# lock_of_a_block_between_blocks: race <<<2, 64>>> any zero i32, any zero i32
KERNEL k(int* lock, int* sum) {
  if (threadIdx.x % 32) return;
  while (atomicCAS_block(lock, 0, 1) != 0) {}
  __threadfence();
  *sum += threadIdx.x;
  __threadfence();
  atomicExch_block(lock, 0);
}

//# unlock_by_a_plain_store: race <<<2, 64>>> any zero i32, any zero i32
KERNEL k(int* lock, int* sum) {
  if (threadIdx.x % 32) return;
  while (atomicCAS(lock, 0, 1) != 0) {}
  __threadfence();
  *sum += threadIdx.x;
  __threadfence();
  *lock = 0;
}

//# two_locks_for_two_words: ok <<<2, 64>>> any zero i32[2], any zero i32[2]
KERNEL k(int* lock, int* sum) {
  if (threadIdx.x % 32) return;
  int which = threadIdx.x / 32;
  while (atomicCAS(lock + which, 0, 1) != 0) {}
  __threadfence();
  sum[which] += 1;
  __threadfence();
  atomicExch(lock + which, 0);
}

//# two_locks_for_one_word: race <<<2, 64>>> any zero i32[2], any zero i32[2]
KERNEL k(int* lock, int* sum) {
  if (threadIdx.x % 32) return;
  int which = threadIdx.x / 32;
  while (atomicCAS(lock + which, 0, 1) != 0) {}
  __threadfence();
  sum[0] += 1;  //!
  __threadfence();
  atomicExch(lock + which, 0);
}

//# last_block_sums: ok <<<4, 64>>> in f32[256], any f32[4], any zero i32, out f32
KERNEL k(const float* x, float* partial, int* count, float* y) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = x[blockIdx.x * 64];
    __threadfence();
    last = atomicAdd(count, 1) == 3;
    __threadfence();
  }
  __syncthreads();
  if (last && threadIdx.x == 40) y[0] = partial[0] + partial[1] + partial[2] + partial[3];
}

//# last_block_without_release: race <<<4, 64>>> in f32[256], any f32[4], any zero i32, out f32
KERNEL k(const float* x, float* partial, int* count, float* y) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = x[blockIdx.x * 64];  //!
    last = atomicAdd(count, 1) == 3;
    __threadfence();
  }
  __syncthreads();
  if (last && threadIdx.x == 40) y[0] = partial[0] + partial[1] + partial[2] + partial[3];  //!
}

//# last_block_without_acquire: race <<<4, 64>>> in f32[256], any f32[4], any zero i32, out f32
KERNEL k(const float* x, float* partial, int* count, float* y) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = x[blockIdx.x * 64];  //!
    __threadfence();
    last = atomicAdd(count, 1) == 3;
  }
  __syncthreads();
  if (last && threadIdx.x == 40) y[0] = partial[0] + partial[1] + partial[2] + partial[3];  //!
}

//# last_block_fence_of_one_thread: race <<<4, 64>>>
//#+ in f32[256], any f32[256], any zero i32, out f32
KERNEL k(const float* x, float* partial, int* count, float* y) {
  __shared__ bool last;
  int t = threadIdx.x;
  partial[blockIdx.x * 64 + t] = x[blockIdx.x * 64 + t];  //!
  if (t == 0) {  // a barrier is missing here: the fence is of thread 0 alone
    __threadfence();
    last = atomicAdd(count, 1) == 3;
    __threadfence();
  }
  __syncthreads();
  float sum = 0;
  if (last && t == 40)
    for (int j = 0; j < 256; ++j) sum += partial[j];  //!
  if (last && t == 40) y[0] = sum;
}
