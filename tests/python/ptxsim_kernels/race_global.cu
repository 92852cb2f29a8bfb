// Races in global memory: blocks are concurrent, whatever order they ran in.
#define KERNEL extern "C" __global__ void

//# stencil_in_place: race <<<2, 64>>> any f32[128]
KERNEL k(float* x) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float right = i < 127 ? x[i + 1] : 0;  //!
  __syncthreads();
  x[i] += right;  //!
}

//# stencil_in_place_within_blocks: ok <<<2, 64>>> any f32[128]
KERNEL k(float* x) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float right = threadIdx.x < 63 ? x[i + 1] : 0;
  __syncthreads();
  x[i] += right;
}

//# stencil_to_another_tensor: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i] + (i < 127 ? x[i + 1] : 0);
}

//# blocks_overlap_by_one: race <<<2, 64>>> any f32[128]
KERNEL k(float* y) {
  int i = blockIdx.x * 63 + threadIdx.x;
  y[i] = blockIdx.x;  //!
}

//# blocks_side_by_side: ok <<<2, 63>>> any f32[128]
KERNEL k(float* y) {
  int i = blockIdx.x * 63 + threadIdx.x;
  y[i] = blockIdx.x;
}

//# all_blocks_raise_a_flag: race <<<2, 64>>> any zero i32[1]
KERNEL k(int* found) {
  if (threadIdx.x == 5) *found = 1;  //!
}

//# all_blocks_raise_a_flag_by_atomics: ok <<<2, 64>>> any zero i32[1]
KERNEL k(int* found) {
  if (threadIdx.x == 5) atomicExch(found, 1);
}

//# all_blocks_raise_a_volatile_flag: ok <<<2, 64>>> any zero i32[1]
KERNEL k(int* found) {
  if (threadIdx.x == 5) *(volatile int*)found = 1;
}

//# plain_counter: race <<<2, 64>>> any zero i32[1]
KERNEL k(int* count) {
  if (threadIdx.x == 0) *count += 1;  //!
}

//# atomic_counter: ok <<<2, 64>>> any zero i32[1]
KERNEL k(int* count) { atomicAdd(count, 1); }

//# two_warps_store_one_word: race <<<1, 64>>> any zero i32[1]
KERNEL k(int* y) {
  if (threadIdx.x % 32 == 7) *y = threadIdx.x;  //!
}

//# atomic_and_plain_store: race <<<2, 64>>> any zero i32[1]
KERNEL k(int* count) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) *count = 0;  //!
  else atomicAnd(count, 0);         //!
}

//# atomics_of_a_block_between_blocks: race <<<2, 64>>> any zero i32[1]
KERNEL k(int* count) {
  atomicAdd_block(count, 1);  //!
}

//# atomics_of_a_block_within_blocks: ok <<<2, 64>>> any zero i32[2]
KERNEL k(int* count) { atomicAdd_block(&count[blockIdx.x], 1); }

//# atomics_of_two_scopes: race <<<2, 64>>> any zero i32[1]
KERNEL k(int* count) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) atomicAdd(count, 1);  //!
  else atomicAdd_block(count, 1);            //!
}

//# atomics_of_gpu_and_system: ok <<<2, 64>>> any zero i32[1]
KERNEL k(int* count) {
  if (blockIdx.x == 0) atomicAdd(count, 1);
  else atomicAdd_system(count, 1);
}

//# barrier_orders_global_in_a_block: ok <<<2, 64>>> any f32[128], out f32[128]
KERNEL k(float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = threadIdx.x;
  __syncthreads();
  y[i] = x[i ^ 63];
}

//# no_barrier_in_a_block: race <<<2, 64>>> any f32[128], out f32[128]
KERNEL k(float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = threadIdx.x;   //!
  y[i] = x[i ^ 63];  //!
}

//# barrier_does_not_order_blocks: race <<<2, 64>>> any f32[128], out f32[128]
KERNEL k(float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = threadIdx.x;  //!
  __syncthreads();
  y[i] = x[i ^ 64];  //!
}

//# fence_alone_does_not_order_blocks: race <<<2, 64>>> any f32[128], out f32[128]
KERNEL k(float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = threadIdx.x;  //!
  __threadfence();
  y[i] = x[i ^ 64];  //!
}

//# fence_alone_does_not_order_warps: race <<<2, 64>>> any f32[128], out f32[128]
KERNEL k(float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = threadIdx.x;  //!
  __threadfence_block();
  y[i] = x[i ^ 32];  //!
}

//# bytes_of_neighbours: ok <<<2, 64>>> any u8[128]
KERNEL k(unsigned char* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i % 64 * 2 + i / 64] = i;
}

//# flag_bytes_as_a_word: race <<<2, 32>>> any zero i32[16], out i32[16]
KERNEL k(int* flags, int* y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  ((unsigned char*)flags)[i] = 1;                      //!
  if (threadIdx.x % 4 == 0) y[i / 4] = flags[i / 4];  //!
}

//# vector_over_a_neighbour: race <<<2, 32>>> any f32[257]
KERNEL k(float* y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  ((float4*)y)[i] = make_float4(0, 1, 2, 3);  //!
  if (threadIdx.x == 31) y[4 * i + 4] = 9;  //!
}

//# reads_are_no_race: ok <<<2, 64>>> any f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[0] + x[127 - i] + *(const volatile float*)(x + i);
}
