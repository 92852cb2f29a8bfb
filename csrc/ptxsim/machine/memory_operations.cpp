#include "ptxsim/machine/memory_operations.h"

#include <cstring>

#include "ptxsim/machine/interpret.h"
#include "ptxsim/machine/traffic.h"

namespace stitch::ptxsim {
namespace {

using Bits128 = unsigned __int128;

template <class T>
T* host_pointer(uint64_t address) {
  return reinterpret_cast<T*>(static_cast<uintptr_t>(address));
}

// Moves the elements of the lanes in `mask`, which are at `host`, to or from the data registers.
using Move = void (*)(Warp& warp, const Instruction& instruction, uint32_t mask,
                      const LaneAddresses& host);

// Lanes two apart are compared: vectors of them lie where stores have just written vectors.
bool are_spaced(const LaneAddresses& host, uint64_t step) {
  uint64_t different = (host[1] - host[0]) ^ step;
  for (int lane = 2; lane < kLanes; ++lane) different |= (host[lane] - host[lane - 2]) ^ 2 * step;
  return different == 0;
}

// T: in memory, its sign telling how it is widened.  R: a lane of the register.
template <class T, class R, int kElements>
void load_rows(Warp& warp, const uint32_t* units, const unsigned char* from) {
  alignas(64) R sink[kLanes];
  R* to[kElements];
  for (int element = 0; element < kElements; ++element)
    to[element] = units[element] == kNoUnit ? sink : warp.lanes<R>(units[element]);
#pragma GCC ivdep
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int element = 0; element < kElements; ++element) {
      T value;
      std::memcpy(&value, from + (lane * kElements + element) * sizeof(T), sizeof(T));
      to[element][lane] = static_cast<R>(value);
    }
  }
}

template <class T, class R>
void load_lanes(Warp& warp, const Instruction& instruction, uint32_t mask,
                const LaneAddresses& host) {
  const int elements = instruction.vector;
  const uint32_t* units = instruction.operands.data();
  if (mask == kAllLanes && elements <= 4 && are_spaced(host, elements * sizeof(T))) {
    const unsigned char* from = host_pointer<unsigned char>(host[0]);
    if (elements == 1) return load_rows<T, R, 1>(warp, units, from);
    if (elements == 2) return load_rows<T, R, 2>(warp, units, from);
    return load_rows<T, R, 4>(warp, units, from);
  }
  const bool alike = mask == kAllLanes && are_spaced(host, 0);
  for (int element = 0; element < elements; ++element) {
    if (units[element] == kNoUnit) continue;
    R* to = warp.lanes<R>(units[element]);
    const auto value_of = [&](int lane) {
      T value;
      std::memcpy(&value, host_pointer<T>(host[lane]) + element, sizeof(T));
      return static_cast<R>(value);
    };
    if (alike) {
      const R value = value_of(0);
      for (int lane = 0; lane < kLanes; ++lane) to[lane] = value;
    } else {
      for (LaneSet lane(mask); lane; ++lane) to[*lane] = value_of(*lane);
    }
  }
}

template <class T, class R, int kElements>
void store_rows(Warp& warp, const uint32_t* units, unsigned char* to) {
  const R* from[kElements];
  for (int element = 0; element < kElements; ++element)
    from[element] = warp.lanes<R>(units[element]);
#pragma GCC ivdep
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int element = 0; element < kElements; ++element) {
      const T value = static_cast<T>(from[element][lane]);
      std::memcpy(to + (lane * kElements + element) * sizeof(T), &value, sizeof(T));
    }
  }
}

template <class T, class R>
void store_lanes(Warp& warp, const Instruction& instruction, uint32_t mask,
                 const LaneAddresses& host) {
  const int elements = instruction.vector;
  const uint32_t* units = instruction.operands.data() + 1;
  if (mask == kAllLanes && elements <= 4 && are_spaced(host, elements * sizeof(T))) {
    unsigned char* to = host_pointer<unsigned char>(host[0]);
    if (elements == 1) return store_rows<T, R, 1>(warp, units, to);
    if (elements == 2) return store_rows<T, R, 2>(warp, units, to);
    return store_rows<T, R, 4>(warp, units, to);
  }
  for (LaneSet lane(mask); lane; ++lane) {
    for (int element = 0; element < elements; ++element) {
      const T value = static_cast<T>(warp.lanes<R>(units[element])[*lane]);
      std::memcpy(host_pointer<T>(host[*lane]) + element, &value, sizeof(T));
    }
  }
}

