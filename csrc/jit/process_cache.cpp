// The kernel caches of the process, one per directory.
#include <pthread.h>

#include "base/log.h"
#include "jit/kernel_cache.h"

namespace stitch {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<KernelCache>> caches;  // by directory, size and verify
};

Registry* g_registry = nullptr;

// A forked child starts with empty caches: a lock that another thread held at the fork would never
// be released in it.  The old registry is left to the parent's pages.
void renew_registry() { g_registry = new Registry; }

Registry& registry() {
  static std::once_flag once;
  std::call_once(once, [] {
    renew_registry();
    pthread_atfork(nullptr, nullptr, renew_registry);
  });
  return *g_registry;
}

KernelCache::Options cache_options(const Settings& settings) {
  KernelCache::Options options;
  options.directory = settings.cache == "off" ? "" : settings.cache;
  options.size_bytes = settings.cache_size_bytes;
  if (settings.cache_verify == "all") options.verify = KernelCache::Verify::kAll;
  if (settings.cache_verify == "sample") options.verify = KernelCache::Verify::kSample;
  return options;
}

}  // namespace

KernelCache& process_cache(const Settings& settings) {
  if (settings.cache.empty()) {
    warn_once("kernel cache home",
              "compiled kernels are not kept on disk: there is no home directory; set "
              "TORCH_STITCH_CACHE to a directory, or to off");
  }
  const std::string name = settings.cache + "\n" + std::to_string(settings.cache_size_bytes) +
                           "\n" + settings.cache_verify;
  Registry& all = registry();
  {
    std::lock_guard lock(all.mutex);
    const auto found = all.caches.find(name);
    if (found != all.caches.end()) return *found->second;
  }
  // Made outside the lock: it may warn.  Of two threads that do, one cache stays.
  auto cache = std::make_unique<KernelCache>(cache_options(settings));
  std::lock_guard lock(all.mutex);
  return *all.caches.try_emplace(name, std::move(cache)).first->second;
}

CacheCounters process_cache_counters() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  CacheCounters sum;
  for (const auto& [name, cache] : all.caches) {
    const CacheCounters counters = cache->counters();
    sum.hits_memory += counters.hits_memory;
    sum.hits_disk += counters.hits_disk;
    sum.misses += counters.misses;
    sum.refused += counters.refused;
    sum.mismatches += counters.mismatches;
    sum.compile_seconds += counters.compile_seconds;
  }
  return sum;
}

void reset_process_cache_counters() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  for (const auto& [name, cache] : all.caches) cache->reset_counters();
}

}  // namespace stitch
