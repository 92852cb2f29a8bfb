// Kernels that benchmarks/device_numbers.py times.  Counts and bytes are long long, times cycles.
// CLUSTER is defined for those of a cluster only.
// The device headers stand before it, as before whatever has STITCH_KERNEL(name).

typedef long long i64_t;
typedef unsigned long long u64_t;

namespace {

__device__ i64_t clock_now() {
  i64_t now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
  return now;
}
__device__ i64_t nanoseconds_now() {
  i64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}
__device__ unsigned multiprocessor() {
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}
__device__ uint4 load_streamed(const uint4* from) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

// Pieces of 16 bytes, kUnroll loads of each thread in flight; `passes` times over the same bytes.
template <int kUnroll, bool kReads, bool kWrites>
__device__ void move(const uint4* from, uint4* to, i64_t pieces, i64_t passes) {
  const i64_t stride = i64_t(gridDim.x) * blockDim.x;
  const i64_t first = i64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  unsigned seen = 0;
  for (i64_t pass = 0; pass < passes; ++pass) {
    for (i64_t i = first; i < pieces; i += stride * kUnroll) {
      uint4 v[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        v[u] = make_uint4(unsigned(i), u, 3, 4);
        if (kReads && i + u * stride < pieces) v[u] = load_streamed(from + i + u * stride);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (kWrites) {
          if (i + u * stride < pieces) to[i + u * stride] = v[u];
        } else {
          seen ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
        }
      }
    }
  }
  if (!kWrites && seen == 0x12345677u) to[0] = make_uint4(seen, 0, 0, 0);
}

}  // namespace

#define MOVE(name, unroll, reads, writes)                                                 \
  extern "C" __global__ void __launch_bounds__(1024)                                      \
      name(const uint4* from, uint4* to, i64_t pieces, i64_t passes) {                    \
    move<unroll, reads, writes>(from, to, pieces, passes);                                \
  }
MOVE(read1, 1, true, false)
MOVE(read4, 4, true, false)
MOVE(write1, 1, false, true)
MOVE(write4, 4, false, true)
MOVE(copy1, 1, true, true)
MOVE(copy2, 2, true, true)
MOVE(copy4, 4, true, true)

extern "C" __global__ void nothing() {}

// Takes the device for `cycles`; (cycles, ns) that it took.
extern "C" __global__ void spin(i64_t* out, i64_t cycles) {
  const i64_t start = clock_now(), start_ns = nanoseconds_now();
  float x = threadIdx.x, a = 1.0001f;
  while (clock_now() - start < cycles) {
#pragma unroll
    for (int i = 0; i < 64; ++i) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(a));
  }
  if (threadIdx.x == 0) {
    out[2 * blockIdx.x] = clock_now() - start;
    out[2 * blockIdx.x + 1] = nanoseconds_now() - start_ns;
  }
  if (x == 0.123f) out[0] = 0;
}

extern "C" __global__ void __launch_bounds__(1024) meet(unsigned* counter, i64_t rounds) {
#pragma unroll 1
  for (i64_t i = 0; i < rounds; ++i) stitch::grid_barrier(counter);
}

// Each block stores a number; `with_last`, the last one to come adds them.
extern "C" __global__ void __launch_bounds__(1024)
    gather(unsigned* counter, float* parts, float* sum, i64_t with_last) {
  if (threadIdx.x == 0) parts[blockIdx.x] = 1.0f;
  if (!with_last) return;
  if (!stitch::is_last_block(counter)) return;
  float total = 0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) total += __ldcg(parts + i);
  if (threadIdx.x < 32) sum[threadIdx.x] = total;
}

// Cycles of `steps` dependent loads from *start on.
#define CHASE(name, modifier)                                                             \
  extern "C" __global__ void name(u64_t start, i64_t steps, i64_t* out) {                 \
    u64_t at = start;                                                                     \
    _Pragma("unroll 1") for (i64_t i = 0; i < 256; ++i)                                   \
      asm volatile("ld.global" modifier ".u64 %0, [%0];" : "+l"(at)::"memory");           \
    const i64_t before = clock_now();                                                     \
    _Pragma("unroll 16") for (i64_t i = 0; i < steps; ++i)                                \
      asm volatile("ld.global" modifier ".u64 %0, [%0];" : "+l"(at)::"memory");           \
    if (at == 1) out[1] = 0;                                                              \
    out[0] = clock_now() - before;                                                        \
  }
CHASE(chase_ca, ".ca")
CHASE(chase_cg, ".cg")

