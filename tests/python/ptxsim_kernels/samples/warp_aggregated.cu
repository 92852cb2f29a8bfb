// Keys counted with one atomic for all lanes of a key; positive elements of each warp's 32 kept.
extern "C" __global__ void count_keys(const int* keys, unsigned* counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned active = __ballot_sync(~0u, i < n);
  if (i >= n) return;
  unsigned peers = __match_any_sync(active, keys[i]);
  if ((threadIdx.x & 31) == __ffs(peers) - 1) atomicAdd(&counts[keys[i]], __popc(peers));
}
extern "C" __global__ void filter(const int* x, int* kept, unsigned* counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  bool keep = i < n && x[i] > 0;
  unsigned mask = __ballot_sync(~0u, keep);
  if (lane == 0) counts[i / 32] = __popc(mask);
  if (keep) kept[i - lane + __popc(mask & ((1u << lane) - 1))] = x[i];
}
