// The kernel cache: memory first, then one private directory with one file per binary.
//
// File: magic, format version, total length, SHA-256 of the rest; then (base/archive.h) the request
// with the full source, and the binary with its attributes.  Nothing in a file is trusted before
// length and hash agree, and it only answers a request whose fields equal the stored ones.
//
// A cache can be wrong only by costing a compile: what is damaged, planted, unreadable or made for
// another request is a miss.  Threads that ask for the same key compile once; other processes may
// compile the same at the same time and the last rename wins.  A directory that cannot be trusted
// or written leaves the memory cache and one warning.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "base/files.h"
#include "config/settings.h"
#include "jit/binary.h"

namespace stitch {

// What a compile depends on.
struct CacheRequest {
  std::string kind;      // "cuda", "ptx" or "host"; "plan" and "clock" (compilation.h)
  std::string arch;      // "sm_90a", or the CPU features that code is made for; a plan's target
  std::string compiler;  // name and version
  std::string options;
  std::string prelude;  // SHA-256 of the device text, which is the same for all kernels
  std::string source;   // all kernel texts; a plan's graph

  friend bool operator==(const CacheRequest&, const CacheRequest&) = default;
};

// 64 hex digits over every field.
std::string cache_key(const CacheRequest& request);

constexpr size_t kMaxEntryBytes = size_t{64} << 20;

std::string encode_entry(const CacheRequest& request, const Binary& binary);
// Nothing if the bytes are damaged or answer another request.
std::optional<Binary> decode_entry(std::string_view bytes, const CacheRequest& request);

struct CacheCounters {
  std::atomic<int64_t> hits_memory = 0, hits_disk = 0, misses = 0;
  std::atomic<int64_t> refused = 0;     // entries that were damaged or not ours
  std::atomic<int64_t> mismatches = 0;  // that cache_verify found to differ from a fresh compile
  std::atomic<double> compile_seconds = 0;
};
// Of all caches of the process: of kernels, of plans, and of the clock's answers.
struct ProcessCounters {
  CacheCounters kernels, plans, clock;
};
ProcessCounters& cache_counters();
void reset_cache_counters();

class KernelCache {
 public:
  // Where `settings` say; without a directory memory only.
  explicit KernelCache(const Settings& settings);

  // What `compile` throws reaches the caller and is not remembered.
  Binary get_or_compile(const CacheRequest& request, const std::function<Binary()>& compile);
  void clear();  // forgets every entry, here and on disk

 private:
  // One key: whoever holds the mutex looks it up or compiles it.
  struct Slot {
    std::mutex mutex;
    std::optional<Binary> binary;
  };
  std::optional<Binary> read_disk(const std::string& key, const CacheRequest& request);
  void write_disk(const std::string& key, const CacheRequest& request, const Binary& binary);
  Binary verified(Binary cached, const std::string& key, const CacheRequest& request,
                  const std::function<Binary()>& compile);
  void keep_in_memory(const std::string& key, size_t bytes);

  const std::string verify_;
  const int64_t size_bytes_;
  std::optional<PrivateDirectory> directory_;
  std::mutex mutex_;  // guards the members below
  std::map<std::string, std::shared_ptr<Slot>> slots_;
  size_t memory_bytes_ = 0;
  int64_t writes_ = 0;
  int64_t unswept_bytes_ = 0;  // written since the last eviction
};

// The process's cache for these settings; one per directory.
KernelCache& process_cache(const Settings& settings);

}  // namespace stitch
