// Finding: one defect of a kernel, seen while it ran.
//
// `message` is whole: kernel, source line, block, warp and lane, address as tensor and index, and
// for a race both parties.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace stitch::ptxsim {

enum class FindingKind : uint8_t {
  out_of_bounds,  // of every view, shared or local memory; freed memory
  misaligned,
  uninitialized,  // shared, scratch or output memory or a register read before it was written
  race,
  divergent_barrier,  // or mismatched, or a warp operation that names an absent lane
  deadlock,
  residency,         // a barrier of the grid with more blocks than fit
  read_only,         // a store to an input, to .const, or to what the launch reads by ld.global.nc
  unwritten,         // an element of an output never written, or written twice
  nondeterministic,  // orders that end in other bits
  budget,            // more instructions than allowed: an endless loop
};

struct Finding {
  FindingKind kind;
  std::string message;
  int line = 0;        // of the CUDA text where the PTX tells, else of the PTX; 0: none
  int ptx_line = 0;    // 0: none
  int other_line = 0;  // PTX line of a race's other party; 0: none
  std::array<uint32_t, 3> block = {0, 0, 0};
  std::array<uint32_t, 3> thread = {0, 0, 0};
};

const char* kind_name(FindingKind kind);
std::string to_string(const Finding& finding);  // "race: kernel ..."

// The same defect at the same line by other threads is one finding, counted.
struct Findings {
  static constexpr size_t kMost = 100;
  std::vector<Finding> all;  // the first of each (kind, ptx_line, other party's line)
  uint64_t count = 0;        // of occurrences
};

struct Warp;
struct Instruction;
struct Function;

// Where something was seen; lane -1: the warp as a whole.
struct Site {
  const Warp* warp = nullptr;
  const Instruction* instruction = nullptr;
  int lane = -1;
};

// "line 41" of the CUDA text, or "PTX line 17" where that is not known.
std::string line_name(const Instruction& instruction);
// Index number `linear` of an array of such sizes, x fastest: of a thread or a block.
std::array<uint32_t, 3> unravel(uint64_t linear, const std::array<uint32_t, 3>& sizes);
inline uint64_t volume(const std::array<uint32_t, 3>& sizes) {
  return uint64_t{sizes[0]} * sizes[1] * sizes[2];
}
std::string index_name(const std::array<uint32_t, 3>& index);  // "(1, 0, 0)"

// Collects findings of one launch and words where they are.  Findings that are there already, of
// an earlier order, count as seen.
class Reporter {
 public:
  Reporter(const Function& kernel, Findings& findings);
  // `words` follow the place: "reads 4 bytes at arg 2[1024], past its end".  Where they cost more
  // than the count they are a function, which is asked for them if they are wanted.
  template <class Words>
  [[gnu::cold]] void report(FindingKind kind, const Site& site, const Words& words,
                            int other_line = 0) {
    if (!is_new(kind, site, other_line)) return;
    if constexpr (std::is_invocable_v<Words>)
      add(kind, site, words(), other_line);
    else
      add(kind, site, words, other_line);
  }
  // For what has no instruction: unwritten elements, residency, differing orders.
  void report(FindingKind kind, const std::string& what);

 private:
  // Counts one occurrence.  True: it is the first of its kind at this place and there is room.
  bool is_new(FindingKind kind, const Site& site, int other_line);
  void add(FindingKind kind, const Site& site, const std::string& what, int other_line);

  const Function& kernel_;
  Findings& findings_;
  std::set<std::tuple<FindingKind, int, int>> seen_;
};

}  // namespace stitch::ptxsim
