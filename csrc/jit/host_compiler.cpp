#include "jit/host_compiler.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <fstream>
#include <map>
#include <mutex>

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

}  // namespace stitch
