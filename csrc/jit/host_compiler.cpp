#include "jit/host_compiler.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/fork_mutex.h"
#include "base/hash.h"
#include "base/words.h"

extern char** environ;

namespace stitch {
namespace {

constexpr int kProbeLimit_s = 20, kCompileLimit_s = 300;

CommandResult run_compiler(const std::string& command, const std::string& flags,
                           const std::vector<std::string>& paths, int limit_s) {
  if (split_at_blanks(command).empty()) return {false, "the name of the compiler is empty"};
  std::vector<std::string> words = split_at_blanks(command + " " + flags);
  words.insert(words.end(), paths.begin(), paths.end());
  return run_command(words, limit_s);
}

// Predefined macros name every instruction set that `native` stands for, for gcc and clang alike.
HostCompiler probe_compiler(const std::string& command) {
  const CommandResult version = run_compiler(command, "--version", {}, kProbeLimit_s);
  if (!version.ok) return {.failure = version.output};
  const std::string flags = std::string(kHostFlags) + " -x c++ -dM -E /dev/null";
  const CommandResult macros = run_compiler(command, flags, {}, kProbeLimit_s);
  if (!macros.ok) return {.failure = macros.output};
  return {version.output, sha256_hex(macros.output)};
}

// Answers are kept, failures too; another compiler in the same place needs a new process.
const HostCompiler& probe_once(const std::string& command) {
  static auto& mutex = *new ForkMutex;
  static auto* probes = new std::map<std::string, HostCompiler>;
  {
    std::lock_guard lock(mutex);
    const auto found = probes->find(command);
    if (found != probes->end()) return found->second;
  }
  // Threads that come at once may ask twice: a fork must not wait for a compiler.
  HostCompiler compiler = probe_compiler(command);
  std::lock_guard lock(mutex);
  return probes->try_emplace(command, std::move(compiler)).first->second;
}

// dlopen takes a path it has seen for the object it has loaded, and numbers of closed descriptors
// come back: "./" and "/" in front of the number spell a serial number that changes nothing else.
std::string unique_descriptor_path(int fd, unsigned serial) {
  std::string path = "/proc/self/fd/";
  for (; serial; serial >>= 1) path += serial & 1 ? "./" : "/";
  return path + std::to_string(fd);
}

void* open_from_memory(std::string_view bytes, unsigned serial, std::string& why) {
  const Descriptor fd(memfd_create("stitch_kernels", MFD_CLOEXEC));
  if (!fd || !write_all(fd.get(), bytes)) {
    why = "no anonymous memory file";
    return nullptr;
  }
  void* handle = dlopen(unique_descriptor_path(fd.get(), serial).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) why = dlerror();
  return handle;
}

void* open_from_file(std::string_view bytes, std::string& why) {
  const WorkDirectory work;  // the mapping outlives its name
  if (work.path.empty()) {
    why += "; no temporary directory";
    return nullptr;
  }
  const std::string path = write_text_file(work.path, "kernels.so", bytes);
  void* handle = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) why += path.empty() ? "; cannot write " + work.path : std::string("; ") + dlerror();
  return handle;
}

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

const HostCompiler& find_host_compiler(const std::string& command) {
  const HostCompiler& compiler = probe_once(command);
  if (!compiler.failure) return compiler;
  throw UnsupportedError("the C++ compiler '" + command + "' does not work: " + *compiler.failure +
                         "; install g++ (apt install g++), or set CXX or TORCH_STITCH_CXX");
}

Binary run_host_compiler(const std::string& command, std::string_view source) {
  Binary binary;
  const WorkDirectory work;
  const std::string output = work.path + "/kernels.so";
  const std::string input =
      work.path.empty() ? "" : write_text_file(work.path, "kernels.cpp", source);
  if (input.empty()) {
    binary.log = "cannot write to the temporary directory '" + work.path + "'";
    return binary;
  }
  const CommandResult result = run_compiler(command, std::string(kHostFlags) + " -x c++",
                                            {input, "-o", output}, kCompileLimit_s);
  binary.log = result.output;
  std::ifstream made(output, std::ios::binary);
  if (result.ok) binary.bytes.assign(std::istreambuf_iterator<char>(made), {});
  return binary;
}

void* load_host_function(std::string_view bytes, const std::string& name) {
  static auto& mutex = *new ForkMutex;
  static auto* handles = new std::map<std::string, void*>;
  static unsigned serial = 0;
  std::lock_guard lock(mutex);
  void*& handle = (*handles)[sha256_hex(bytes)];
  std::string why;
  if (!handle) handle = open_from_memory(bytes, ++serial, why);
  if (!handle) handle = open_from_file(bytes, why);
  STITCH_CHECK(handle, "the compiled kernels cannot be loaded: " << why);
  void* address = dlsym(handle, name.c_str());
  STITCH_CHECK(address, "the compiled kernels do not export '" << name << "'");
  return address;
}

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
