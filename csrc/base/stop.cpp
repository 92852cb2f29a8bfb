#include "base/stop.h"

#include <atomic>

namespace stitch {
namespace {

std::atomic<bool> g_is_stopping = false;

}  // namespace

void stop_work() { g_is_stopping = true; }

bool is_stopping() { return g_is_stopping; }

void check_stopping() {
  if (is_stopping()) throw StoppedError("the process ends");
}

}  // namespace stitch
