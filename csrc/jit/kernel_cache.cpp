#include "jit/kernel_cache.h"

#include <pthread.h>

#include <chrono>

#include "base/archive.h"
#include "base/hash.h"
#include "base/log.h"

namespace stitch {
namespace {

constexpr size_t kMaxEntries = 20000;
constexpr int64_t kWritesPerEviction = 64;  // listing 20,000 files costs as much as some compiles
constexpr int64_t kSweepShare = 16;         // the cap is exceeded by at most 1 / kSweepShare
constexpr int64_t kSampleInterval = 16;     // cache_verify=sample checks one hit in so many
constexpr size_t kMemoryCapBytes = size_t{256} << 20;

constexpr std::string_view kMagic = "STITCHKC";
constexpr uint64_t kFormatVersion = 3;
constexpr size_t kHashedFrom = 8 + 8 + 8 + kSha256Bytes;  // magic, version, length, digest

std::string header_of(std::string_view body) {
  return std::string(kMagic) + to_bytes(kFormatVersion, kHashedFrom + body.size()) + sha256(body);
}

std::string entry_name(const std::string& key) { return key + ".kernel"; }

CacheCounters& counters_of(const CacheRequest& request) {
  ProcessCounters& all = cache_counters();
  return request.kind == "clock" ? all.clock : request.kind == "plan" ? all.plans : all.kernels;
}

Binary compile_counted(const CacheRequest& request, const std::function<Binary()>& compile) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const std::shared_ptr<void> counted(  // what throws took time too
      nullptr, [&](void*) { counters_of(request).compile_seconds += seconds(); });
  Binary binary = compile();
  binary.compile_ms = seconds() * 1e3;
  binary.from_cache = false;
  return binary;
}

// The caches of the process.
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<KernelCache>> caches;  // by directory, size and verify
};

Registry* g_registry = new Registry;

// A forked child starts with empty caches: a lock that another thread held at the fork would never
// be released in it.  The old registry is left to the parent's pages.
[[maybe_unused]] const int kRenewedInChildren = pthread_atfork(nullptr, nullptr, [] {
  g_registry = new Registry;
  reset_cache_counters();
});

}  // namespace

std::string cache_key(const CacheRequest& request) {
  return sha256_hex(to_bytes(kFormatVersion, request));
}

std::string encode_entry(const CacheRequest& request, const Binary& binary) {
  const std::string body = to_bytes(request, binary);
  return header_of(body) + body;
}

std::optional<Binary> decode_entry(std::string_view bytes, const CacheRequest& request) {
  const std::string_view body = bytes.substr(std::min(bytes.size(), kHashedFrom));
  CacheRequest answered;
  Binary binary;
  const bool is_whole = bytes.starts_with(header_of(body)) && from_bytes(body, answered, binary);
  if (!is_whole || answered != request) return std::nullopt;
  binary.from_cache = true;
  return binary;
}

ProcessCounters& cache_counters() {
  static ProcessCounters counters;
  return counters;
}

void reset_cache_counters() {
  ProcessCounters& all = cache_counters();
  for (CacheCounters* one : {&all.kernels, &all.plans, &all.clock}) {
    one->hits_memory = one->hits_disk = one->misses = one->refused = one->mismatches = 0;
    one->compile_seconds = 0;
  }
}

KernelCache::KernelCache(const Settings& settings)
    : verify_(settings.cache_verify), size_bytes_(settings.cache_size_bytes) {
  if (settings.cache.empty() || settings.cache == "off") return;
  std::string why;
  directory_ = PrivateDirectory::open(settings.cache, why);
  if (!directory_)
    warn_once("kernel cache " + settings.cache,
              "compiled kernels are not kept on disk: " + why +
                  "; set TORCH_STITCH_CACHE to a directory that only you can write to, or to off");
}

