#include "ptxsim/memory/memory_state.h"

#include <algorithm>
#include <bit>

#include "base/words.h"
#include "ptxsim/machine/machine.h"
#include "ptxsim/memory/views.h"

namespace stitch::ptxsim {
namespace {

constexpr const char* kUndefined = " with a register that nothing has given a value";

const char* past_verb(const Record& record) {
  return record.is_atomic ? " updated" : record.writes ? " wrote" : " read";
}

// The next lanes of `rest` that one Run holds; they leave `rest`.  Only reads share a scalar.
Run take_run(uint32_t& rest, const Pass& pass, uint64_t origin) {
  const WarpAccess& access = pass.access;
  const int lane = lowest_lane(rest);
  const uint64_t* at = access.addresses + lane;
  const uint64_t offset = at[0] - origin, bytes = access.bytes;
  const uint32_t lanes = rest >> lane;
  const int limit = lanes == kAllLanes ? kLanes : std::countr_one(lanes);
  const uint64_t step = limit > 1 ? at[1] - at[0] : bytes;
  const bool is_same = step == 0 && access.kind == Access::load;
  int count = 1;
  if (is_same) {
    while (count < limit && at[count] == at[0]) ++count;
  } else if (step == bytes) {
    const uint64_t room = (Shadow::kPageBytes - offset % Shadow::kPageBytes) / bytes;
    const int most = int(std::min<uint64_t>(uint64_t(limit), room));
    if (pass.is_consecutive) count = most;
    while (count < most && at[count] - at[0] == uint64_t(count) * bytes) ++count;
  }
  rest &= ~(uint32_t((uint64_t{1} << count) - 1) << lane);
  return {offset, access.bytes, lane, count, is_same};
}

}  // namespace

const char* verb(const WarpAccess& access) {
  if (access.kind == Access::load) return "reads ";
  return access.kind == Access::store ? "writes " : "updates ";
}

bool is_consecutive(const WarpAccess& access) {
  if (access.mask != kAllLanes) return false;
  uint64_t differs = 0;
  for (uint64_t lane = 0; lane < kLanes; ++lane)
    differs |= access.addresses[lane] - access.addresses[0] - lane * access.bytes;
  return differs == 0;
}

std::string Memory::State::name_of(const Ground& ground, uint64_t offset) const {
  if (!ground.view) return concat("shared[+", offset, "]");
  return locate(layout.views, ground.origin + offset);
}

void Memory::State::report_outside(const Pass& pass, int lane) {
  reporter.report(FindingKind::out_of_bounds, pass.site(lane), [&] {
    const uint64_t address = pass.access.addresses[lane];
    const std::string what = concat(verb(pass.access), pass.access.bytes, " bytes at ");
    const Region* region = find_region(address, pass.instruction);
    if (!region) return what + locate(layout.views, address);
    const View* last = region->views.front();  // that begins inside and ends outside
    for (const View* view : region->views)
      if (address - view->address < view->bytes) last = view;
    const uint64_t past = address + pass.access.bytes - (last->address + last->bytes);
    return concat(what, element_name(*last, address), ", of which the last ", past,
                  " are past the end of ", view_name(*last));
  });
}

// `what`, then who did what `conflict` names before.
void Memory::State::report_after(FindingKind kind, const Pass& pass, Ground& ground,
                                 const Conflict& conflict, const std::string& what) {
  const Record& other = ground.ledger[conflict.other];
  const int line = other.instruction ? other.instruction->line : 0;
  const auto words = [&] {
    std::string text = what;
    if (other.instruction) {
      text += concat(", which block ", index_name(unravel(other.block, layout.grid)), " thread ",
                     other.warp * kLanes + conflict.other_lane, past_verb(other), " at ",
                     line_name(*other.instruction));
    }
    if (kind != FindingKind::race && kind != FindingKind::uninitialized) return text;
    const bool is_near = other.block == pass.warp.block->linear;
    text += is_near ? ", with no barrier between" : ", with no order between the blocks";
    if (kind == FindingKind::uninitialized)
      text += ": it may not be there yet";
    else if (other.strength != Strength::weak && pass.access.order != Order::weak)
      text += " and a scope or size that does not fit";
    return text;
  };
  reporter.report(kind, pass.site(conflict.lane), words, line);
}

bool Memory::State::is_flying(uint64_t block, const Record& record, int lane, uint64_t address) {
  const auto& flights_of_block = blocks.at(block).flights;
  return std::any_of(flights_of_block.begin(), flights_of_block.end(), [&](const auto& entry) {
    const Flight& flight = entry.second;
    return flight.warp == record.warp && flight.lane == lane &&
           address - flight.source < flight.bytes;
  });
}

void Memory::State::report_races(const Pass& pass, Ground& ground, Actor& actor) {
  for (const Conflict& conflict : conflicts) {
    const Record& other = ground.ledger[conflict.other];
    // An ordered store after a cp.async began to read is only wrong until that is waited for.
    if (other.is_copy && !other.writes &&
        actor.is_ordered(conflict.other, conflict.other_lane, conflict.lane) &&
        !(other.block == actor.record.block &&
          is_flying(other.block, other, conflict.other_lane, ground.origin + conflict.offset))) {
      continue;
    }
    report_after(FindingKind::race, pass, ground, conflict,
                 concat(verb(pass.access), name_of(ground, conflict.offset), " (",
                        pass.access.bytes, " bytes)"));
  }
}

void Memory::State::report_flight(const Pass& pass, Ground& ground, const Run& run) {
  const uint64_t at = ground.shadow.find(Shadow::kInFlight, true, run.offset);
  for (const auto& [destination, flight] : ground.block->flights) {
    if (at < destination || at - destination >= flight.size) continue;
    const auto words = [&, &flight = flight] {
      return concat(verb(pass.access), name_of(ground, at), " while the cp.async of thread ",
                    flight.warp * kLanes + flight.lane, " at ", line_name(*flight.instruction),
                    " into it has not been waited for");
    };
    return reporter.report(FindingKind::race, pass.site(run.lane_at(at)), words,
                           flight.instruction->line);
  }
}

// Who wrote, or else read, the first byte of the run that has such a bit, beside the lane that
// comes there now.
Conflict Memory::State::first_access(Ground& ground, const Run& run, Shadow::Bits bits) const {
  const uint64_t at = ground.shadow.find(bits, true, run.offset);
  Conflict access = bits == Shadow::kNonCoherent ? ground.shadow.some_read(ground.ledger, at)
                                                 : ground.shadow.last_write(ground.ledger, at);
  access.lane = run.lane_at(at);
  return access;
}

void Memory::State::check_read(const Pass& pass, Ground& ground, const Run& run) {
  if (ground.checks_contents && !ground.shadow.all(Shadow::kWritten, run.offset, run.end())) {
    const uint64_t at = ground.shadow.find(Shadow::kWritten, false, run.offset);
    reporter.report(FindingKind::uninitialized, pass.site(run.lane_at(at)), [&] {
      return verb(pass.access) + name_of(ground, at) + ", which nothing has written";
    });
  }
  if (!pass.access.non_coherent) return;
  if (ground.shadow.any(Shadow::kWritten, run.offset, run.end())) {
    const Conflict write = first_access(ground, run, Shadow::kWritten);
    report_after(FindingKind::read_only, pass, ground, write,
                 "reads by ld.global.nc " + name_of(ground, write.offset));
  }
  ground.shadow.set(Shadow::kNonCoherent, run.offset, run.end(), true);
}

// Strong accesses do not race, but what one of no other order reads may be what was there before:
// nothing, where the store that it sees is the only one.
void Memory::State::check_arrived(const Pass& pass, Ground& ground, Actor& actor, const Run& run) {
  if (!ground.checks_contents || !ground.shadow.any(Shadow::kOnce, run.offset, run.end())) return;
  for (int i = 0; i < run.count; ++i) {
    uint64_t at = run.offset + (run.is_same ? 0 : uint64_t(i) * run.bytes);
    for (const uint64_t end = at + run.bytes; at < end; at += actor.record.bytes) {
      if (!ground.shadow.any(Shadow::kOnce, at, at + actor.record.bytes)) continue;
      Conflict write = ground.shadow.last_write(ground.ledger, at);
      write.lane = run.lane + i;
      if (!actor.is_matched(write.other)) continue;
      if (actor.is_ordered(write.other, write.other_lane, write.lane)) continue;
      report_after(FindingKind::uninitialized, pass, ground, write,
                   verb(pass.access) + name_of(ground, at));
      ground.shadow.set(Shadow::kOnce, at, at + actor.record.bytes, false);
    }
  }
}

void Memory::State::check_write(const Pass& pass, Ground& ground, const Run& run) {
  if (!ground.view) return;
  if (ground.shadow.any(Shadow::kNonCoherent, run.offset, run.end())) {
    const Conflict read = first_access(ground, run, Shadow::kNonCoherent);
    report_after(FindingKind::read_only, pass, ground, read,
                 verb(pass.access) + name_of(ground, read.offset) + ", read by ld.global.nc");
  }
  if (ground.view->role == View::Role::output && pass.access.kind == Access::store &&
      ground.shadow.any(Shadow::kWritten, run.offset, run.end())) {
    const Conflict write = first_access(ground, run, Shadow::kWritten);
    report_after(FindingKind::unwritten, pass, ground, write,
                 "writes for a second time " + name_of(ground, write.offset));
  }
}

// Before the bytes count as written.
void Memory::State::mark_once(const Pass& pass, Ground& ground, const Run& run) {
  const bool is_strong = pass.access.order != Order::weak && pass.access.kind == Access::store;
  if (!is_strong && !ground.shadow.any(Shadow::kOnce, run.offset, run.end())) return;
  for (uint64_t at = run.offset; at < run.end(); at += run.bytes) {
    const bool is_first = is_strong && !ground.shadow.any(Shadow::kWritten, at, at + run.bytes);
    ground.shadow.set(Shadow::kOnce, at, at + run.bytes, is_first);
  }
}

void Memory::State::mark_written(const Pass& pass, Ground& ground, const Run& run) {
  if (ground.checks_contents) mark_once(pass, ground, run);
  ground.shadow.set(Shadow::kWritten, run.offset, run.end(), true);
  if (!pass.stored_valid) return;
  const uint32_t lanes = uint32_t((uint64_t{1} << run.count) - 1) << run.lane;
  const uint32_t size = pass.access.bytes / pass.access.elements;
  for (uint32_t i = 0; i < pass.access.elements; ++i) {
    for (LaneSet set(lanes & ~pass.stored_valid[i]); set; ++set) {
      const uint64_t at = run.offset + uint64_t(*set - run.lane) * run.bytes + i * size;
      // Compilers store a vector of which one element is known, and that element once more.
      if (ground.checks_contents)
        ground.shadow.set(Shadow::kWritten, at, at + size, false);
      else
        reporter.report(FindingKind::uninitialized, pass.site(*set),
                        [&] { return verb(pass.access) + name_of(ground, at) + kUndefined; });
    }
  }
}

void Memory::State::check_run(const Pass& pass, Ground& ground, Actor& actor, const Run& run) {
  if (ground.block && !ground.block->flights.empty() &&
      ground.shadow.any(Shadow::kInFlight, run.offset, run.end())) {
    report_flight(pass, ground, run);
    if (pass.writes()) mark_written(pass, ground, run);
    return;
  }
  if (pass.reads()) {
    check_read(pass, ground, run);
    check_arrived(pass, ground, actor, run);
  }
  if (pass.writes()) check_write(pass, ground, run);
  const size_t found = conflicts.size();
  if (pass.writes()) {
    ground.shadow.write(actor, run);
    mark_written(pass, ground, run);
  } else {
    ground.shadow.read(actor, run);
  }
  if (pass.access.non_coherent) conflicts.resize(found);  // reported as something else
}

void Memory::State::check_contents(const Pass& pass, Ground& ground, uint32_t lanes) {
  const Block& block = *pass.warp.block;
  const WarpAccess& access = pass.access;
  Record record;
  record.block = uint32_t(block.linear);
  record.clock = order.times(block.linear).now;
  record.mask = lanes;
  record.warp = uint8_t(pass.warp.index);
  record.bytes = uint8_t(access.bytes / access.elements);
  if (access.order != Order::weak) {
    const bool is_near = access.scope == Scope::cta || access.scope == Scope::cluster;
    record.strength = is_near ? Strength::near : Strength::wide;
  }
  record.writes = pass.writes();
  record.is_atomic = access.kind == Access::atomic;
  record.is_copy = pass.is_copy;
  record.non_coherent = access.non_coherent;
  record.instruction = &pass.instruction;
  Actor actor{order, ground.ledger, record, ground.ledger.intern(record), conflicts};
  for (uint32_t rest = lanes; rest;)
    check_run(pass, ground, actor, take_run(rest, pass, ground.origin));
  if (conflicts.empty()) return;
  report_races(pass, ground, actor);
  conflicts.clear();
}

void Memory::State::make_edges(const Pass& pass, uint32_t lanes) {
  const WarpAccess& access = pass.access;
  StrongAccess strong;
  strong.is_shared = access.space == Space::shared;
  strong.collects = pass.reads() && pass.instruction.opcode != Opcode::red;
  strong.publishes = pass.writes();
  strong.continues = access.kind == Access::atomic;
  strong.order = access.order;
  strong.scope = access.scope;
  const uint32_t size = access.bytes / access.elements;
  for (LaneSet set(lanes); set; ++set) {
    strong.thread = {pass.warp.block->linear, pass.warp.index, *set};
    for (uint32_t i = 0; i < access.elements; ++i) {
      strong.address = access.addresses[*set] + i * size;
      order.strong_access(strong);
    }
  }
}

// Frees the records that no cell names.  Where almost all are in use, what was seen is forgotten:
// a race may be missed then.
void Memory::State::make_room() {
  std::vector<bool> used(ledger.size());
  for (const Region& region : regions) region.shadow->mark(ledger, used);
  ledger.sweep(used);
  if (!ledger.is_full()) return;
  for (Region& region : regions) region.shadow->forget_accesses();
  ledger.clear();
}

// What a copy writes to shared memory.
uint32_t Memory::State::check_destinations(Warp& warp, const Instruction& instruction,
                                           const WarpCopy& copy, bool is_copy) {
  const WarpAccess store{.kind = Access::store,
                         .space = Space::shared,
                         .mask = copy.mask,
                         .bytes = copy.size,
                         .addresses = copy.destinations};
  return check_shared({warp, instruction, store, nullptr, is_copy});
}

uint32_t Memory::start_copy(Warp& warp, const Instruction& instruction, WarpCopy copy) {
  State& state = *state_;
  BlockMemory& block = state.shared_of(warp.block->linear);
  copy.mask = state.check_sources(warp, instruction, copy);
  uint32_t allowed = state.check_destinations(warp, instruction, copy, true);
  for (LaneSet set(allowed); set; ++set) {
    const uint64_t at = copy.destinations[*set];
    const bool is_free = !block.shadow.any(Shadow::kInFlight, at, at + copy.size);
    if (!is_free) {  // reported: two copies into one place
      allowed &= ~(1u << *set);
      continue;
    }
    const uint32_t bytes = copy.bytes ? copy.bytes[*set] : copy.size;
    block.shadow.set(Shadow::kInFlight, at, at + copy.size, true);
    block.flights[at] = {warp.index, *set, copy.sources[*set], bytes, copy.size, &instruction};
  }
  return allowed;
}

// What a copy reads, in pieces of a power of two: src-size may be any number of bytes.
uint32_t Memory::State::check_sources(Warp& warp, const Instruction& instruction,
                                      const WarpCopy& copy) {
  uint32_t whole = 0, allowed = 0;
  for (LaneSet set(copy.mask); set; ++set)
    if (!copy.bytes || copy.bytes[*set] == copy.size) whole |= 1u << *set;
  WarpAccess load;
  load.bytes = copy.size;
  load.mask = whole;
  load.addresses = copy.sources;
  if (whole) allowed |= check_global({warp, instruction, load, nullptr, true});
  for (LaneSet set(copy.mask & ~whole); set; ++set) {
    std::array<uint64_t, kLanes> addresses = {};
    uint64_t& at = addresses[*set];
    at = copy.sources[*set];
    const uint64_t end = at + copy.bytes[*set];
    load.mask = 1u << *set;
    load.addresses = addresses.data();
    bool is_allowed = true;
    while (is_allowed && at < end) {
      load.bytes = uint32_t(std::bit_floor(end - at));
      is_allowed = check_global({warp, instruction, load, nullptr, true}) != 0;
      at += load.bytes;
    }
    allowed |= uint32_t(is_allowed) << *set;
  }
  return allowed;
}

void Memory::finish_copy(Warp& warp, const AsyncCopy& copy) {
  State& state = *state_;
  BlockMemory& block = state.shared_of(warp.block->linear);
  block.shadow.set(Shadow::kInFlight, copy.destination, copy.destination + copy.size, false);
  block.flights.erase(copy.destination);
  // From here on it is as if the thread had copied by itself; a store that came between is found.
  std::array<uint64_t, kLanes> sources = {}, destinations = {};
  std::array<uint32_t, kLanes> bytes = {};
  sources[copy.lane] = copy.source;
  destinations[copy.lane] = copy.destination;
  bytes[copy.lane] = copy.bytes;
  const WarpCopy alone{1u << copy.lane, copy.size, destinations.data(), sources.data(),
                       bytes.data()};
  state.check_sources(warp, *copy.instruction, alone);
  state.check_destinations(warp, *copy.instruction, alone, false);
}

void Memory::check_written() {
  for (const Region& region : state_->regions) {
    for (const View* view : region.views)
      if (view->role == View::Role::output) state_->check_view_written(*view, region);
  }
}

// False where no store to the element is known.
bool Memory::State::report_undefined(const View& view, const Region& region, uint64_t address) {
  const uint64_t at = region.shadow->find(Shadow::kWritten, false, address - region.origin);
  const Conflict write = region.shadow->last_write(ledger, at);
  const Record& record = ledger[write.other];
  if (!record.instruction) return false;
  Block block;
  block.index = unravel(record.block, layout.grid);
  block.threads = layout.block;
  Warp warp;
  warp.block = &block;
  warp.index = record.warp;
  reporter.report(FindingKind::uninitialized, {&warp, record.instruction, write.other_lane},
                  "writes " + element_name(view, address) + kUndefined);
  return true;
}

void Memory::State::check_view_written(const View& view, const Region& region) {
  const uint64_t begin = view.address - region.origin;
  if (region.shadow->all(Shadow::kWritten, begin, begin + view.bytes)) return;
  uint64_t missing = 0, total = 0, first = 0;
  visit_elements(view, [&](uint64_t address) {
    ++total;
    const uint64_t at = address - region.origin;
    if (region.shadow->all(Shadow::kWritten, at, at + view.element_bytes)) return;
    if (report_undefined(view, region, address)) return;
    if (!missing++) first = address;
  });
  if (!missing) return;
  reporter.report(FindingKind::unwritten,
                  concat(missing, " of ", total, " elements of ", view_name(view),
                         " were never written, the first is ", element_name(view, first)));
}

}  // namespace stitch::ptxsim
