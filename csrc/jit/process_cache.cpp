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
void renew_registry() {
  g_registry = new Registry;
  reset_cache_counters();
}

Registry& registry() {
  static std::once_flag once;
  std::call_once(once, [] {
    renew_registry();
    pthread_atfork(nullptr, nullptr, renew_registry);
  });
  return *g_registry;
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
  auto cache = std::make_unique<KernelCache>(settings);
  std::lock_guard lock(all.mutex);
  return *all.caches.try_emplace(name, std::move(cache)).first->second;
}

}  // namespace stitch
