// HostPool: memory for CPU tensors that survives from call to call.
//
// A fresh 64 MB tensor costs 10 ms of page faults on each call; a block that was used before costs
// none.  Blocks come in size classes, 64-byte aligned, large ones as huge pages.  What is kept is
// bounded: the block that was freed longest ago goes first.  Any thread may call anything.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/fork_mutex.h"

namespace stitch {

struct PoolBlock {
  void* data;
  int64_t bytes;         // of its class: what was asked for, or a little more
  int64_t released = 0;  // how many were before it

  ~PoolBlock();
};

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
  // Blocks that have to go; they do without the lock, which is taken after this is declared.
  using Evicted = std::vector<std::unique_ptr<PoolBlock>>;
  Evicted evict_oldest(int64_t target_bytes);

  mutable ForkMutex mutex_;
  PoolStatistics counts_;
  int64_t releases_ = 0;
  // By block size, in the order of their release.
  std::unordered_map<int64_t, std::vector<PoolBlock*>> free_blocks_;
};

// The pool of the process; never destroyed, since tensors may outlive static objects.
HostPool& host_pool();

}  // namespace stitch
