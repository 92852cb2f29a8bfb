// The end of the process: long work on other threads gives up at its next step, so that nothing
// runs while what it uses is taken down.
#pragma once

#include "base/error.h"

namespace stitch {

// The work is no longer wanted; nothing failed.
struct StoppedError : Error {
  using Error::Error;
};

// For good: there is no way back.
void stop_work();
bool is_stopping();
// StoppedError once the process ends.
void check_stopping();

}  // namespace stitch
