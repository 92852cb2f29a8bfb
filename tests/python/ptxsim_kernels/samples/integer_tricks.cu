// Bit counts, byte permutation, wide products, divisions and shifts by variable amounts.
extern "C" __global__ void tricks(const int* x, const int* y, int* z, long long* w, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int a = x[i], b = y[i];
  unsigned u = a, v = b;
  z[i * 8 + 0] = __popc(a) + __clz(b) * 100;
  z[i * 8 + 1] = __byte_perm(a, b, 0x3715);
  z[i * 8 + 2] = __mulhi(a, b);
  z[i * 8 + 3] = b ? a / b : 0;
  z[i * 8 + 4] = b ? (int)(u % v) : 0;
  z[i * 8 + 5] = __brev(u);
  z[i * 8 + 6] = (a >> (b & 31)) ^ (u << (v & 15));
  z[i * 8 + 7] = __funnelshift_l(u, v, a & 31);
  w[i] = (long long)a * b - ((long long)a << 20);
}