// A dependent chain of atomics of one thread, with the order that grid.cuh asks for or none.
extern "C" __global__ void atomic_chain(unsigned* at, i64_t steps, i64_t ordered, i64_t* out) {
  unsigned x = 0;
  at += threadIdx.x;  // an address of all lanes would be added for by one of them
  const i64_t before = clock_now();
  if (ordered) {
    for (i64_t i = 0; i < steps; ++i)
      asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %0;" : "+r"(x) : "l"(at) : "memory");
  } else {
    for (i64_t i = 0; i < steps; ++i)
      asm volatile("atom.global.add.u32 %0, [%1], %0;" : "+r"(x) : "l"(at) : "memory");
  }
  if (x == 12345) out[1] = 0;
  out[0] = clock_now() - before;
}
extern "C" __global__ void __launch_bounds__(1024)
    atomics(unsigned* at, i64_t lane_step, i64_t warp_step, i64_t rounds, unsigned* out) {
  const i64_t warp = (i64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  unsigned* mine = at + warp * warp_step + threadIdx.x % 32 * lane_step;
  unsigned seen = 0;
#pragma unroll 4
  for (i64_t i = 0; i < rounds; ++i) {
    unsigned x;
    asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(x) : "l"(mine) : "memory");
    seen ^= x;
  }
  if (seen == 0x7fffffffu) out[0] = seen;
}
extern "C" __global__ void __launch_bounds__(1024)
    reds(unsigned* at, i64_t lane_step, i64_t warp_step, i64_t rounds, unsigned*) {
  const i64_t warp = (i64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  unsigned* mine = at + warp * warp_step + threadIdx.x % 32 * lane_step;
#pragma unroll 4
  for (i64_t i = 0; i < rounds; ++i)
    asm volatile("red.global.add.u32 [%0], 1;" ::"l"(mine) : "memory");
}

// Cycles of `rounds` barriers of one block.
extern "C" __global__ void __launch_bounds__(1024) block_barriers(i64_t* out, i64_t rounds) {
  __syncthreads();
  const i64_t before = clock_now();
#pragma unroll 8
  for (i64_t i = 0; i < rounds; ++i) asm volatile("bar.sync 0;" ::: "memory");
  if (threadIdx.x == 0) out[0] = clock_now() - before;
}

// (multiprocessor, cycle of start, cycle of end, ns of start) of each block, that takes `cycles`.
extern "C" __global__ void __launch_bounds__(1024) stamp(i64_t* out, i64_t cycles) {
  const i64_t start = clock_now(), start_ns = nanoseconds_now();
  while (clock_now() - start < cycles) {
  }
  if (threadIdx.x == 0) {
    i64_t* row = out + 4 * i64_t(blockIdx.x);
    row[0] = multiprocessor();
    row[1] = start;
    row[3] = start_ns;
    row[2] = clock_now();
  }
}

// 16 bytes of each thread's from the first cache, again and again.
extern "C" __global__ void __launch_bounds__(1024)
    first_cache(const uint4* from, i64_t rounds, i64_t zero, i64_t* out, unsigned* sink) {
  const uint4* at = from + threadIdx.x;
  unsigned seen = 0;
  i64_t before = 0;
#pragma unroll 1
  for (i64_t i = -4; i < rounds; ++i) {
    if (i == 0) {
      __syncthreads();
      before = clock_now();
    }
    at += zero;
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      uint4 v;
      asm volatile("ld.global.ca.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                   : "l"(at + u * blockDim.x));
      seen ^= v.x ^ v.y;
      seen ^= v.z ^ v.w;
    }
  }
  const i64_t after = clock_now();
  if (seen == 0x12345u) sink[0] = seen;
  if (threadIdx.x % 32 == 0) {
    out[threadIdx.x / 32 * 2] = before;
    out[threadIdx.x / 32 * 2 + 1] = after;
  }
}

#ifdef CLUSTER

namespace {

__device__ unsigned in_next_block(unsigned address) {
  unsigned rank, there;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"(address), "r"((rank + 1) % CLUSTER));
  return there;
}
__device__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
}

}  // namespace

// Cycles of: `rounds` barriers of the cluster, `rounds` dependent loads of one thread from the next
// block, 8 * `rounds` loads of 16 bytes of every thread from the next block.
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(256)
    cluster(i64_t* out, i64_t rounds, i64_t zero, unsigned* sink) {
  __shared__ alignas(16) unsigned data[8192];
  const unsigned there = in_next_block(static_cast<unsigned>(__cvta_generic_to_shared(data)));
  for (unsigned i = threadIdx.x; i < 8192; i += blockDim.x) data[i] = 0;
  cluster_barrier();
  const i64_t start = clock_now();
#pragma unroll 1
  for (i64_t i = 0; i < rounds; ++i) cluster_barrier();
  const i64_t met = clock_now();
  unsigned x = 0;
  if (threadIdx.x == 0) {
#pragma unroll 8
    for (i64_t i = 0; i < rounds; ++i)
      asm volatile("ld.volatile.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(there + x));
  }
  if (x == 77) sink[0] = x;
  const i64_t loaded = clock_now();
  cluster_barrier();
  const i64_t before = clock_now();
  unsigned place = there + threadIdx.x * 16;
#pragma unroll 1
  for (i64_t i = 0; i < rounds; ++i) {
    place += unsigned(zero);
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      uint4 v;
      asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                   : "r"(place + u * 4096)
                   : "memory");
      x ^= v.x ^ v.y;
      x ^= v.z ^ v.w;
    }
  }
  if (x == 77) sink[0] = x;
  cluster_barrier();
  if (threadIdx.x == 0) {
    i64_t* row = out + 4 * blockIdx.x;
    row[0] = met - start;
    row[1] = loaded - met;
    row[2] = clock_now() - before;
  }
}
#endif
