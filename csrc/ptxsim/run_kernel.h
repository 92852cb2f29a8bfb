// run_kernel: one launch of one kernel of a PTX text on values that a user gives.
//
// Numbers are converted by the kernel's parameter types, tensors are pointers with their bounds.
// UserError says which argument does not fit and what would.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "clock/time_kernel.h"
#include "ptxsim/machine/simulate.h"

namespace stitch::ptxsim {

// Integers are kept by their 64 bits: a negative one is any type's two's complement.
struct Integer {
  uint64_t bits;
  bool is_negative;
};
struct Bytes {
  std::string bytes;  // of a parameter that is a struct
};
using KernelValue = std::variant<View, Integer, double, Bytes>;  // a View's name and role are ours

struct KernelRun {
  std::string ptx;
  std::string cubin;   // of the CUDA text behind it: what the clock reads; empty: it is not asked
  std::string kernel;  // as in the text, or as C++ calls it: "scale" for _Z5scalePfi
  std::array<int64_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  std::vector<KernelValue> arguments;
  std::vector<int64_t> inputs, outputs;  // positions in `arguments`, of tensors
  int64_t shared_bytes = 0;              // dynamic
  bool cooperative = false;
  Machine machine;
  SimulationOptions options;
};

struct KernelResult : SimulationResult {
  std::optional<clock::ClockResult> clock;  // of the launch on the memory that it was given
};

KernelResult run_kernel(const KernelRun& run);

std::string to_string(const KernelResult& result);
std::string print_json(const KernelResult& result);

// PTX begins with .version, after comments.
bool is_ptx(std::string_view source);

}  // namespace stitch::ptxsim
