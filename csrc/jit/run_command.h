// Runs a program without a shell and returns what it printed.
#pragma once

#include <string>
#include <vector>

namespace stitch {

struct CommandResult {
  bool ok = false;     // started, finished in time, exit status 0
  std::string output;  // stdout and stderr together, or why it could not be started
};

// words[0] is looked up in PATH.  After `limit_s` seconds the program and its children are killed;
// also when the process ends, which is a StoppedError.
CommandResult run_command(const std::vector<std::string>& words, int limit_s);

}  // namespace stitch
