// HostPool: memory for CPU tensors that survives from call to call.
//
// A fresh 64 MB tensor costs 10 ms of page faults on each call; a block that was used before costs
// none.  Blocks come in size classes, 64-byte aligned, large ones as huge pages.  What is kept is
// bounded: the block that was freed longest ago goes first.  Any thread may call anything.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/fork_mutex.h"

namespace stitch {

struct PoolBlock;  // defined in pool.cpp

struct PoolStatistics {
  int64_t used_bytes = 0;      // in blocks that are in use
  int64_t cached_bytes = 0;    // in blocks that wait for reuse
  int64_t limit_bytes = 0;     // cached_bytes stays at or under it
  int64_t reused_blocks = 0;   // allocations served from the cache
  int64_t created_blocks = 0;  // allocations served by the system
};

class HostPool {
 public:
  explicit HostPool(int64_t limit_bytes) : counts_{.limit_bytes = limit_bytes} {}
  ~HostPool() { release_cached(); }  // blocks in use then belong to nobody

  // At least `bytes` bytes, contents undefined.  UserError when the system has no more memory.
  PoolBlock* allocate(int64_t bytes);
  void release(PoolBlock* block);
  void release_cached();
  void set_limit(int64_t bytes);
  PoolStatistics statistics() const;

 private:
  void unlink(PoolBlock* block);
  PoolBlock* evict_oldest(int64_t target_bytes);

  mutable ForkMutex mutex_;
  PoolStatistics counts_;
  std::unordered_map<int64_t, std::vector<PoolBlock*>> free_blocks_;  // by block size
  PoolBlock* oldest_ = nullptr;  // list of cached blocks in the order of their release
  PoolBlock* newest_ = nullptr;
};

void* data(const PoolBlock* block);
int64_t size(const PoolBlock* block);  // in bytes

// The pool of the process; never destroyed, since tensors may outlive static objects.
HostPool& host_pool();

}  // namespace stitch
