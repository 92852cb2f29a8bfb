#include "base/log.h"

#include <cstdio>
#include <mutex>
#include <set>

namespace stitch {
namespace {

struct WarningState {
  std::mutex mutex;
  std::set<std::string> seen;
  WarningSink sink = [](const std::string& message) {
    std::fprintf(stderr, "torch_stitch: warning: %s\n", message.c_str());
  };
};

// Never destroyed: threads may still warn while the process exits.
WarningState& warning_state() {
  static auto* state = new WarningState;
  return *state;
}

}  // namespace

void set_warning_sink(WarningSink sink) {
  WarningState& state = warning_state();
  std::lock_guard lock(state.mutex);
  state.sink = std::move(sink);
}

bool warn_once(const std::string& key, const std::string& message) {
  WarningState& state = warning_state();
  WarningSink sink;
  {
    std::lock_guard lock(state.mutex);
    if (!state.seen.insert(key).second) return false;
    sink = state.sink;
  }
  if (sink) sink(message);
  return true;
}

}  // namespace stitch
