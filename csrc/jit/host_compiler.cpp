#include "jit/host_compiler.h"

#include <fstream>
#include <map>
#include <mutex>
#include <optional>

#include "base/files.h"
#include "base/fork_mutex.h"
#include "base/hash.h"
#include "base/words.h"

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

struct Probe {
  std::optional<HostCompiler> compiler;
  std::string failure;
};

// Predefined macros name every instruction set that `native` stands for, for gcc and clang alike.
Probe probe_compiler(const std::string& command) {
  CommandResult version = run_compiler(command, "--version", {}, kProbeLimit_s);
  if (!version.ok) return {std::nullopt, version.output};
  const std::string flags = std::string(kHostFlags) + " -x c++ -dM -E /dev/null";
  const CommandResult macros = run_compiler(command, flags, {}, kProbeLimit_s);
  if (!macros.ok) return {std::nullopt, macros.output};
  return {HostCompiler{version.output, sha256_hex(macros.output)}, ""};
}

// Answers are kept, failures too; another compiler in the same place needs a new process.
const Probe& probe_once(const std::string& command) {
  static auto& mutex = *new ForkMutex;
  static auto* probes = new std::map<std::string, Probe>;
  {
    std::lock_guard lock(mutex);
    const auto found = probes->find(command);
    if (found != probes->end()) return found->second;
  }
  // Threads that come at once may ask twice: a fork must not wait for a compiler.
  Probe probe = probe_compiler(command);
  std::lock_guard lock(mutex);
  return probes->try_emplace(command, std::move(probe)).first->second;
}

}  // namespace

const HostCompiler& find_host_compiler(const std::string& command) {
  const Probe& probe = probe_once(command);
  if (probe.compiler) return *probe.compiler;
  throw UnsupportedError("the C++ compiler '" + command + "' does not work: " + probe.failure +
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

}  // namespace stitch
