// A mutex that no forked child finds locked: fork() waits until nobody holds it.
//
// For short sections that guard what a child goes on to use.  Whoever holds one takes no other and
// does not fork.  Singletons that have one are made while the library is loaded: a child that is
// forked while another thread makes one would wait for it for ever.
#pragma once

#include <mutex>

namespace stitch {

class ForkMutex {
 public:
  ForkMutex();
  ~ForkMutex();
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

}  // namespace stitch