template <bool kIsLoad, class T, class R>
Move move_between() {
  if constexpr (sizeof(T) > sizeof(R))
    return nullptr;
  else if constexpr (kIsLoad)
    return load_lanes<T, R>;
  else
    return store_lanes<T, R>;
}

template <bool kIsLoad, class T>
Move move_of(int register_bytes) {
  switch (register_bytes) {
    case 2:
      return move_between<kIsLoad, T, uint16_t>();
    case 4:
      return move_between<kIsLoad, T, uint32_t>();
    case 8:
      return move_between<kIsLoad, T, uint64_t>();
    default:
      return move_between<kIsLoad, T, Bits128>();
  }
}

template <bool kIsLoad>
Move find_move(Type type, int register_bytes) {
  switch (type) {
    case Type::s8:
      return move_of<kIsLoad, int8_t>(register_bytes);
    case Type::s16:
      return move_of<kIsLoad, int16_t>(register_bytes);
    case Type::s32:
      return move_of<kIsLoad, int32_t>(register_bytes);
    default:
      break;
  }
  switch (type_bytes(type)) {
    case 1:
      return move_of<kIsLoad, uint8_t>(register_bytes);
    case 2:
      return move_of<kIsLoad, uint16_t>(register_bytes);
    case 4:
      return move_of<kIsLoad, uint32_t>(register_bytes);
    case 8:
      return move_of<kIsLoad, uint64_t>(register_bytes);
    default:
      return move_of<kIsLoad, Bits128>(register_bytes);
  }
}

WarpAccess access_of(const Instruction& instruction, Access kind) {
  return {.kind = kind,
          .order = instruction.modifiers.order,
          .scope = instruction.modifiers.scope,
          .non_coherent = instruction.modifiers.non_coherent,
          .bytes = static_cast<uint32_t>(type_bytes(instruction.type)) * instruction.vector,
          .elements = instruction.vector};
}

void count_traffic(const Warp& warp, const Instruction& instruction, Space space, uint32_t lanes,
                   const LaneAddresses& addresses) {
  Traffic* traffic = warp.block->grid->traffic;
  if (!traffic || space != Space::global || instruction.modifiers.order != Order::weak) return;
  traffic->count(access_of(instruction, Access::load).bytes, lanes, addresses);
}

// Lanes of other spaces keep what they have: one generic access may meet several spaces.
void to_host(const Warp& warp, const Instruction& instruction, Space space, uint32_t lanes,
             LaneAddresses& addresses) {
  if (space == Space::global) return;
  const Origin origin = origin_of(warp, space);
  if (instruction.modifiers.space == Space::generic)
    for (LaneSet lane(lanes); lane; ++lane) addresses[*lane] += origin.at(*lane);
  else if (origin.stride == 0)
    for (uint64_t& address : addresses) address += origin.base;
  else
    for (int lane = 0; lane < kLanes; ++lane) addresses[lane] += origin.at(lane);
}

void run_load(Warp& warp, const Instruction& instruction, uint32_t mask, LaneAddresses& addresses) {
  const Move move = find_move<true>(instruction.type, instruction.register_bytes);
  const bool is_strong = instruction.modifiers.order != Order::weak;
  warp.observed |= is_strong;
  const Grid& grid = *warp.block->grid;
  for_each_space(instruction.modifiers.space, mask, addresses, [&](Space space, uint32_t lanes) {
    uint32_t allowed = lanes;
    if (grid.memory) {
      WarpAccess access = access_of(instruction, Access::load);
      access.space = space;
      access.mask = lanes;
      access.addresses = addresses.data();
      allowed = grid.memory->check(warp, instruction, access);
    }
    count_traffic(warp, instruction, space, allowed, addresses);
    to_host(warp, instruction, space, lanes, addresses);
    for (LaneSet lane(grid.old && is_strong ? allowed : 0); lane; ++lane)
      addresses[*lane] = grid.old->choose({&warp, &instruction, *lane}, addresses[*lane]);
    move(warp, instruction, allowed, addresses);
  });
  for (int i = 0; i < instruction.vector; ++i) set_known(warp, instruction.operands[i], mask);
}

