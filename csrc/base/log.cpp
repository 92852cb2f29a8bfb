#include "base/log.h"

#include <unistd.h>

#include <condition_variable>
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
WarningState& g_warnings = *new WarningState;

}  // namespace

void set_warning_sink(WarningSink sink) {
  std::lock_guard lock(g_warnings.mutex);
  g_warnings.sink = std::move(sink);
}

bool warn_once(const std::string& key, const std::string& message) {
  WarningSink sink;
  {
    std::lock_guard lock(g_warnings.mutex);
    if (!g_warnings.seen.insert(key).second) return false;
    sink = g_warnings.sink;
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
