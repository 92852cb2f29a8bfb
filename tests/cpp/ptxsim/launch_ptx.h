// Runs hand-written PTX on buffers, for tests.
//
// A kernel "k" takes pointers to its buffers, .u64 each.  Its body finds in %d1, %d2, ... their
// global addresses, in %r1 %tid.x, in %r2 %ctaid.x, in %r3 the thread's number in the grid, in %d10
// that times 4.  Free registers: %p0-31, %h0-63 (b16), %r4-95, %d11-63, %f0-63, %g0-31 (f64).
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ptxsim/machine/simulate.h"

namespace stitch::ptxsim {

struct Buffer {
  std::vector<uint64_t> words;  // aligned
  uint64_t bytes = 0;
  uint32_t element_bytes = 4;
  View::Role role = View::Role::any;

  template <class T>
  T* as() {
    return reinterpret_cast<T*>(words.data());
  }
};

template <class T>
Buffer buffer(size_t count, View::Role role = View::Role::any, T value = T{}) {
  Buffer made{std::vector<uint64_t>(count * sizeof(T) / 8 + 2), count * sizeof(T), sizeof(T), role};
  for (size_t i = 0; i < count; ++i) std::memcpy(made.as<T>() + i, &value, sizeof(T));
  return made;
}

template <class T>
Buffer buffer_of(const std::vector<T>& values, View::Role role = View::Role::input) {
  Buffer made = buffer<T>(values.size(), role);
  if (!values.empty()) std::memcpy(made.as<T>(), values.data(), values.size() * sizeof(T));
  return made;
}

struct PtxLaunch {
  std::string body;
  std::vector<Buffer*> buffers = {};
  uint32_t grid = 1;
  uint32_t block = 32;
  std::string globals = {};     // text before the kernel: variables and functions
  std::string directives = {};  // .maxntid and the like
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  SimulationOptions options = {};
  Machine machine = {};
};

inline std::string ptx_text(const PtxLaunch& launch) {
  std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n" + launch.globals + "\n.visible .entry k(";
  std::string loads;
  for (size_t i = 1; i <= launch.buffers.size(); ++i) {
    const std::string n = std::to_string(i);
    text += (i > 1 ? ", " : "") + (".param .u64 q" + n);
    loads +=
        "ld.param.u64 %d" + n + ", [q" + n + "]; cvta.to.global.u64 %d" + n + ", %d" + n + ";\n";
  }
  return text + ")\n" + launch.directives +
         "\n{\n.reg .pred %p<32>; .reg .b16 %h<64>; .reg .b32 %r<96>; .reg .b64 %d<64>;"
         " .reg .f32 %f<64>; .reg .f64 %g<32>;\n" +
         loads +
         "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;"
         " mad.lo.u32 %r3, %r2, %r3, %r1; mul.wide.u32 %d10, %r3, 4;\n" +
         launch.body + "\nret;\n}\n";
}

inline Launch make_launch(const PtxLaunch& ptx, LoadedModule& module) {
  Launch launch;
  launch.module = &module;
  launch.kernel = module.module->find_entry("k");
  launch.grid = {ptx.grid, 1, 1};
  launch.block = {ptx.block, 1, 1};
  launch.dynamic_shared_bytes = ptx.dynamic_shared_bytes;
  launch.cooperative = ptx.cooperative;
  for (size_t i = 0; i < ptx.buffers.size(); ++i) {
    const auto address =
        static_cast<uint64_t>(reinterpret_cast<uintptr_t>(ptx.buffers[i]->words.data()));
    launch.parameters.append(reinterpret_cast<const char*>(&address), sizeof(address));
    launch.views.push_back({.name = "arg " + std::to_string(i),
                            .address = address,
                            .bytes = ptx.buffers[i]->bytes,
                            .element_bytes = ptx.buffers[i]->element_bytes,
                            .role = ptx.buffers[i]->role});
  }
  return launch;
}

// The rows and types that some test has run; rows_run_test.cpp wants all of them.
inline std::set<std::pair<Opcode, Type>>& rows_run() {
  static std::set<std::pair<Opcode, Type>> rows;
  return rows;
}

inline SimulationResult run_ptx(const PtxLaunch& ptx) {
  LoadedModule module = instantiate(load_module(ptx_text(ptx)));
  for (const Instruction& instruction : module.module->code) {
    rows_run().emplace(instruction.opcode, instruction.type);
  }
  return simulate(make_launch(ptx, module), ptx.machine, ptx.options);
}

inline std::string all_findings(const SimulationResult& result) {
  std::string text;
  for (const Finding& finding : result.findings.all) {
    text += std::string(kind_name(finding.kind)) + ": " + finding.message + "\n";
  }
  return text;
}

// Runs with checks under five orders and expects no finding, then without checks.
inline void expect_clean(PtxLaunch ptx) {
  const SimulationResult checked = run_ptx(ptx);
  EXPECT_TRUE(checked.findings.all.empty()) << all_findings(checked);
  EXPECT_GT(checked.lane_instructions, 0u);
}

// Expects findings, all of this kind, the first of which says `words`.
inline void expect_finding(const PtxLaunch& ptx, FindingKind kind, const std::string& words) {
  const SimulationResult result = run_ptx(ptx);
  ASSERT_FALSE(result.findings.all.empty()) << "expected " << kind_name(kind);
  for (const Finding& finding : result.findings.all) {
    EXPECT_EQ(kind_name(finding.kind), std::string(kind_name(kind))) << finding.message;
  }
  EXPECT_NE(result.findings.all[0].message.find(words), std::string::npos)
      << result.findings.all[0].message;
}

constexpr View::Role kInput = View::Role::input;
constexpr View::Role kOutput = View::Role::output;
constexpr View::Role kAny = View::Role::any;
constexpr View::Role kScratch = View::Role::scratch;

}  // namespace stitch::ptxsim
