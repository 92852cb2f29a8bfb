// The system's C++ compiler: one translation unit in, the bytes of a shared object out.
//
// The compiler is a command such as "g++" or "ccache g++" (settings.cxx).  It runs without a shell,
// in a private temporary directory.  IEEE semantics stay strict except that nobody reads the
// floating-point exception flags or errno.
#pragma once

#include <string>
#include <string_view>

#include "jit/compiler.h"

namespace stitch {

// What a host binary depends on besides its source.
struct HostCompiler {
  std::string version;   // what --version prints
  std::string features;  // hash of the macros that -march=native resolves to on this machine
};

// A threaded jump can leave a reduction of `omp simd` under a condition, where GCC 12 loads the
// lanes' partial results from beyond their array.  By itself GCC uses half of an AVX-512 register
// and prefetches nothing, which takes 1.2 to 1.6 times as long from memory [M, 2026-11].  The
// parameters let it prefetch in loops as short as rows of 2,048 (a latency is in instructions).
constexpr std::string_view kHostFlags =
    "-std=c++20 -O3 -march=native -fopenmp-simd -ffp-contract=off -fno-math-errno "
#ifdef __x86_64__
    "-mprefer-vector-width=512 "
#endif
    "-fno-thread-jumps -fno-trapping-math -shared -fPIC -Wl,--build-id=none "
    "-fprefetch-loop-arrays --param=prefetch-latency=300 --param=simultaneous-prefetches=64 "
    "--param=prefetch-min-insn-to-mem-ratio=0 --param=min-insn-to-prefetch-ratio=0";

// Asks it once per process and command; UnsupportedError, if there is none, says how to get one.
const HostCompiler& find_host_compiler(const std::string& command);
Binary run_host_compiler(const std::string& command, std::string_view source);

}  // namespace stitch
