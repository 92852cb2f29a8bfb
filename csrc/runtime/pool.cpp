#include "runtime/pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "base/error.h"
#include "base/round_up.h"

namespace stitch {
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

}  // namespace

PoolBlock::~PoolBlock() {
  if (bytes < kHugePageBytes)
    std::free(data);
  else
    munmap(data, bytes);
}

PoolBlock* HostPool::allocate(int64_t bytes) {
  const int64_t wanted = class_bytes(bytes);
  {
    std::lock_guard lock(mutex_);
    std::vector<PoolBlock*>& blocks = free_blocks_[wanted];
    counts_.used_bytes += wanted;
    if (!blocks.empty()) {
      PoolBlock* block = blocks.back();
      blocks.pop_back();
      counts_.cached_bytes -= wanted;
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
  block->released = releases_++;
  free_blocks_[block->bytes].push_back(block);
  evicted = evict_oldest(counts_.limit_bytes);
}

HostPool::Evicted HostPool::evict_oldest(int64_t target_bytes) {
  const auto age_of_first = [](const auto& blocks_of_size) {
    const std::vector<PoolBlock*>& blocks = blocks_of_size.second;
    return blocks.empty() ? INT64_MAX : blocks.front()->released;
  };
  Evicted evicted;
  while (counts_.cached_bytes > target_bytes) {
    auto& [bytes, blocks] = *std::ranges::min_element(free_blocks_, {}, age_of_first);
    evicted.emplace_back(blocks.front());
    blocks.erase(blocks.begin());
    counts_.cached_bytes -= bytes;
  }
  return evicted;
}

void HostPool::release_cached() {
  Evicted evicted;
  std::lock_guard lock(mutex_);
  evicted = evict_oldest(0);
}

void HostPool::set_limit(int64_t bytes) {
  Evicted evicted;
  std::lock_guard lock(mutex_);
  counts_.limit_bytes = bytes;
  evicted = evict_oldest(bytes);
}

PoolStatistics HostPool::statistics() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

static HostPool& g_pool = *new HostPool(kDefaultLimitBytes);
HostPool& host_pool() { return g_pool; }

}  // namespace stitch
