// The instruction set: one row of ptx.def per instruction, and the words it is written in.
//
// A row gives the name, the operands, the types and modifiers that are allowed, who executes it
// (Flow) and, for lane operations, the family of handlers.  What is in no row is refused by name
// and line when the text is decoded, never when it runs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stitch::ptxsim {

enum class Type : uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  bf16,
  f32,
  f64,
  f16x2,
  bf16x2,
  u16x2,
  s16x2,
};
struct TypeTrait {
  std::string_view name;
  int bytes;
};
inline constexpr std::array kTypes = {
    TypeTrait{"", 0},       TypeTrait{"pred", 4},  TypeTrait{"b8", 1},    TypeTrait{"b16", 2},
    TypeTrait{"b32", 4},    TypeTrait{"b64", 8},   TypeTrait{"b128", 16}, TypeTrait{"u8", 1},
    TypeTrait{"u16", 2},    TypeTrait{"u32", 4},   TypeTrait{"u64", 8},   TypeTrait{"s8", 1},
    TypeTrait{"s16", 2},    TypeTrait{"s32", 4},   TypeTrait{"s64", 8},   TypeTrait{"f16", 2},
    TypeTrait{"bf16", 2},   TypeTrait{"f32", 4},   TypeTrait{"f64", 8},   TypeTrait{"f16x2", 4},
    TypeTrait{"bf16x2", 4}, TypeTrait{"u16x2", 4}, TypeTrait{"s16x2", 4},
};
static_assert(kTypes.size() == static_cast<size_t>(Type::s16x2) + 1);

// Inline: memory operations ask.  pred: 4, the unit's first word.
inline int type_bytes(Type type) { return kTypes[static_cast<size_t>(type)].bytes; }
inline std::string_view type_name(Type type) { return kTypes[static_cast<size_t>(type)].name; }
int type_units(Type type);
Type find_type(std::string_view name);  // none: there is none of that name

enum class Space : uint8_t { none, generic, global, shared, local, constant, param, reg };

// Who executes an instruction.
enum class Flow : uint8_t {
  lanes,    // a handler: each lane by itself
  memory,   // ld st atom red cp.async prefetch: through Memory
  branch,   // bra brx call ret exit
  warp,     // shfl vote match redux elect activemask bar.warp.sync: lanes named by a mask meet
  barrier,  // bar/barrier: warps of a block meet
  order,    // membar fence griddepcontrol nanosleep: no value moves
};

enum class Rounding : uint8_t { none, rn, rz, rm, rp, rna, rni, rzi, rmi, rpi };
enum class Compare : uint8_t {
  none,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  lo,
  ls,
  hi,
  hs,
  equ,
  neu,
  ltu,
  leu,
  gtu,
  geu,
  num,
  nan,
};
enum class Scope : uint8_t { none, cta, cluster, gpu, sys };
enum class Order : uint8_t {
  weak,
  relaxed,
  acquire,
  release,
  acq_rel,
  seq_cst
};  // volatile: relaxed

// The words of which a row takes one: the operation of atom, red, redux, vote, shfl and bar.red,
// the boolean of setp, the mode of prmt, testp, shf, szext and bmsk.
#define PTX_WORDS(word)                                                                           \
  word(and_, "and") word(or_, "or") word(xor_, "xor") word(cas, "cas") word(exch, "exch")         \
      word(add, "add") word(inc, "inc") word(dec, "dec") word(min, "min") word(max, "max")        \
          word(up, "up") word(down, "down") word(bfly, "bfly") word(idx, "idx") word(all, "all")  \
              word(any, "any") word(uni, "uni") word(clamp, "clamp") word(wrap, "wrap")           \
                  word(shiftamt, "shiftamt") word(f4e, "f4e") word(b4e, "b4e") word(rc8, "rc8")   \
                      word(ecl, "ecl") word(ecr, "ecr") word(rc16, "rc16") word(finite, "finite") \
                          word(infinite, "infinite") word(number, "number")                       \
                              word(notanumber, "notanumber") word(normal, "normal")               \
                                  word(subnormal, "subnormal") word(L1, "L1") word(L2, "L2")      \
                                      word(ca, "ca") word(cg, "cg")
enum class Word : uint8_t {
  none,
#define PTX_WORD(id, text) id,
  PTX_WORDS(PTX_WORD)
#undef PTX_WORD
      count
};
std::string_view word_name(Word word);  // "and"; none: empty

// What the dots of an instruction said.
struct Modifiers {
  Rounding rounding = Rounding::none;
  Compare compare = Compare::none;
  Scope scope = Scope::none;
  Order order = Order::weak;
  Space space = Space::none;  // of the memory accessed; Space::generic when the text has none
  Word word = Word::none;     // "add" of atom.add, "bfly" of shfl.sync.bfly
  bool ftz : 1 = false;
  bool sat : 1 = false;
  bool approx : 1 = false;
  bool full : 1 = false;
  bool nan : 1 = false;       // min.NaN, max.NaN, redux.NaN
  bool xorsign : 1 = false;   // .xorsign.abs
  bool absolute : 1 = false;  // redux.abs
  bool relu : 1 = false;
  bool carry_out : 1 = false;     // addc.cc, subc.cc, madc.cc
  bool non_coherent : 1 = false;  // ld.global.nc
  bool is_volatile : 1 = false;
  bool aligned : 1 = false;
  bool uniform : 1 = false;
};

// Cycles until a result may be used, in classes; for reports only.
enum class Latency : uint8_t { alu, half, slow, transcendental, memory, shared, sync };

enum class Opcode : uint16_t {
#define PTX_ROW(id, ...) id,
#include "ptxsim/isa/ptx.def"
#undef PTX_ROW
  count
};

// A row of ptx.def; the file's head says what the strings mean.
struct Row {
  Opcode opcode;
  std::string_view name;
  std::string_view operands;
  std::string_view types;
  std::string_view source_types;
  std::string_view modifiers;
  Flow flow;
  Latency latency;
};
const Row& row_of(Opcode opcode);
std::span<const Row> all_rows();

// What the words of an instruction ("ld.global.v4.f32") say, as one row reads them.
struct Spelling {
  const Row* row = nullptr;
  Type type = Type::none;
  Type source_type = Type::none;
  Modifiers modifiers;
  uint8_t vector = 1;
};
// By all rows of that name; several differ in their operands only.  None: `problem` says why.
std::vector<Spelling> read_words(std::string_view words, std::string& problem);

// The candidate that is nearest to a name of the text, which may be absurdly long: then empty.
std::string suggest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace stitch::ptxsim
