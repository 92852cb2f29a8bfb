// What Memory knows of one launch: regions of global memory, the shared memory of resident blocks,
// and the steps of the check of one access.  memory.cpp says which lanes may access at all,
// memory_state.cpp what is wrong with what they touch.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ptxsim/memory/memory.h"
#include "ptxsim/memory/shadow.h"

namespace stitch::ptxsim {

// Overlapping views, or one, and what was done to their bytes.
struct Region {
  uint64_t begin = 0, end = 0;
  uint64_t origin = 0;  // of the shadow, so that alignment in it is that of addresses
  std::vector<const View*> views;
  bool is_written = false;     // some view may be written, so accesses may race
  bool is_initialised = true;  // from the start
  std::optional<Shadow> shadow;
};

// A cp.async that was issued and not waited for.
struct Flight {
  int warp, lane;
  uint64_t source;
  uint32_t bytes;  // read; the rest up to `size` becomes zero
  uint32_t size;
  const Instruction* instruction;
};

struct BlockMemory {
  explicit BlockMemory(uint64_t size) : bytes(size), shadow(size) {}
  uint64_t bytes;
  uint32_t barrier = 0;  // that of the last access
  Ledger ledger;
  Shadow shadow;
  std::unordered_map<uint64_t, Flight> flights;  // by destination
};

// One access of one warp while it is looked at.
struct Pass {
  Warp& warp;
  const Instruction& instruction;
  const WarpAccess& access;
  const uint32_t* stored_valid;
  bool is_copy = false;
  bool is_consecutive = false;  // 32 lanes side by side
  Site site(int lane) const { return {&warp, &instruction, lane}; }
  bool reads() const { return access.kind != Access::store; }
  bool writes() const { return access.kind != Access::load; }
};

bool is_consecutive(const WarpAccess& access);

// Where the lanes of a pass go that go to the same place.
struct Ground {
  Shadow& shadow;
  Ledger& ledger;
  uint64_t origin = 0;
  bool checks_contents = true;
  const View* view = nullptr;  // null: shared memory
  BlockMemory* block = nullptr;
};

// "reads ", "writes ", "updates ".
const char* verb(const WarpAccess& access);

struct Memory::State {
  static constexpr size_t kRecent = 256;

  State(MemoryLayout given, HappensBefore& happens_before, Reporter& to)
      : layout(std::move(given)), order(happens_before), reporter(to) {}

  MemoryLayout layout;
  HappensBefore& order;
  Reporter& reporter;
  std::vector<Region> regions;                       // by address
  std::array<Region*, kRecent> recent_regions = {};  // by instruction
  Ledger ledger;
  std::unordered_map<uint64_t, BlockMemory> blocks;
  std::vector<Conflict> conflicts;  // of the access at hand

  void build_regions();
  Region* find_region(uint64_t address, const Instruction& instruction);
  uint32_t in_bounds(const Pass& pass, const Region& region, uint32_t lanes) const;
  uint32_t keep_aligned(const Pass& pass, uint32_t lanes);
  uint32_t keep_writable(const Pass& pass, const Region& region, uint32_t lanes);
  uint32_t check_global(const Pass& pass);
  uint32_t check_shared(const Pass& pass);
  uint32_t check_local(const Pass& pass);
  uint32_t check_constant(const Pass& pass);
  uint32_t check_sources(Warp& warp, const Instruction& instruction, const WarpCopy& copy);
  uint32_t check_destinations(Warp& warp, const Instruction& instruction, const WarpCopy& copy,
                              bool is_copy);
  uint32_t keep_within(const Pass& pass, uint64_t bytes, const char* space);
  void check_local_bytes(const Pass& pass, int lane, size_t stride);
  void check_contents(const Pass& pass, Ground& ground, uint32_t lanes);
  void check_run(const Pass& pass, Ground& ground, Actor& actor, const Run& run);
  void check_read(const Pass& pass, Ground& ground, const Run& run);
  void check_arrived(const Pass& pass, Ground& ground, Actor& actor, const Run& run);
  void check_write(const Pass& pass, Ground& ground, const Run& run);
  void mark_once(const Pass& pass, Ground& ground, const Run& run);
  void mark_written(const Pass& pass, Ground& ground, const Run& run);
  void make_edges(const Pass& pass, uint32_t lanes);
  void make_room();
  BlockMemory& shared_of(uint64_t block);

  Conflict first_access(Ground& ground, const Run& run, Shadow::Bits bits) const;
  void report_outside(const Pass& pass, int lane);
  void report_races(const Pass& pass, Ground& ground, Actor& actor);
  void report_flight(const Pass& pass, Ground& ground, const Run& run);
  void report_after(FindingKind kind, const Pass& pass, Ground& ground, const Conflict& conflict,
                    const std::string& what);
  bool is_flying(uint64_t block, const Record& record, int lane, uint64_t address);
  std::string name_of(const Ground& ground, uint64_t offset) const;
  void check_view_written(const View& view, const Region& region);
  bool report_undefined(const View& view, const Region& region, uint64_t address);
};

}  // namespace stitch::ptxsim
