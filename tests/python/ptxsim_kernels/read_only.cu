// Stores to what the launch may only read: inputs, constants, what is read by ld.global.nc.
#define KERNEL extern "C" __global__ void
template <class T>
__device__ T* writable(const T* p) {  // NVRTC would make a trap of a store that it sees to be one
  T* q;
  asm volatile("mov.u64 %0, %1;" : "=l"(q) : "l"(p));
  return q;
}

//# input_is_scaled_in_place: read_only <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] *= 2;  //!
  y[i] = x[i];
}

//# unrestricted_is_scaled_in_place: ok <<<2, 64>>> any f32[128], out f32[128]
KERNEL k(float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] *= 2;
  y[i] = x[i];
}

//# arguments_swapped: read_only <<<2, 64>>> in f32[128], any f32[128]
KERNEL k(float* y, const float* x) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];  //!
}

//# arguments_in_order: ok <<<2, 64>>> any f32[128], in f32[128]
KERNEL k(float* y, const float* x) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];
}

//# atomic_to_an_input: read_only <<<2, 64>>> in i32[4], out i32[128]
KERNEL k(int* counts, int* y) {
  y[blockIdx.x * 64 + threadIdx.x] = 1;
  if (threadIdx.x == 0) atomicAdd(counts, 1);  //!
}

//# input_by_all_paths: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = __ldg(x + i) + x[i] + *(const volatile float*)(x + i) + __ldcg(x + i);
}

//# same_value_to_an_input: read_only <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float v = *(volatile float*)(x + i);
  *(volatile float*)(x + i) = v;  //!
  y[i] = v;
}

//# nc_then_written_by_the_reader: read_only <<<2, 64>>> any f32[128], same 0
KERNEL k(const float* __restrict__ x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = __ldg(x + i) * 2;
}

//# written_then_nc: read_only <<<2, 64>>> any f32[128], out f32[128]
KERNEL k(float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = i;
  *(volatile float*)(x + i) = i + 1;
  float v;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(x + i) : "memory");
  y[i] = v;
}

//# nc_after_a_barrier: read_only <<<2, 64>>> any f32[128], out f32[128]
KERNEL k(float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = i;
  __syncthreads();
  y[i] = __ldg(x + (i ^ 1));
}

//# nc_and_written_apart: ok <<<2, 64>>> any f32[256]
KERNEL k(float* x) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i + 128] = __ldg(x + i);
}

//# nc_of_an_input: ok <<<2, 64>>> in f32[128], out f32[128]
KERNEL k(const float* __restrict__ x, float* __restrict__ y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i] * x[127 - i];
}

//# coherent_load_then_written: ok <<<2, 64>>> any f32[128], same 0
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i] * 2;
}

//# constant_is_written: read_only <<<2, 64>>> out f32[128]
__constant__ float table[4] = {1, 2, 3, 4};
KERNEL k(float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = table[i & 3];
  if (i == 0) *writable(table) = 5;  //!
}

//# constant_is_counted: read_only <<<2, 64>>> out i32[128]
__constant__ int table[4] = {1, 2, 3, 4};
KERNEL k(int* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = 1;
  if (threadIdx.x == 0) atomicAdd(writable(table + 1), 1);  //!
}

//# constant_through_a_function: read_only <<<2, 64>>> out f32[128]
__constant__ float table[4] = {1, 2, 3, 4};
__device__ __noinline__ void put(float* p, float v) {
  *(volatile float*)p = v;  //!
}
KERNEL k(float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = i;
  if (i == 70) put(writable(table + 2), 5);
}

//# constant_is_read: ok <<<2, 64>>> out f32[128]
__constant__ float table[4] = {1, 2, 3, 4};
KERNEL k(float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = table[i & 3];
}

//# constant_through_a_generic_pointer: ok <<<2, 64>>> in f32[128], out f32[128]
__constant__ float table[4] = {1, 2, 3, 4};
__device__ __noinline__ float get(const float* p, int i) { return p[i & 3]; }
KERNEL k(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = get(i & 1 ? table : x, i);
}

//# device_variable_is_written: ok <<<2, 64>>> out f32[128]
__device__ float table[128];
KERNEL k(float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  table[i] = i;
  y[i] = table[i];
}
