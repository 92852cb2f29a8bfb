#include "base/log.h"

#include <unistd.h>

#include <cstdio>
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
  thread_ = std::thread([this, text = std::move(text), delay] {
    std::unique_lock lock(mutex_);
    if (ended_.wait_for(lock, delay, [this] { return has_ended_; })) return;
    std::fprintf(stderr, "%s", text.c_str());
    ended_.wait(lock, [this] { return has_ended_; });
    std::fprintf(stderr, "\r\033[K");
  });
}

ProgressLine::~ProgressLine() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

}  // namespace stitch
