// Warnings: each key is reported once per process, through a sink that the bindings replace.
#pragma once

#include <functional>
#include <string>

namespace stitch {

using WarningSink = std::function<void(const std::string& message)>;

// The default sink writes to stderr.  Sinks may be called from any thread, never under our locks.
void set_warning_sink(WarningSink sink);

// True if this call was the first with its key and so reached the sink.
bool warn_once(const std::string& key, const std::string& message);

}  // namespace stitch
