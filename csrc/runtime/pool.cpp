#include "runtime/pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/round_up.h"

namespace stitch {

struct PoolBlock {
  void* data;
  int64_t bytes;
  PoolBlock *older = nullptr, *newer = nullptr;  // while cached
};

namespace {

constexpr int64_t kAlignmentBytes = 64;  // a cache line, and the widest vector register
constexpr int64_t kHugePageBytes = int64_t{2} << 20;
// Classes so near waste at most a 32nd.
constexpr int kClassesPerDoubling = 32;
constexpr int64_t kDefaultLimitBytes = int64_t{2} << 30;

int64_t class_bytes(int64_t bytes) {
  bytes = std::max(bytes, kAlignmentBytes);
  const int64_t step =
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes))) / kClassesPerDoubling;
  const int64_t rounded = round_up(bytes, std::max(step, kAlignmentBytes));
  return rounded < kHugePageBytes ? rounded : round_up(rounded, kHugePageBytes);
}

// Maps a page more than asked for and gives back what lies around the aligned block.
void* map_huge(int64_t bytes) {
  const int64_t mapped_bytes = bytes + kHugePageBytes;
  void* start =
      mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  char* const first = static_cast<char*>(start);
  char* const aligned = reinterpret_cast<char*>(
      round_up(static_cast<int64_t>(reinterpret_cast<uintptr_t>(first)), kHugePageBytes));
  if (aligned > first) munmap(first, aligned - first);
  const int64_t tail_bytes = first + mapped_bytes - (aligned + bytes);
  if (tail_bytes > 0) munmap(aligned + bytes, tail_bytes);
  madvise(aligned, bytes, MADV_HUGEPAGE);  // a wish: without huge pages small ones do
  return aligned;
}

PoolBlock* create_block(int64_t bytes) {
  void* memory =
      bytes < kHugePageBytes ? std::aligned_alloc(kAlignmentBytes, bytes) : map_huge(bytes);
  return memory ? new PoolBlock{memory, bytes} : nullptr;
}

void destroy_block(PoolBlock* block) {
  if (block->bytes < kHugePageBytes)
    std::free(block->data);
  else
    munmap(block->data, block->bytes);
  delete block;
}

struct DestroyAll {
  void operator()(PoolBlock* block) const {
    while (block) destroy_block(std::exchange(block, block->newer));
  }
};

// Blocks linked by `newer` that have to go.  They do without the lock, which is taken after this is
// declared.
using Evicted = std::unique_ptr<PoolBlock, DestroyAll>;

}  // namespace

void* data(const PoolBlock* block) { return block->data; }
int64_t size(const PoolBlock* block) { return block->bytes; }

PoolBlock* HostPool::allocate(int64_t bytes) {
  const int64_t wanted = class_bytes(bytes);
  {
    std::lock_guard lock(mutex_);
    std::vector<PoolBlock*>& blocks = free_blocks_[wanted];
    counts_.used_bytes += wanted;
    if (!blocks.empty()) {
      PoolBlock* block = blocks.back();
      unlink(block);
      ++counts_.reused_blocks;
      return block;
    }
    ++counts_.created_blocks;
  }
  PoolBlock* block = create_block(wanted);
  if (!block) {
    release_cached();
    block = create_block(wanted);
  }
  if (block) return block;
  std::lock_guard lock(mutex_);
  counts_.used_bytes -= wanted;
  throw UserError("out of memory: the system has no " + std::to_string(wanted) + " bytes more");
}

void HostPool::release(PoolBlock* block) {
  Evicted evicted;
  std::lock_guard lock(mutex_);
  counts_.used_bytes -= block->bytes;
  counts_.cached_bytes += block->bytes;
  free_blocks_[block->bytes].push_back(block);
  block->older = newest_;
  block->newer = nullptr;
  (newest_ ? newest_->newer : oldest_) = block;
  newest_ = block;
  evicted.reset(evict_oldest(counts_.limit_bytes));
}

void HostPool::unlink(PoolBlock* block) {
  (block->older ? block->older->newer : oldest_) = block->newer;
  (block->newer ? block->newer->older : newest_) = block->older;
  std::vector<PoolBlock*>& blocks = free_blocks_[block->bytes];
  // Nearly always the last one (reuse) or the first one (eviction).
  if (blocks.back() == block)
    blocks.pop_back();
  else
    blocks.erase(std::ranges::find(blocks, block));
  counts_.cached_bytes -= block->bytes;
}

PoolBlock* HostPool::evict_oldest(int64_t target_bytes) {
  PoolBlock* evicted = nullptr;
  while (counts_.cached_bytes > target_bytes) {
    PoolBlock* block = oldest_;
    unlink(block);
    block->newer = evicted;
    evicted = block;
  }
  return evicted;
}

void HostPool::release_cached() {
  Evicted evicted;
  std::lock_guard lock(mutex_);
  evicted.reset(evict_oldest(0));
}

void HostPool::set_limit(int64_t bytes) {
  Evicted evicted;
  std::lock_guard lock(mutex_);
  counts_.limit_bytes = bytes;
  evicted.reset(evict_oldest(bytes));
}

PoolStatistics HostPool::statistics() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

HostPool& host_pool() {
  static HostPool* pool = new HostPool(kDefaultLimitBytes);
  return *pool;
}
[[maybe_unused]] static const HostPool& kMadeAtLoad = host_pool();

}  // namespace stitch
