// Blocks that wait for blocks which cannot be on the device beside them.  200 KiB of shared memory
// leave room for one block on each of the 132 multiprocessors of an H200.
#define KERNEL extern "C" __global__ void
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

//# one_block_too_many: residency <<<133, 64, 204800>>> any zero i32
KERNEL k(int* count) {
  extern __shared__ float s[];
  if (threadIdx.x == 0) s[51199] = 0;
  grid_barrier(count, 133);  //!
}

//# as_many_as_fit: ok <<<132, 64, 204800>>> any zero i32
KERNEL k(int* count) {
  extern __shared__ float s[];
  if (threadIdx.x == 0) s[51199] = 0;
  grid_barrier(count, 132);
}

//# one_block_too_many_cooperative: residency cooperative <<<133, 64, 204800>>> any zero i32
KERNEL k(int* count) { grid_barrier(count, 133); }

//# as_many_as_fit_cooperative: ok cooperative <<<132, 64, 204800>>> any zero i32
KERNEL k(int* count) { grid_barrier(count, 132); }

//# many_that_do_not_wait: ok <<<400, 64, 204800>>> out i32[400]
KERNEL k(int* y) {
  if (threadIdx.x == 0) y[blockIdx.x] = 1;
}

//# last_of_many_sums: ok <<<400, 64, 204800>>> any zero i32, any zero i32, out i32
KERNEL k(int* sum, int* count, int* y) {
  if (threadIdx.x) return;
  atomicAdd(sum, blockIdx.x);
  __threadfence();
  if (atomicAdd(count, 1) == 399) {
    __threadfence();
    *y = *sum;
  }
}

//# waits_for_the_next_block: residency|deadlock <<<140, 64, 204800>>> any zero i32[141]
KERNEL k(int* done) {  // the last block is the first to end
  if (threadIdx.x) return;
  volatile int* flags = done;
  if (blockIdx.x < 139) while (flags[blockIdx.x + 1] == 0) {}
  flags[blockIdx.x] = 1;
}

//# waits_for_the_ticket_before: ok <<<140, 64, 204800>>> any zero i32[142]
KERNEL k(int* done) {  // who draws a ticket is resident, and so were all before
  if (threadIdx.x) return;
  volatile int* flags = done;
  int ticket = atomicAdd(done + 141, 1);
  if (ticket > 0) while (flags[ticket - 1] == 0) {}
  flags[ticket] = 1;
}
