// The system's C++ compiler: one translation unit in, a shared object's bytes and exports out.
//
// The compiler is a command such as "g++" or "ccache g++" (settings.cxx).  It runs without a shell,
// in a private temporary directory.  IEEE semantics stay strict except that nobody reads the
// floating-point exception flags or errno.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "jit/binary.h"

namespace stitch {

// What a host binary depends on besides its source.
struct HostCompiler {
  std::string version = {};   // what --version prints
  std::string features = {};  // hash of the macros that -march=native resolves to on this machine
  std::optional<std::string> failure = {};  // what it said in place of these; nothing: it works
};

// A threaded jump can leave a reduction of `omp simd` under a condition, where GCC 12 loads the
// lanes' partial results from beyond their array.  By itself GCC uses half of an AVX-512 register.
// It prefetches nothing, and is left to that: on Zen 4 loops with prefetches took 1.0 to 1.2 times
// as long, sums of rows and softmax most, since they fetch again what is in a cache [M, 2026-11].
constexpr std::string_view kHostFlags =
    "-std=c++20 -O3 -march=native -fopenmp-simd -ffp-contract=off -fno-math-errno "
#ifdef __x86_64__
    "-mprefer-vector-width=512 "
#endif
    "-fno-thread-jumps -fno-trapping-math -shared -fPIC -Wl,--build-id=none";

// Asks it once per process and command; UnsupportedError, if there is none, says how to get one.
const HostCompiler& find_host_compiler(const std::string& command);
Binary run_host_compiler(const std::string& command, std::string_view source);

// The address of what the object exports under this name, InternalError if there is none.  Equal
// bytes are loaded once and stay so until the process ends: addresses never dangle.
//
// Goes through anonymous memory, so a cache directory mounted without execute permission does not
// matter; where the system forbids that, through a file in a private temporary directory.
// InternalError with the loader's words if both fail.
void* load_host_function(std::string_view bytes, const std::string& name);

struct CommandResult {
  bool ok = false;     // started, finished in time, exit status 0
  std::string output;  // stdout and stderr together, or why it could not be started
};

// Runs a program without a shell.  words[0] is looked up in PATH.  After `limit_s` seconds the
// program and its children are killed; also when the process ends, which is a StoppedError.
CommandResult run_command(const std::vector<std::string>& words, int limit_s);

}  // namespace stitch
