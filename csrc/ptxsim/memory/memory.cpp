#include "ptxsim/memory/memory.h"

#include <algorithm>
#include <bit>

#include "base/words.h"
#include "ptxsim/memory/memory_state.h"
#include "ptxsim/memory/views.h"

namespace stitch::ptxsim {

using Role = View::Role;

Memory::Memory(MemoryLayout layout, HappensBefore& order, Reporter& reporter)
    : state_(std::make_unique<State>(std::move(layout), order, reporter)) {
  state_->build_regions();
}
Memory::~Memory() = default;

void Memory::State::build_regions() {
  std::vector<const View*> sorted;
  for (const View& view : layout.views)
    if (view.bytes && view.role != Role::freed) sorted.push_back(&view);
  std::ranges::stable_sort(sorted, {}, &View::address);
  for (const View* view : sorted) {
    if (regions.empty() || view->address >= regions.back().end) {
      regions.push_back(
          {.begin = view->address, .end = view->address, .origin = 0, .views = {}, .shadow = {}});
    }
    Region& region = regions.back();
    region.end = std::max(region.end, view->address + view->bytes);
    region.views.push_back(view);
    region.is_written |= view->role != Role::input;
    region.is_initialised &= view->role == Role::input || view->role == Role::any;
  }
  for (Region& region : regions) {
    region.origin = region.begin & ~uint64_t{15};
    region.shadow.emplace(region.end - region.origin);
  }
}

void Memory::start_block(uint64_t block, uint64_t shared_bytes) {
  state_->order.start_block(block);
  state_->blocks.erase(block);
  state_->blocks.try_emplace(block, shared_bytes);
}

void Memory::end_block(uint64_t block) {
  if (state_->blocks.erase(block)) state_->order.end_block(block);
}

uint32_t Memory::check(Warp& warp, const Instruction& instruction, const WarpAccess& access,
                       const uint32_t* stored_valid) {
  if (!access.mask) return 0;
  const Pass pass{warp, instruction, access, stored_valid, false, is_consecutive(access)};
  switch (access.space) {
    case Space::shared:
      return state_->check_shared(pass);
    case Space::local:
      return state_->check_local(pass);
    case Space::const_:
    case Space::param:
      return state_->check_constant(pass);
    default:
      return state_->check_global(pass);
  }
}

Region* Memory::State::find_region(uint64_t address, const Instruction& instruction) {
  Region*& recent = recent_regions[reinterpret_cast<uintptr_t>(&instruction) / 64 % kRecent];
  if (recent && address >= recent->begin && address < recent->end) return recent;
  const auto after = std::ranges::upper_bound(regions, address, {}, &Region::begin);
  if (after == regions.begin() || address >= std::prev(after)->end) return nullptr;
  return recent = &*std::prev(after);
}

uint32_t Memory::State::in_bounds(const Pass& pass, const Region& region, uint32_t lanes) const {
  uint32_t inside = 0;
  for (const View* view : region.views) {
    if (view->bytes < pass.access.bytes) continue;
    const uint64_t most = view->bytes - pass.access.bytes;
    if (pass.is_consecutive && pass.access.addresses[0] - view->address <= most &&
        pass.access.addresses[kLanes - 1] - view->address <= most) {
      return lanes;
    }
    for (int lane = 0; lane < kLanes; ++lane)
      inside |= uint32_t(pass.access.addresses[lane] - view->address <= most) << lane;
  }
  return inside & lanes;
}

uint32_t Memory::State::keep_aligned(const Pass& pass, uint32_t lanes) {
  uint32_t aligned = 0;
  const uint64_t low = pass.access.bytes - 1;
  if (pass.is_consecutive && (pass.access.addresses[0] & low) == 0) return lanes;
  for (int lane = 0; lane < kLanes; ++lane)
    aligned |= uint32_t((pass.access.addresses[lane] & low) == 0) << lane;
  for (LaneSet set(lanes & ~aligned); set; ++set) {
    reporter.report(FindingKind::misaligned, pass.site(*set), [&] {
      const uint64_t address = pass.access.addresses[*set];
      const bool is_global = pass.access.space == Space::global;
      return concat(verb(pass.access), pass.access.bytes, " bytes at ",
                    is_global ? locate(layout.views, address) : concat("offset ", address),
                    ", whose address is ", address & low, " past a multiple of ",
                    pass.access.bytes);
    });
  }
  return lanes & aligned;
}

uint32_t Memory::State::keep_writable(const Pass& pass, const Region& region, uint32_t lanes) {
  uint32_t writable = 0;
  for (LaneSet set(lanes); set; ++set) {
    const uint64_t address = pass.access.addresses[*set];
    const bool may = std::any_of(region.views.begin(), region.views.end(), [&](const View* view) {
      return view->role != Role::input && address - view->address < view->bytes;
    });
    writable |= uint32_t(may) << *set;
    if (may) continue;
    reporter.report(FindingKind::read_only, pass.site(*set), [&] {
      return verb(pass.access) + locate(layout.views, address) + ", which is an input";
    });
  }
  return writable;
}

uint32_t Memory::State::check_global(const Pass& pass) {
  if (ledger.is_full()) make_room();
  uint32_t allowed = 0;
  for (uint32_t rest = pass.access.mask; rest;) {
    const int first = lowest_lane(rest);
    Region* region = find_region(pass.access.addresses[first], pass.instruction);
    uint32_t lanes = region ? in_bounds(pass, *region, rest) : 0;
    if (!(lanes >> first & 1)) {
      report_outside(pass, first);
      rest &= rest - 1;
      continue;
    }
    rest &= ~lanes;
    lanes = keep_aligned(pass, lanes);
    if (pass.writes() && (!region->is_written || region->views.size() > 1))
      lanes = keep_writable(pass, *region, lanes);
    allowed |= lanes;
    if (!region->is_written || !lanes) continue;
    Ground ground{*region->shadow,         ledger,           region->origin,
                  !region->is_initialised, region->views[0], nullptr};
    check_contents(pass, ground, lanes);
  }
  if (pass.access.order != Order::weak) make_edges(pass, allowed);
  return allowed;
}

BlockMemory& Memory::State::shared_of(uint64_t id) {
  BlockMemory& block = blocks.at(id);
  const uint32_t barrier = order.times(id).barrier;
  if (barrier != block.barrier) {  // nobody outside the block has touched it
    block.shadow.forget_accesses();
    block.ledger.clear();
    block.barrier = barrier;
  }
  return block;
}

uint32_t Memory::State::keep_within(const Pass& pass, uint64_t bytes, const char* space) {
  if (pass.is_consecutive && pass.access.addresses[kLanes - 1] < bytes &&
      bytes - pass.access.addresses[kLanes - 1] >= pass.access.bytes) {
    return keep_aligned(pass, kAllLanes);
  }
  uint32_t inside = 0;
  for (LaneSet set(pass.access.mask); set; ++set) {
    const uint64_t offset = pass.access.addresses[*set];
    if (bytes >= pass.access.bytes && offset <= bytes - pass.access.bytes) {
      inside |= 1u << *set;
      continue;
    }
    reporter.report(FindingKind::out_of_bounds, pass.site(*set), [&] {
      return concat(verb(pass.access), pass.access.bytes, " bytes at ", space, "[+", offset,
                    "], of which there are ", bytes, " bytes");
    });
  }
  return keep_aligned(pass, inside);
}

uint32_t Memory::State::check_shared(const Pass& pass) {
  BlockMemory& block = shared_of(pass.warp.block->linear);
  const uint32_t allowed = keep_within(pass, block.bytes, "shared");
  if (!allowed) return 0;
  Ground ground{block.shadow, block.ledger, 0, true, nullptr, &block};
  check_contents(pass, ground, allowed);
  if (pass.access.order != Order::weak) make_edges(pass, allowed);
  return allowed;
}

uint32_t Memory::State::check_constant(const Pass& pass) {
  const bool is_constant = pass.access.space == Space::const_;
  const char* space = is_constant ? ".const" : ".param";
  if (pass.writes()) {
    reporter.report(FindingKind::read_only, pass.site(lowest_lane(pass.access.mask)),
                    std::string(verb(pass.access)) + space + " memory");
    return 0;
  }
  return keep_within(pass, is_constant ? layout.constant_bytes : layout.parameter_bytes, space);
}

uint32_t Memory::State::check_local(const Pass& pass) {
  const size_t stride = pass.warp.local.size() / kLanes;
  const uint32_t allowed = keep_within(pass, stride, "local");
  if (pass.warp.local_valid.empty()) return allowed;
  for (LaneSet set(allowed); set; ++set) check_local_bytes(pass, *set, stride);
  return allowed;
}

void Memory::State::check_local_bytes(const Pass& pass, int lane, size_t stride) {
  const uint64_t offset = pass.access.addresses[lane];
  const auto bytes = pass.warp.local_valid.begin() + ptrdiff_t(size_t(lane) * stride + offset);
  const uint32_t size = pass.access.bytes / pass.access.elements;
  for (uint32_t i = 0; i < pass.access.elements; ++i) {
    const auto begin = bytes + ptrdiff_t(i * size), end = begin + ptrdiff_t(size);
    if (pass.reads() && std::find(begin, end, 0) != end) {
      reporter.report(FindingKind::uninitialized, pass.site(lane), [&] {
        return concat("reads local[+", offset + i * size, "], which nothing has written");
      });
    }
    if (!pass.writes()) continue;
    const bool is_valid = !pass.stored_valid || (pass.stored_valid[i] >> lane & 1);
    std::fill(begin, end, static_cast<unsigned char>(is_valid));
  }
}

}  // namespace stitch::ptxsim
