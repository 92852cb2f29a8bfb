// Memory: what a kernel may touch, and what is wrong with an access.
//
// Global memory is the process's own: an address is a host pointer, a View says which bytes belong
// to which tensor.  Shared memory, local memory, .const and .param are arrays of the simulator.
// Generic addresses of shared and local memory are windows far from any host pointer.
//
// With checks, each access of a warp is looked at as a whole before any byte moves: lanes that are
// out of bounds, misaligned or not allowed are reported and left out.  Without, nothing but the
// window of a generic address is looked at.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ptxsim/isa/isa.h"
#include "ptxsim/machine/machine.h"
#include "ptxsim/memory/finding.h"
#include "ptxsim/memory/races.h"

namespace stitch::ptxsim {

// Where a space lies among generic addresses; no host pointer is there.
struct Window {
  Space space;
  uint64_t base;
};
constexpr Window kWindows[] = {{Space::shared, uint64_t{0xA000} << 48},
                               {Space::local, uint64_t{0xB000} << 48},
                               {Space::const_, uint64_t{0xC000} << 48},
                               {Space::param, uint64_t{0xD000} << 48}};
constexpr uint64_t kWindowMask = uint64_t{0xFFFF} << 48;

// Inlined, so that no lane operation's copy of them can serve a CPU that lacks its instructions.
[[gnu::always_inline]] constexpr uint64_t window_of(Space space) {  // 0: host addresses
  for (const Window& window : kWindows)
    if (window.space == space) return window.base;
  return 0;
}
[[gnu::always_inline]] constexpr Space space_of(uint64_t generic) {
  for (const Window& window : kWindows)
    if ((generic & kWindowMask) == window.base) return window.space;
  return Space::global;
}

enum class Access : uint8_t { load, store, atomic };

// One tensor (or one allocation) as a kernel may see it.  Bytes between the rows of a strided
// tensor belong to no element but are in bounds.
struct View {
  enum class Role : uint8_t {
    input,    // never written
    output,   // starts uninitialised, each element is written once
    any,      // read and written at will, all of it initialised
    scratch,  // read and written at will, starts uninitialised
    freed,    // was there once: any access is out of bounds, named after it
  };
  std::string name;  // "arg 2", "workspace"
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t element_bytes = 1;
  Role role = Role::any;
  std::vector<int64_t> sizes = {};    // of the tensor, in elements; empty: one dimension
  std::vector<int64_t> strides = {};  // in elements; empty: contiguous
  std::string type = {};              // "float32", for messages; empty: not known
  bool is_integer = false;            // what the clock may read
};

// What a launch may touch and the shape that names its threads.
struct MemoryLayout {
  // They do not overlap, unless all that overlap are of role `any` or `input`; freed ones may.
  std::vector<View> views;
  uint64_t constant_bytes = 0;
  uint64_t parameter_bytes = 0;
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
};

// One memory instruction of one warp.
struct WarpAccess {
  Access kind = Access::load;
  Space space = Space::global;  // generic is resolved before: each group of lanes by itself
  Order order = Order::weak;    // volatile: relaxed with scope sys; atomics: relaxed at least
  Scope scope = Scope::none;    // of what is not weak; none: gpu
  bool non_coherent = false;
  uint32_t mask = 0;                    // lanes that access
  uint32_t bytes = 4;                   // per lane, all elements of a vector; a power of two
  uint32_t elements = 1;                // of the vector
  const uint64_t* addresses = nullptr;  // [32]: host address, or offset in its space
};

// One cp.async of one warp.
struct WarpCopy {
  uint32_t mask = 0;
  uint32_t size = 4;                       // bytes of destination written per lane: 4, 8, 16
  const uint64_t* destinations = nullptr;  // [32] offsets in shared memory
  const uint64_t* sources = nullptr;       // [32] global addresses
  const uint32_t* bytes = nullptr;         // [32] read from the source; nullptr: all have `size`
};

class Memory {
 public:
  Memory(MemoryLayout layout, HappensBefore& order, Reporter& reporter);
  ~Memory();

  // A block starts: its shared memory of so many bytes holds nothing.
  void start_block(uint64_t block, uint64_t shared_bytes);
  void end_block(uint64_t block);

  // Reports what is wrong with the access, records it for races and initialisation, makes the
  // edges that its order asks for.  Before any byte moves.  Returns the lanes whose bytes may move;
  // atomics of one instruction take effect in the order of lanes.  `stored_valid`: per element of
  // the vector, lanes whose value to store is initialised; null: all are.  What is stored
  // uninitialised to shared or local memory stays uninitialised; to global memory, it is reported.
  // Loading what is uninitialised is reported, so the value counts as initialised from then on.
  uint32_t check(Warp& warp, const Instruction& instruction, const WarpAccess& access,
                 const uint32_t* stored_valid = nullptr);

  // cp.async is issued, and each of the copies that were allowed is waited for.  From the one to
  // the other any access to the destination, and any store to the source, is a race.
  uint32_t start_copy(Warp& warp, const Instruction& instruction, WarpCopy copy);
  void finish_copy(Warp& warp, const AsyncCopy& copy);

  // Elements of outputs that were never written.  At the end of an order.
  void check_written();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stitch::ptxsim