void run_store(Warp& warp, const Instruction& instruction, uint32_t mask,
               LaneAddresses& addresses) {
  const Move move = find_move<false>(instruction.type, instruction.register_bytes);
  Grid& grid = *warp.block->grid;
  ++grid.progress;
  for_each_space(instruction.modifiers.space, mask, addresses, [&](Space space, uint32_t lanes) {
    uint32_t allowed = lanes;
    if (grid.memory) {
      WarpAccess access = access_of(instruction, Access::store);
      std::array<uint32_t, 8> known;
      for (int i = 0; i < instruction.vector; ++i)
        known[i] = warp.valid[instruction.operands[1 + i]];
      access.space = space;
      access.mask = lanes;
      access.addresses = addresses.data();
      allowed = grid.memory->check(warp, instruction, access, known.data());
    }
    count_traffic(warp, instruction, space, allowed, addresses);
    to_host(warp, instruction, space, lanes, addresses);
    if (grid.old && instruction.modifiers.order != Order::weak)
      for (LaneSet lane(allowed); lane; ++lane)
        grid.old->keep({&warp, &instruction, *lane}, addresses[*lane]);
    move(warp, instruction, allowed, addresses);
  });
}

// The bytes of a copy move.
void complete(Warp& warp, AsyncCopy& copy) {
  if (copy.done) return;
  unsigned char* to = warp.block->shared.data() + copy.destination;
  std::memcpy(to, host_pointer<unsigned char>(copy.source), copy.bytes);
  std::memset(to + copy.bytes, 0, copy.size - copy.bytes);
  copy.done = true;
}

void start_copies(Warp& warp, const Instruction& instruction, uint32_t mask,
                  LaneAddresses& destinations) {
  LaneAddresses sources;
  const uint64_t* registers = warp.lanes<uint64_t>(instruction.operands[1]);
  mask = require_known(warp, instruction, instruction.operands[1], mask, "address");
  for (int lane = 0; lane < kLanes; ++lane)
    sources[lane] = registers[lane] + static_cast<uint64_t>(instruction.source_offset);
  const uint32_t size = *warp.lanes<uint32_t>(instruction.operands[2]);
  std::array<uint32_t, kLanes> bytes;
  bytes.fill(size);
  if (instruction.operand_count > 3 && instruction.operands[3] != kNoUnit) {
    mask = require_known(warp, instruction, instruction.operands[3], mask, "size of a copy");
    const uint32_t* given = warp.lanes<uint32_t>(instruction.operands[3]);
    for (LaneSet lane(mask); lane; ++lane) bytes[*lane] = std::min(given[*lane], size);
  }
  // A generic address of shared memory is as good as its offset.
  for (uint64_t& destination : destinations) destination &= ~kWindowMask;
  Grid& grid = *warp.block->grid;
  if (grid.memory) {
    mask = grid.memory->start_copy(warp, instruction,
                                   {.mask = mask,
                                    .size = size,
                                    .destinations = destinations.data(),
                                    .sources = sources.data(),
                                    .bytes = bytes.data()});
  }
  for (LaneSet lane(mask); lane; ++lane) {
    warp.copies.push_back({.destination = destinations[*lane],
                           .source = sources[*lane],
                           .bytes = bytes[*lane],
                           .size = size,
                           .lane = *lane,
                           .group = -1,
                           .instruction = &instruction,
                           .done = false});
    ++warp.block->copies;
    if (next_random(grid) % 4 == 0) complete(warp, warp.copies.back());
  }
}

// Copies of lanes in `mask` that `is_waited_for` are complete, and can be relied on.
template <class Predicate>
void finish_copies(Warp& warp, uint32_t mask, Predicate is_waited_for) {
  const Grid& grid = *warp.block->grid;
  warp.block->copies -= static_cast<uint32_t>(std::erase_if(warp.copies, [&](AsyncCopy& copy) {
    if (!(mask >> copy.lane & 1) || !is_waited_for(copy)) return false;
    complete(warp, copy);
    if (grid.memory) grid.memory->finish_copy(warp, copy);
    return true;
  }));
}

void commit_copies(Warp& warp, uint32_t mask) {
  for (AsyncCopy& copy : warp.copies)
    if (mask >> copy.lane & 1 && copy.group < 0) copy.group = warp.copy_groups[copy.lane];
  for (LaneSet lane(mask); lane; ++lane) ++warp.copy_groups[*lane];
}

void wait_for_copies(Warp& warp, const Instruction& instruction, uint32_t mask) {
  const int pending = static_cast<int>(*warp.lanes<uint32_t>(instruction.operands[0]));
  finish_copies(warp, mask, [&](const AsyncCopy& copy) {
    return copy.group >= 0 && copy.group < warp.copy_groups[copy.lane] - pending;
  });
}

}  // namespace

