#include "ptxsim/machine/memory_operations.h"

#include <cstring>

#include "base/words.h"
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

// Where the lanes' elements do not lie side by side.  T: in memory, its sign telling how it is
// widened.  R: a lane of the register.
template <class T, class R>
void load_lanes(Warp& warp, const Instruction& instruction, uint32_t mask,
                const LaneAddresses& host) {
  const bool alike = mask == kAllLanes && are_spaced(host, 0);
  for (int element = 0; element < instruction.vector; ++element) {
    const uint32_t unit = instruction.operands[element];
    if (unit == kNoUnit) continue;
    R* to = warp.lanes<R>(unit);
    const auto value_of = [&](int lane) {
      T value;
      std::memcpy(&value, host_pointer<T>(host[lane]) + element, sizeof(T));
      return static_cast<R>(value);
    };
    if (alike)
      std::fill_n(to, kLanes, value_of(0));
    else
      for (LaneSet lane(mask); lane; ++lane) to[*lane] = value_of(*lane);
  }
}

template <class T, class R>
void store_lanes(Warp& warp, const Instruction& instruction, uint32_t mask,
                 const LaneAddresses& host) {
  const uint32_t* units = instruction.operands.data() + 1;
  for (LaneSet lane(mask); lane; ++lane) {
    for (int element = 0; element < instruction.vector; ++element) {
      const T value = static_cast<T>(warp.lanes<R>(units[element])[*lane]);
      std::memcpy(host_pointer<T>(host[*lane]) + element, &value, sizeof(T));
    }
  }
}

template <bool kIsLoad, class T, class R, int kElements>
void move_rows(Warp& warp, const uint32_t* units, unsigned char* host) {
  alignas(64) R sink[kLanes];
  R* rows[kElements];
  for (int element = 0; element < kElements; ++element)
    rows[element] = kIsLoad && units[element] == kNoUnit ? sink : warp.lanes<R>(units[element]);
#pragma GCC ivdep
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int element = 0; element < kElements; ++element) {
      unsigned char* const at = host + (lane * kElements + element) * sizeof(T);
      T value;
      if constexpr (kIsLoad) {
        std::memcpy(&value, at, sizeof(T));
        rows[element][lane] = static_cast<R>(value);
      } else {
        value = static_cast<T>(rows[element][lane]);
        std::memcpy(at, &value, sizeof(T));
      }
    }
  }
}

template <bool kIsLoad, class T, class R>
void move_lanes(Warp& warp, const Instruction& instruction, uint32_t mask,
                const LaneAddresses& host) {
  const int elements = instruction.vector;
  const uint32_t* units = instruction.operands.data() + (kIsLoad ? 0 : 1);
  if (mask == kAllLanes && elements <= 4 && are_spaced(host, elements * sizeof(T))) {
    unsigned char* const first = host_pointer<unsigned char>(host[0]);
    if (elements == 1) return move_rows<kIsLoad, T, R, 1>(warp, units, first);
    if (elements == 2) return move_rows<kIsLoad, T, R, 2>(warp, units, first);
    return move_rows<kIsLoad, T, R, 4>(warp, units, first);
  }
  if constexpr (kIsLoad)
    load_lanes<T, R>(warp, instruction, mask, host);
  else
    store_lanes<T, R>(warp, instruction, mask, host);
}

// A register is at least as wide as what is in memory.
template <bool kIsLoad, class T>
Move move_of(int register_bytes) {
  const auto between = []<class R>() -> Move {
    if constexpr (sizeof(T) <= sizeof(R)) return move_lanes<kIsLoad, T, R>;
    return nullptr;
  };
  switch (register_bytes) {
    case 2:
      return between.template operator()<uint16_t>();
    case 4:
      return between.template operator()<uint32_t>();
    case 8:
      return between.template operator()<uint64_t>();
    default:
      return between.template operator()<Bits128>();
  }
}

template <bool kIsLoad>
Move find_move(const Instruction& instruction) {
  using Find = Move (*)(int register_bytes);
  constexpr Find kSigned[] = {move_of<kIsLoad, int8_t>, move_of<kIsLoad, int16_t>,
                              move_of<kIsLoad, int32_t>};
  constexpr Find kOthers[] = {move_of<kIsLoad, uint8_t>, move_of<kIsLoad, uint16_t>,
                              move_of<kIsLoad, uint32_t>, move_of<kIsLoad, uint64_t>,
                              move_of<kIsLoad, Bits128>};
  const Type type = instruction.type;
  const auto size = std::countr_zero(static_cast<unsigned>(type_bytes(type)));  // log2
  const bool is_signed = type >= Type::s8 && type <= Type::s32;
  return (is_signed ? kSigned : kOthers)[size](instruction.register_bytes);
}

void read_addresses(Warp& warp, const Instruction& instruction, uint32_t unit,
                    LaneAddresses& addresses) {
  const auto offset = static_cast<uint64_t>(instruction.immediate);
  if (instruction.address_bytes == 4) {
    const uint32_t* from = warp.lanes<uint32_t>(unit);
    for (int i = 0; i < kLanes; ++i) addresses[i] = from[i] + static_cast<uint32_t>(offset);
  } else {
    const uint64_t* from = warp.lanes<uint64_t>(unit);
    for (int i = 0; i < kLanes; ++i) addresses[i] = from[i] + offset;
  }
}