Binary KernelCache::get_or_compile(const CacheRequest& request,
                                   const std::function<Binary()>& compile) {
  const std::string key = cache_key(request);
  std::shared_ptr<Slot> slot;
  {
    std::lock_guard lock(mutex_);
    slot = slots_.try_emplace(key, std::make_shared<Slot>()).first->second;
  }
  std::lock_guard lock(slot->mutex);
  if (slot->binary) {
    ++counters_of(request).hits_memory;
    Binary binary = *slot->binary;
    binary.from_cache = true;
    return binary;
  }
  Binary binary;
  if (std::optional<Binary> cached = read_disk(key, request)) {
    binary = verified(std::move(*cached), key, request, compile);
  } else {
    ++counters_of(request).misses;
    binary = compile_counted(request, compile);
    write_disk(key, request, binary);
  }
  slot->binary = binary;
  keep_in_memory(key, binary.bytes.size() + binary.log.size());
  return binary;
}

void KernelCache::clear() {
  if (directory_) directory_->evict(0, 0);
  const std::lock_guard lock(mutex_);
  slots_.clear();
  memory_bytes_ = 0;
}

std::optional<Binary> KernelCache::read_disk(const std::string& key, const CacheRequest& request) {
  if (!directory_) return std::nullopt;
  const std::string name = entry_name(key);
  const std::optional<std::string> file = directory_->read_entry(name, kMaxEntryBytes);
  if (!file) return std::nullopt;
  if (std::optional<Binary> binary = decode_entry(*file, request)) return binary;
  directory_->set_aside(name);
  ++counters_of(request).refused;
  return std::nullopt;
}

void KernelCache::write_disk(const std::string& key, const CacheRequest& request,
                             const Binary& binary) {
  if (!directory_) return;
  const std::string file = encode_entry(request, binary);
  if (file.size() > kMaxEntryBytes) return;
  const std::string why = directory_->write_entry(entry_name(key), file);
  if (!why.empty()) {
    warn_once("kernel cache write " + directory_->path(), "cannot write compiled kernels to '" +
                                                              directory_->path() + "': " + why +
                                                              "; they are kept in memory only");
    return;
  }
  bool is_eviction_due;
  {
    std::lock_guard lock(mutex_);
    unswept_bytes_ += std::ssize(file);
    is_eviction_due =
        writes_++ % kWritesPerEviction == 0 || unswept_bytes_ > size_bytes_ / kSweepShare;
    if (is_eviction_due) unswept_bytes_ = 0;
  }
  if (is_eviction_due) directory_->evict(size_bytes_, kMaxEntries);
}

// Compilers are deterministic, so a kept binary can be proved right by making it again.
Binary KernelCache::verified(Binary cached, const std::string& key, const CacheRequest& request,
                             const std::function<Binary()>& compile) {
  const int64_t hit = counters_of(request).hits_disk++;
  const bool is_checked = verify_ == "all" || (verify_ == "sample" && hit % kSampleInterval == 0);
  if (!is_checked) return cached;
  Binary fresh = compile_counted(request, compile);
  if (fresh.bytes == cached.bytes) return cached;
  ++counters_of(request).mismatches;
  warn_once("kernel cache verify " + key,
            "the cached kernel " + key + " differs from a fresh compile; the fresh one is used");
  write_disk(key, request, fresh);
  return fresh;
}

// Over the cap everything but the newest goes: loaded kernels stay loaded and the rest is on disk.
void KernelCache::keep_in_memory(const std::string& key, size_t bytes) {
  std::lock_guard lock(mutex_);
  memory_bytes_ += bytes;
  if (memory_bytes_ <= kMemoryCapBytes) return;
  std::erase_if(slots_, [&](const auto& slot) { return slot.first != key; });
  memory_bytes_ = bytes;
}

KernelCache& process_cache(const Settings& settings) {
  if (settings.cache.empty())
    warn_once("kernel cache home",
              "compiled kernels are not kept on disk: there is no home directory; set "
              "TORCH_STITCH_CACHE to a directory, or to off");
  const std::string name = settings.cache + "\n" + std::to_string(settings.cache_size_bytes) +
                           "\n" + settings.cache_verify;
  Registry& all = *g_registry;
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
