#include "ptxsim/machine/blocks.h"

#include <algorithm>

#include "ptxsim/memory/memory.h"

namespace stitch::ptxsim {
namespace {

// All lanes alike.
void fill_unit(Warp& warp, uint32_t unit, Type type, uint64_t bits) {
  const auto fill = [&](auto value) {
    std::fill_n(warp.lanes<decltype(value)>(unit), kLanes, value);
  };
  if (type == Type::pred)
    warp.predicate(unit) = bits ? kAllLanes : 0;
  else if (type_bytes(type) <= 2)
    fill(static_cast<uint16_t>(bits));
  else if (type_bytes(type) == 4)
    fill(static_cast<uint32_t>(bits));
  else if (type_bytes(type) == 8)
    fill(bits);
  else
    fill(static_cast<unsigned __int128>(bits));
}

bool differs_by_block(Special special) {
  return (special >= Special::ctaid_x && special <= Special::ctaid_z) || special == Special::smid;
}

uint64_t special_value(Special special, const Warp& warp, const Launch& launch, uint32_t lane,
                       int multiprocessors) {
  const uint32_t bit = 1u << lane;
  const Block& block = *warp.block;
  const size_t number = static_cast<size_t>(special), dim = number % 3;
  switch (special <= Special::nctaid_z ? static_cast<Special>(number - dim) : special) {
    case Special::tid_x:
      return unravel(static_cast<uint64_t>(warp.index) * kLanes + lane, launch.block)[dim];
    case Special::ntid_x:
      return launch.block[dim];
    case Special::ctaid_x:
      return block.index[dim];
    case Special::nctaid_x:
      return launch.grid[dim];
    case Special::laneid:
      return lane;
    case Special::warpid:
      return static_cast<uint64_t>(warp.index);
    case Special::nwarpid:
      return block.warps.size();
    case Special::smid:
      return block.linear % static_cast<uint64_t>(multiprocessors);
    case Special::nsmid:
      return static_cast<uint64_t>(multiprocessors);
    case Special::lanemask_eq:
      return bit;
    case Special::lanemask_le:
      return bit | (bit - 1);
    case Special::lanemask_lt:
      return bit - 1;
    case Special::lanemask_ge:
      return ~(bit - 1);
    case Special::lanemask_gt:
      return ~(bit | (bit - 1));
    case Special::dynamic_smem_size:
      return launch.dynamic_shared_bytes;
    case Special::total_smem_size:
      return block.shared.size();
    default:
      return 0;
  }
}

// Those that differ by block are alike in all lanes.
void fill_specials(Warp& warp, const Launch& launch, int multiprocessors, bool by_block) {
  for (const SpecialUnit& special : launch.kernel->specials) {
    if (differs_by_block(special.special) != by_block) continue;
    const auto value_of = [&](uint32_t lane) {
      return special_value(special.special, warp, launch, lane, multiprocessors);
    };
    fill_unit(warp, special.unit, special.type, value_of(0));
    if (by_block) continue;
    for (int lane = 0; lane < kLanes; ++lane)
      warp.set_bits(special.unit, lane, type_bytes(special.type), value_of(lane));
  }
}

void start_warp(Warp& warp, const Function& kernel) {
  warp.live = warp.lanes_mask;
  warp.observed = false;
  warp.splits.assign(1, {.pc = kernel.first, .mask = warp.live});
  warp.copies.clear();
  warp.copy_groups.fill(0);
  if (!warp.valid) return;
  std::fill_n(warp.valid, kernel.units, 0u);
  for (const Constant& constant : kernel.constants) warp.valid[constant.unit] = kAllLanes;
  for (const SpecialUnit& special : kernel.specials) warp.valid[special.unit] = kAllLanes;
  std::fill(warp.local_valid.begin(), warp.local_valid.end(), 0);
}

}  // namespace

void poison(unsigned char* bytes, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(kPoison >> i % 4 * 8);
}

std::unique_ptr<Place> make_place(Grid& grid, const Launch& launch, int multiprocessors) {
  const Function& kernel = *launch.kernel;
  const uint32_t threads = static_cast<uint32_t>(volume(launch.block));
  const uint64_t globals = reinterpret_cast<uintptr_t>(launch.module->globals.data());
  const uint32_t warps = (threads + kLanes - 1) / kLanes;
  auto place = std::make_unique<Place>();
  Block& block = place->block;
  block.grid = &grid;
  block.threads = launch.block;
  block.shared.resize(kernel.shared_bytes + launch.dynamic_shared_bytes);
  block.warps.resize(warps);
  place->registers.resize(size_t{kernel.units} * warps);
  if (grid.memory) place->valid.resize(size_t{kernel.units} * warps);
  for (uint32_t i = 0; i < warps; ++i) {
    Warp& warp = block.warps[i];
    const uint32_t lanes = std::min<uint32_t>(threads - i * kLanes, kLanes);
    warp.block = &block;
    warp.index = static_cast<int>(i);
    warp.lanes_mask = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
    warp.splits.reserve(kLanes + 1);
    RegisterUnit* const units = place->registers.data() + size_t{kernel.units} * i;
    warp.registers = reinterpret_cast<unsigned char*>(units);  // a kernel may have none
    warp.local.resize(kernel.local_bytes * kLanes);
    if (grid.memory) {
      warp.valid = place->valid.data() + size_t{kernel.units} * i;
      warp.local_valid.resize(warp.local.size());
    }
    for (const Constant& constant : kernel.constants) {
      const uint64_t base = constant.is_global_address ? globals : 0;
      fill_unit(warp, constant.unit, constant.type, base + constant.bits);
    }
    fill_specials(warp, launch, multiprocessors, false);
  }
  return place;
}

void start_block(Place& place, uint64_t linear, const Launch& launch, int multiprocessors) {
  Block& block = place.block;
  Grid& grid = *block.grid;
  block.linear = linear;
  block.index = unravel(linear, launch.grid);
  block.barriers.fill({});
  block.copies = 0;
  block.sleeping = 0;
  const size_t warps = block.warps.size();
  block.ready = warps == kMostWarps ? kAllLanes : (1u << warps) - 1;
  place.ahead = 1u << next_random(grid) % warps;
  for (Warp& warp : block.warps) {
    start_warp(warp, *launch.kernel);
    fill_specials(warp, launch, multiprocessors, true);
  }
  ++grid.progress;
  if (!grid.memory) return;
  poison(block.shared.data(), block.shared.size());
  grid.memory->start_block(linear, block.shared.size());
}

}  // namespace stitch::ptxsim