Access kind_of(Opcode opcode) {
  if (opcode == Opcode::st) return Access::store;
  return opcode == Opcode::ld || opcode == Opcode::ldu ? Access::load : Access::atomic;
}

// Calls `act(access)` for the lanes of each space.  Addresses of a generic access become offsets in
// the space that they were found in.
template <class Act>
void for_each_access(const Instruction& instruction, uint32_t mask, LaneAddresses& addresses,
                     Act act) {
  const Modifiers& modifiers = instruction.modifiers;
  WarpAccess access{
      .kind = kind_of(instruction.opcode),
      .order = modifiers.order,
      .scope = modifiers.scope,
      .non_coherent = modifiers.non_coherent,
      .bytes = static_cast<uint32_t>(type_bytes(instruction.type)) * instruction.vector,
      .elements = instruction.vector,
      .addresses = addresses.data()};
  const auto act_in = [&](Space space, uint32_t lanes) {
    access.space = space;
    access.mask = lanes;
    act(access);
  };
  if (modifiers.space != Space::generic) return act_in(modifiers.space, mask);
  uint32_t windowed = 0;
  for (LaneSet lane(mask); lane; ++lane)
    if (addresses[*lane] & kWindowMask) windowed |= 1u << *lane;
  for (const auto& [space, window] : kWindows) {
    if (!windowed) break;
    uint32_t found = 0;
    for (LaneSet lane(windowed); lane; ++lane) {
      if ((addresses[*lane] & kWindowMask) != window) continue;
      found |= 1u << *lane;
      addresses[*lane] &= ~kWindowMask;
    }
    windowed &= ~found;
    mask &= ~found;
    if (found) act_in(space, found);
  }
  if (mask) act_in(Space::global, mask);
}

// Lanes of other spaces keep what they have: one generic access may meet several spaces.
void to_host(const Warp& warp, const Instruction& instruction, const WarpAccess& access,
             LaneAddresses& addresses) {
  if (access.space == Space::global) return;
  const Origin origin = origin_of(warp, access.space);
  if (instruction.modifiers.space == Space::generic)
    for (LaneSet lane(access.mask); lane; ++lane) addresses[*lane] += origin.at(*lane);
  else if (origin.stride == 0)
    for (uint64_t& address : addresses) address += origin.base;
  else
    for (int lane = 0; lane < kLanes; ++lane) addresses[lane] += origin.at(lane);
}

void run_transfer(Warp& warp, const Instruction& instruction, uint32_t mask,
                  LaneAddresses& addresses) {
  Grid& grid = *warp.block->grid;
  const bool is_load = instruction.opcode != Opcode::st;
  const bool is_strong = instruction.modifiers.order != Order::weak;
  const Move move = is_load ? find_move<true>(instruction) : find_move<false>(instruction);
  warp.observed |= is_load && is_strong;
  grid.progress += !is_load;
  for_each_access(instruction, mask, addresses, [&](const WarpAccess& access) {
    uint32_t allowed = access.mask;
    if (grid.memory) {
      std::array<uint32_t, 8> known;
      for (int i = 0; !is_load && i < instruction.vector; ++i)
        known[i] = warp.valid[instruction.operands[1 + i]];
      allowed = grid.memory->check(warp, instruction, access, is_load ? nullptr : known.data());
    }
    if (grid.traffic && access.space == Space::global && !is_strong)
      grid.traffic->count(access.bytes, allowed, addresses);
    to_host(warp, instruction, access, addresses);
    for (LaneSet lane(grid.old && is_strong ? allowed : 0); lane; ++lane) {
      const Site site{&warp, &instruction, *lane};
      if (is_load)
        addresses[*lane] = grid.old->choose(site, addresses[*lane]);
      else
        grid.old->keep(site, addresses[*lane]);
    }
    move(warp, instruction, allowed, addresses);
  });
  if (!is_load) return;
  for (int i = 0; i < instruction.vector; ++i) set_known(warp, instruction.operands[i], mask);
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
  const std::string what =
      concat("may still read what was there before lane ", store.lane, " stored at ",
             line_name(*store.by), ", and the result differs: shuffles and votes order no memory");
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
  read_addresses(warp, instruction, unit, addresses);
  switch (instruction.opcode) {
    case Opcode::ld:
    case Opcode::ldu:
    case Opcode::st:
      return run_transfer(warp, instruction, mask, addresses);
    case Opcode::cp_async:
      return start_copies(warp, instruction, mask, addresses);
    default:  // atom, red
      for_each_access(instruction, mask, addresses,
                      [&](const WarpAccess& access) { run_atomic(warp, instruction, access); });
  }
}

void progress_copies(Warp& warp) {
  for (AsyncCopy& copy : warp.copies)
    if (next_random(*warp.block->grid) % 8 == 0) complete(warp, copy);
}

void drop_copies(Warp& warp, uint32_t mask) {
  if (!warp.copies.empty()) finish_copies(warp, mask, [](const AsyncCopy&) { return true; });
}

}  // namespace stitch::ptxsim
