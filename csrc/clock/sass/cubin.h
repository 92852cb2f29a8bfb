// Cubin: what an ELF file of NVIDIA's says about its kernels.
//
// Comes in: the bytes that NVRTC, ptxas or Triton made.  Goes out: code, registers, shared and
// local bytes and parameters of each kernel.  Holds: every offset was checked against the bytes;
// what is damaged is a UserError that names the place.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stitch::clock {

struct KernelParameter {
  uint32_t offset = 0;  // in the parameters
  uint32_t bytes = 0;
};

struct CubinKernel {
  std::string name;
  std::string code;  // 16 bytes an instruction
  int registers = 0;
  int64_t shared_bytes = 0;                         // static
  int64_t local_bytes = 0;                          // a thread's stack frame
  uint32_t parameters_at = 0;                       // in constant bank 0
  std::array<uint32_t, 3> max_threads = {0, 0, 0};  // 0: not given
  std::vector<KernelParameter> parameters;          // in the order of the source
};

struct Cubin {
  int architecture = 0;  // 90
  bool is_debug = false;
  std::vector<CubinKernel> kernels;
};

// UserError: not a cubin, damaged, or of an architecture before 80.
Cubin read_cubin(std::string_view bytes);

// By its name, or that of the source.  UserError naming the kernels that are there.  An empty name
// stands for the only one.
const CubinKernel& find_kernel(const Cubin& cubin, const std::string& name);

}  // namespace stitch::clock
