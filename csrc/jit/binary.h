// What compilers are given, and what they make of it.
#pragma once

#include <string>

namespace stitch {

// PTX is for the simulator: the same code as the cubin's, with the lines of the source.
enum class CudaOutput { kCubin, kPtx };

struct KernelText {
  std::string name;  // the exported symbol: an identifier
  std::string text;
};

struct Binary {
  std::string bytes = {};  // a cubin, PTX text, or a shared object; none: it did not compile
  std::string log = {};    // what the compiler said
  int registers = -1;      // per thread, of the largest entry; -1: not a GPU binary
  int spill_bytes = 0;     // stores plus loads
  int stack_bytes = 0;
  int shared_bytes = 0;   // static shared memory
  double compile_ms = 0;  // of the compile that made the bytes, also when read from the cache
  bool from_cache = false;
};

}  // namespace stitch