void OldValues::keep(const Site& store, uint64_t at) {
  const Block& block = *store.warp->block;
  const uint32_t id = uint32_t(block.linear), now = block.grid->order->times(id).now;
  Store& kept = stores[at];
  // Nothing was there, or what another lane stores by this very instruction.
  const bool is_new = !kept.by || kept.moment.block != id ||
                      (kept.by == store.instruction && kept.moment.clock == now);
  kept = {store.instruction, {id, now, store.warp->index}, store.lane, is_new ? kAllLanes : 0};
  std::memcpy(kept.bytes, host_pointer<void>(at), type_bytes(store.instruction->type));
}

uint64_t OldValues::choose(const Site& load, uint64_t at) {
  const auto last = stores.find(at);
  if (last == stores.end()) return at;
  Store& store = last->second;
  const Grid& grid = *load.warp->block->grid;
  const Instruction& instruction = *load.instruction;
  const ThreadId by{load.warp->block->linear, load.warp->index, load.lane};
  const bool is_near = store.moment.block == by.block && store.moment.warp == by.warp;
  if (is_near && store.lane == by.lane) return at;
  const bool may = is_near && instruction.modifiers.order == Order::relaxed &&
                   instruction.type == store.by->type && instruction.vector == 1 &&
                   !(store.settled >> by.lane & 1) &&
                   !grid.order->known(store.moment, store.lane, by);
  store.settled |= may ? 1u << by.lane : kAllLanes;
  if (!may) return at;
  const std::string what = "may still read what was there before lane " +
                           std::to_string(store.lane) + " stored at " + line_name(*store.by) +
                           ", and the result differs: shuffles and votes order no memory";
  Reporter(*grid.kernel, found).report(FindingKind::race, load, what, store.by->line);
  return reinterpret_cast<uintptr_t>(store.bytes);
}

Origin origin_of(const Warp& warp, Space space) {
  const auto number = [](const unsigned char* pointer) {
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
  };
  const Grid& grid = *warp.block->grid;
  switch (space) {
    case Space::shared:
      return {.base = number(warp.block->shared.data())};
    case Space::local:
      return {.base = number(warp.local.data()), .stride = grid.kernel->local_bytes};
    case Space::const_:
      return {.base = number(grid.constants)};
    case Space::param:
      return {.base = number(grid.parameters)};
    default:
      return {};
  }
}

void read_addresses(Warp& warp, const Instruction& instruction, LaneAddresses& addresses) {
  const uint32_t unit =
      instruction.operands[instruction.flow == Flow::memory ? instruction.destinations : 0];
  const auto offset = static_cast<uint64_t>(instruction.immediate);
  if (instruction.address_bytes == 4) {
    const uint32_t* from = warp.lanes<uint32_t>(unit);
    for (int i = 0; i < kLanes; ++i) addresses[i] = from[i] + static_cast<uint32_t>(offset);
  } else {
    const uint64_t* from = warp.lanes<uint64_t>(unit);
    for (int i = 0; i < kLanes; ++i) addresses[i] = from[i] + offset;
  }
}

void run_memory(Warp& warp, const Instruction& instruction, uint32_t mask) {
  switch (instruction.opcode) {
    case Opcode::prefetch:
    case Opcode::prefetchu:
      return;
    case Opcode::cp_async_commit:
      return commit_copies(warp, mask);
    case Opcode::cp_async_wait:
      return wait_for_copies(warp, instruction, mask);
    case Opcode::cp_async_wait_all:
      return finish_copies(warp, mask, [](const AsyncCopy&) { return true; });
    default:
      break;
  }
  LaneAddresses addresses;
  const uint32_t unit = instruction.operands[instruction.destinations];
  mask = require_known(warp, instruction, unit, mask, "address");
  read_addresses(warp, instruction, addresses);
  switch (instruction.opcode) {
    case Opcode::ld:
    case Opcode::ldu:
      return run_load(warp, instruction, mask, addresses);
    case Opcode::st:
      return run_store(warp, instruction, mask, addresses);
    case Opcode::cp_async:
      return start_copies(warp, instruction, mask, addresses);
    default:
      break;
  }
  WarpAccess access = access_of(instruction, Access::atomic);
  for_each_space(instruction.modifiers.space, mask, addresses, [&](Space space, uint32_t lanes) {
    access.space = space;
    access.mask = lanes;
    access.addresses = addresses.data();
    run_atomic(warp, instruction, access);
  });
}

void progress_copies(Warp& warp) {
  for (AsyncCopy& copy : warp.copies)
    if (next_random(*warp.block->grid) % 8 == 0) complete(warp, copy);
}

void drop_copies(Warp& warp, uint32_t mask) {
  if (!warp.copies.empty()) finish_copies(warp, mask, [](const AsyncCopy&) { return true; });
}

}  // namespace stitch::ptxsim
