// Accesses whose address is no multiple of their size.
#define KERNEL extern "C" __global__ void

//# vector_load_of_a_shifted_view: misaligned <<<2, 64>>> in f32[512]+1, out f32[512]
KERNEL k(const float4* x, float4* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];  //!
}

//# vector_load_of_a_view_shifted_by_a_vector: ok <<<2, 64>>> in f32[512]+4, out f32[512]
KERNEL k(const float4* x, float4* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];
}

//# vector_rows_of_odd_pitch: misaligned <<<2, 64>>> in f32[2x127], out f32[2x128]
KERNEL k(const float* x, float* y) {
  int t = threadIdx.x;
  float2 v = t < 63 ? *(const float2*)(x + blockIdx.x * 127 + t * 2) : make_float2(0, 0);  //!
  *(float2*)(y + blockIdx.x * 128 + t * 2) = v;
}

//# vector_rows_of_even_pitch: ok <<<2, 64>>> in f32[2x126], out f32[2x128]
KERNEL k(const float* x, float* y) {
  int t = threadIdx.x;
  float2 v = t < 63 ? *(const float2*)(x + blockIdx.x * 126 + t * 2) : make_float2(0, 0);
  *(float2*)(y + blockIdx.x * 128 + t * 2) = v;
}

//# double_at_an_odd_word: misaligned <<<2, 32>>> any f32[130]
KERNEL k(float* y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  *(double*)(y + 1 + i * 2) = i;  //!
}

//# double_at_an_even_word: ok <<<2, 32>>> any f32[130]
KERNEL k(float* y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  *(double*)(y + 2 + i * 2) = i;
}

//# shared_vector_at_an_odd_word: misaligned <<<2, 32>>> in f32[128], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ __align__(16) float s[68];
  int t = threadIdx.x;
  for (int j = t; j < 68; j += 32) s[j] = 0;
  __syncthreads();
  *(float2*)(s + 1 + 2 * t) = make_float2(x[t], x[t + 32]);  //!
  __syncthreads();
  y[blockIdx.x * 32 + t] = s[t];
}

//# shared_vector_at_an_even_word: ok <<<2, 32>>> in f32[128], out f32[64]
KERNEL k(const float* x, float* y) {
  __shared__ __align__(16) float s[68];
  int t = threadIdx.x;
  for (int j = t; j < 68; j += 32) s[j] = 0;
  __syncthreads();
  *(float2*)(s + 2 + 2 * t) = make_float2(x[t], x[t + 32]);
  __syncthreads();
  y[blockIdx.x * 32 + t] = s[t];
}

//# half_at_an_odd_byte: misaligned <<<2, 32>>> in u8[130], out u16[64]
KERNEL k(const unsigned char* x, unsigned short* y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  y[i] = *(const unsigned short*)(x + 2 * i + 1);  //!
}

//# halves_from_bytes: ok <<<2, 32>>> in u8[130], out u16[64]
KERNEL k(const unsigned char* x, unsigned short* y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  y[i] = x[2 * i + 1] | x[2 * i + 2] << 8;
}

//# wide_atomic_at_an_odd_word: misaligned <<<2, 64>>> any zero i32[3]
KERNEL k(int* c) {
  atomicAdd((unsigned long long*)(c + 1), 1ull);  //!
}

//# wide_atomic: ok <<<2, 64>>> any zero i32[4]
KERNEL k(int* c) {
  atomicAdd((unsigned long long*)(c + 2), 1ull);
}
