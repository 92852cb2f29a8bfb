// Warps, instructions and views made by hand, for the tests of memory and races.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ptxsim/memory/memory.h"

namespace stitch::ptxsim {

using Addresses = std::array<uint64_t, kLanes>;

// Lane l: base + l * step.
inline Addresses stepped(uint64_t base, uint64_t step = 4) {
  Addresses addresses;
  for (int lane = 0; lane < kLanes; ++lane) addresses[lane] = base + uint64_t(lane) * step;
  return addresses;
}

// A launch of some blocks over views that the test adds.
class Launched {
 public:
  explicit Launched(std::vector<View> views, int blocks = 2, int threads = 128,
                    uint64_t shared_bytes = 4096)
      : blocks_(size_t(blocks)), order(threads), shared_bytes_(shared_bytes) {
    kernel.name = "k";
    layout.views = std::move(views);
    layout.constant_bytes = 64;
    layout.parameter_bytes = 32;
    layout.grid = {uint32_t(blocks), 1, 1};
    layout.block = {uint32_t(threads), 1, 1};
    memory = std::make_unique<Memory>(layout, order, reporter);
    for (int i = 0; i < blocks; ++i) start(i, threads);
  }

  Warp& warp(int block, int index) { return blocks_[size_t(block)].warps[size_t(index)]; }

  // One access at PTX line `line`; kinds and orders beyond the common ones go through `access`.
  uint32_t run(Warp& warp, int line, WarpAccess access, const Addresses& addresses,
               const uint32_t* stored_valid = nullptr) {
    if (!access.mask) access.mask = kAllLanes;
    access.addresses = addresses.data();
    return memory->check(warp, at(line), access, stored_valid);
  }
  uint32_t load(Warp& warp, int line, const Addresses& addresses, uint32_t mask = kAllLanes) {
    return run(warp, line, {.kind = Access::load, .mask = mask}, addresses);
  }
  uint32_t store(Warp& warp, int line, const Addresses& addresses, uint32_t mask = kAllLanes) {
    return run(warp, line, {.kind = Access::store, .mask = mask}, addresses);
  }
  uint32_t load_shared(Warp& warp, int line, const Addresses& at, uint32_t mask = kAllLanes) {
    return run(warp, line, {.kind = Access::load, .space = Space::shared, .mask = mask}, at);
  }
  uint32_t store_shared(Warp& warp, int line, const Addresses& at, uint32_t mask = kAllLanes) {
    return run(warp, line, {.kind = Access::store, .space = Space::shared, .mask = mask}, at);
  }
  // Of lane 0 alone, strong.
  void strong(Warp& warp, int line, Access kind, uint64_t address, Order order_of_it,
              Scope scope = Scope::gpu) {
    run(warp, line, {.kind = kind, .order = order_of_it, .scope = scope, .mask = 1},
        stepped(address));
  }
  void fence(int block, int warp, uint32_t mask, Scope scope = Scope::gpu,
             Order order_of_it = Order::sc) {
    order.fence(uint64_t(block), warp, mask, scope, order_of_it);
  }

  Instruction& at(int line) {
    auto& instruction = code_[size_t(line)];
    if (!instruction) instruction = std::make_unique<Instruction>();
    instruction->line = line;
    instruction->source_line = line + 100;
    return *instruction;
  }

  int count(FindingKind kind) const {
    int total = 0;
    for (const Finding& finding : findings.all) total += finding.kind == kind;
    return total;
  }
  std::string text() const {
    std::string all;
    for (const Finding& finding : findings.all) all += finding.message + "\n";
    return all;
  }
  void expect_none() const { EXPECT_TRUE(findings.all.empty()) << text(); }
  // Exactly one finding, of this kind, whose message has these words.
  void expect_one(FindingKind kind, const std::string& words = "") const {
    ASSERT_EQ(findings.all.size(), 1u) << text();
    EXPECT_STREQ(kind_name(findings.all[0].kind), kind_name(kind)) << text();
    EXPECT_NE(findings.all[0].message.find(words), std::string::npos) << text();
  }

 private:
  void start(int index, int threads) {
    Block& block = blocks_[size_t(index)];
    block.index = {uint32_t(index), 0, 0};
    block.linear = uint64_t(index);
    block.threads = {uint32_t(threads), 1, 1};
    block.warps.resize(size_t(threads + kLanes - 1) / kLanes);
    for (size_t i = 0; i < block.warps.size(); ++i) {
      block.warps[i].block = &block;
      block.warps[i].index = int(i);
    }
    memory->start_block(block.linear, shared_bytes_);
  }

  std::vector<Block> blocks_;
  std::array<std::unique_ptr<Instruction>, 100> code_;

 public:
  Function kernel;
  Findings findings;
  MemoryLayout layout;
  HappensBefore order;
  Reporter reporter{kernel, findings};
  std::unique_ptr<Memory> memory;

 private:
  uint64_t shared_bytes_;
};

constexpr uint64_t kBase = 0x7f0000001000;

inline View view_of(View::Role role, uint64_t elements = 4096, uint64_t address = kBase) {
  return {.name = "arg 2",
          .address = address,
          .bytes = elements * 4,
          .element_bytes = 4,
          .role = role,
          .type = "float32"};
}

}  // namespace stitch::ptxsim
