#include "base/fork_mutex.h"

#include <pthread.h>

#include <set>

#include "base/error.h"

namespace stitch {
namespace {

struct Registry {
  std::mutex mutex;
  std::set<ForkMutex*> mutexes;
};

// Never destroyed: a fork may come while the process exits.
Registry& registry() {
  static Registry* const all = [] {
    const auto lock = [] {
      registry().mutex.lock();
      for (ForkMutex* each : registry().mutexes) each->lock();
    };
    const auto unlock = [] {
      for (ForkMutex* each : registry().mutexes) each->unlock();
      registry().mutex.unlock();
    };
    const int error = pthread_atfork(lock, unlock, unlock);
    STITCH_CHECK(error == 0, "pthread_atfork: error " << error);
    return new Registry;
  }();
  return *all;
}

}  // namespace

ForkMutex::ForkMutex() {
  std::lock_guard lock(registry().mutex);
  registry().mutexes.insert(this);
}

ForkMutex::~ForkMutex() {
  std::lock_guard lock(registry().mutex);
  registry().mutexes.erase(this);
}

}  // namespace stitch
