#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/files.h"
#include "jit/host_compiler.h"

extern char** environ;

namespace stitch {
namespace {

// The C locale makes messages comparable between machines.
std::vector<std::string> child_environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable)
    if (std::strncmp(*variable, "LC_ALL=", 7) != 0) variables.push_back(*variable);
  variables.push_back("LC_ALL=C");
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Starts the program in a process group of its own, so that it can be killed with its children and
// an interrupt from the terminal does not look like a compiler failure.
int spawn(std::vector<std::string> words, int output_fd, pid_t& child) {
  std::vector<std::string> variables = child_environment();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output_fd, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGCHLD, SIGPIPE, SIGINT, SIGTERM}) sigaddset(&signals, signal);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  const int error = posix_spawnp(&child, words[0].c_str(), &actions, &attributes,
                                 pointers_to(words).data(), pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

// How often a program that runs is left for a look at whether it is still wanted.
constexpr int64_t kPoll_ms = 50;

// Collects output until the program closes it; false when the time is over or the process ends.
bool read_until_closed(int fd, int limit_s, std::string& output) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(limit_s);
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0 || is_stopping) return false;
    pollfd waited{fd, POLLIN, 0};
    const int ready = poll(&waited, 1, static_cast<int>(std::min(left.count(), kPoll_ms)));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    char buffer[4096];
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got == 0 || (got < 0 && errno != EINTR)) return got == 0;
    if (got > 0) output.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& words, int limit_s) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {false, std::string("no pipe: ") + std::strerror(errno)};
  Descriptor reading(ends[0]), writing(ends[1]);
  pid_t child = 0;
  const int error = spawn(words, writing.get(), child);
  writing = Descriptor();
  if (error != 0) return {false, "'" + words[0] + "' cannot be started: " + std::strerror(error)};
  CommandResult result;
  const bool is_in_time = read_until_closed(reading.get(), limit_s, result.output);
  if (!is_in_time) {
    kill(-child, SIGKILL);
    result.output += "\nkilled after " + std::to_string(limit_s) + " s";
  }
  int status = 0;
  const pid_t waited = TEMP_FAILURE_RETRY(waitpid(child, &status, 0));
  if (!is_in_time) check_stopping();
  // A host program that ignores SIGCHLD loses the status; the caller then judges by the output.
  const bool is_status_lost = waited < 0 && errno == ECHILD;
  result.ok = is_in_time && (is_status_lost || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
  return result;
}

}  // namespace stitch
