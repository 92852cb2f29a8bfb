#include "base/log.h"

#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <set>

#include "base/fork_mutex.h"

namespace stitch {
namespace {

struct WarningState {
  ForkMutex mutex;
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
[[maybe_unused]] const WarningState& kMadeAtLoad = warning_state();

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

ProgressLine::ProgressLine(std::string text, std::chrono::milliseconds delay) {
  if (!isatty(STDERR_FILENO)) return;
  thread_ = std::jthread([text = std::move(text), delay](std::stop_token end) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    const auto has_ended = [&] { return end.stop_requested(); };
    if (stopped.wait_for(lock, end, delay, has_ended)) return;
    std::fprintf(stderr, "%s", text.c_str());
    stopped.wait(lock, end, has_ended);
    std::fprintf(stderr, "\r\033[K");
  });
}

}  // namespace stitch
