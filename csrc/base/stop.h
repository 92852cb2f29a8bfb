// The end of the process: long work on other threads gives up at its next step, so that nothing
// runs while what it uses is taken down.
#pragma once

#include <atomic>

#include "base/error.h"

namespace stitch {

// The work is no longer wanted; nothing failed.
struct StoppedError : Error {
  using Error::Error;
};

// True for good once the process ends: there is no way back.
inline std::atomic<bool> is_stopping = false;

// StoppedError once the process ends.
inline void check_stopping() {
  if (is_stopping) throw StoppedError("the process ends");
}

}  // namespace stitch
