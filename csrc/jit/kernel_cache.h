// The kernel cache: memory first, then one private directory with one file per binary.
//
// A cache can be wrong only by costing a compile: what is damaged, planted, unreadable or made for
// another request is a miss.  Threads that ask for the same key compile once; other processes may
// compile the same at the same time and the last rename wins.  A directory that cannot be trusted
// or written leaves the memory cache and one warning.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/files.h"
#include "config/settings.h"
#include "jit/cache_key.h"

namespace stitch {

struct CacheCounters {
  int64_t hits_memory = 0;
  int64_t hits_disk = 0;
  int64_t misses = 0;
  int64_t refused = 0;     // entries that were damaged or not ours
  int64_t mismatches = 0;  // entries that cache_verify found to differ from a fresh compile
  double compile_seconds = 0;
};

class KernelCache {
 public:
  enum class Verify { kOff, kSample, kAll };
  struct Options {
    std::string directory;  // empty: memory only
    int64_t size_bytes = int64_t{1} << 30;
    Verify verify = Verify::kOff;
  };
  explicit KernelCache(Options options);

  // What `compile` throws reaches the caller and is not remembered.
  Binary get_or_compile(const CacheRequest& request, const std::function<Binary()>& compile);
  void clear();  // forgets every entry, here and on disk
  CacheCounters counters() const;
  void reset_counters();

 private:
  // One key: whoever holds the mutex looks it up or compiles it.
  struct Slot {
    std::mutex mutex;
    std::optional<Binary> binary;
  };
  std::shared_ptr<Slot> slot_of(const std::string& key);
  std::optional<Binary> read_disk(const std::string& key, const CacheRequest& request);
  void write_disk(const std::string& key, const CacheRequest& request, const Binary& binary);
  Binary compile_counted(const std::function<Binary()>& compile);
  Binary verified(Binary cached, const std::string& key, const CacheRequest& request,
                  const std::function<Binary()>& compile);
  void count(const std::function<void(CacheCounters&)>& change);
  void keep_in_memory(const std::string& key, size_t bytes);

  const Options options_;
  std::optional<PrivateDirectory> directory_;
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, std::shared_ptr<Slot>> slots_;
  size_t memory_bytes_ = 0;
  int64_t writes_ = 0;
  int64_t unswept_bytes_ = 0;  // written since the last eviction
  CacheCounters counters_;
};

// The process's cache for these settings; one per directory (process_cache.cpp).
KernelCache& process_cache(const Settings& settings);
// Sums over all caches of the process.
CacheCounters process_cache_counters();
void reset_process_cache_counters();

}  // namespace stitch
