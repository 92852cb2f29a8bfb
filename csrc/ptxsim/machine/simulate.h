// simulate: one launch of one kernel, on CPU memory, under several orders of its warps.
//
// Each order starts from the same contents of the views; what it leaves is compared with what the
// first order left, which also is what stays.  An order that finds a defect that forbids going on
// (deadlock, budget, residency) ends the launch; the rest go on and collect.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ptxsim/isa/module.h"
#include "ptxsim/machine/traffic.h"
#include "ptxsim/memory/finding.h"
#include "ptxsim/memory/memory.h"

namespace stitch::ptxsim {

// A module with storage for its .global variables, as cuModuleLoadData makes it.
struct LoadedModule {
  std::shared_ptr<const Module> module;
  std::vector<unsigned char> globals;
};
LoadedModule instantiate(std::shared_ptr<const Module> module);

struct Launch {
  LoadedModule* module = nullptr;
  const Function* kernel = nullptr;
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  std::string parameters;  // bytes, laid out as Function::parameters says
  std::vector<View> views;
};

// Limits of the device that plays; rows of DeviceSpec give them.
struct Machine {
  std::string name = "h200";
  int multiprocessors = 132;
  int threads_per_multiprocessor = 2048;
  int blocks_per_multiprocessor = 32;
  int registers_per_multiprocessor = 65536;
  uint32_t shared_bytes_per_multiprocessor = 228 << 10;
  uint32_t shared_bytes_per_block = 227 << 10;
};

enum class WarpOrder : uint8_t { in_order, reversed, random, one_ahead, one_behind };

struct SimulationOptions {
  bool checks = true;
  int orders = 5;  // the first so many of WarpOrder, then random ones by further seeds
  uint64_t seed = 0;
  bool deterministic = true;            // different bits under different orders are a finding
  bool noise = false;                   // approximate instructions err at random within their bound
  uint64_t budget = uint64_t{1} << 36;  // lane-instructions of one order
  int registers = 0;                    // per thread, from ptxas; 0: estimated
};

struct SimulationResult {
  Findings findings;
  uint64_t lane_instructions = 0;
  Traffic traffic;     // of the first order
  double seconds = 0;  // of run_kernel, the text's reading included
};

// Blocks of the kernel that are resident at once on one multiprocessor; 0: it cannot run.
int resident_blocks(const Launch& launch, const Machine& machine, int registers);

// UserError: a grid, block, shared size or parameter size that the machine or kernel does not take.
SimulationResult simulate(const Launch& launch, const Machine& machine,
                          const SimulationOptions& options);

}  // namespace stitch::ptxsim
