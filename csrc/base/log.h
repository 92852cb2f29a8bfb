// What the user hears while we work: warnings, each key once per process, through a sink that the
// bindings replace; and a line on the terminal while something takes long.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace stitch {

using WarningSink = std::function<void(const std::string& message)>;

// The default sink writes to stderr.  Sinks may be called from any thread, never under our locks.
void set_warning_sink(WarningSink sink);

// True if this call was the first with its key and so reached the sink.
bool warn_once(const std::string& key, const std::string& message);

// Shows the text on stderr from `delay` on, until the end of the scope; never if it is no terminal.
class ProgressLine {
 public:
  explicit ProgressLine(std::string text,
                        std::chrono::milliseconds delay = std::chrono::seconds(2));

 private:
  std::jthread thread_;  // not joinable: nothing to show
};

}  // namespace stitch
