// The instruction set: one row of ptx.def per instruction, and the words it is written in.
//
// A row gives the name, the operands, the types and modifiers that are allowed and who executes it
// (Flow).  What is in no row is refused by name and line when the text is decoded, never when it
// runs.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stitch::ptxsim {

// An enumeration and the names of its values, which are PTX's words: a `_` at their end is C++'s.
#define PTX_ENUM(Name, ...)                                          \
  enum class Name : uint8_t;                                         \
  constexpr std::string_view names_of(Name) { return #__VA_ARGS__; } \
  enum class Name : uint8_t { __VA_ARGS__ }

PTX_ENUM(Type, none, pred, b8, b16, b32, b64, b128, u8, u16, u32, u64, s8, s16, s32, s64, f16, bf16,
         f32, f64, f16x2, bf16x2, u16x2, s16x2);
inline constexpr std::array<uint8_t, 23> kTypeBytes = {0, 4, 1, 2, 4, 8, 16, 1, 2, 4, 8, 1,
                                                       2, 4, 8, 2, 2, 4, 8,  4, 4, 4, 4};
static_assert(kTypeBytes.size() == static_cast<size_t>(Type::s16x2) + 1);

// In the order of Type; inline, as memory operations ask.  pred: 4, the unit's first word.
inline int type_bytes(Type type) { return kTypeBytes[static_cast<size_t>(type)]; }
// That of so many bytes among b8 to b64, u8 to u64 or s8 to s64, whose first is given.
inline Type sized_type(Type first, int bytes) {
  return static_cast<Type>(int(first) + std::countr_zero(static_cast<unsigned>(bytes)));
}
inline bool is_integer(Type type) { return type >= Type::u8 && type <= Type::s64; }
Type find_type(std::string_view name);  // none: there is none of that name

PTX_ENUM(Space, none, generic, global, shared, local, const_, param);

// Who executes an instruction.
enum class Flow : uint8_t {
  lanes,    // a handler: each lane by itself
  memory,   // ld st atom red cp.async prefetch: through Memory
  branch,   // bra brx call ret exit
  warp,     // shfl vote match redux elect activemask bar.warp.sync: lanes named by a mask meet
  barrier,  // bar/barrier: warps of a block meet
  order,    // membar fence griddepcontrol nanosleep: no value moves
};

PTX_ENUM(Rounding, none, rn, rz, rm, rp, rna, rni, rzi, rmi, rpi);
PTX_ENUM(Compare, none, eq, ne, lt, le, gt, ge, lo, ls, hi, hs, equ, neu, ltu, leu, gtu, geu, num,
         nan);
PTX_ENUM(Scope, none, cta, cluster, gpu, sys);
PTX_ENUM(Order, weak, relaxed, acquire, release, acq_rel, sc);  // volatile: relaxed
// The words of which a row takes one: the operation of atom, red, redux, vote, shfl and bar.red,
// the boolean of setp, the mode of prmt, testp, shf, szext and bmsk.
PTX_ENUM(Word, none, and_, or_, xor_, cas, exch, add, inc, dec, min, max, up, down, bfly, idx, all,
         any, uni, clamp, wrap, shiftamt, f4e, b4e, rc8, ecl, ecr, rc16, finite, infinite, number,
         notanumber, normal, subnormal, L1, L2, ca, cg);
// Registers that are constant over the life of a warp's lane; the last _ of tid_x is a dot.
PTX_ENUM(Special, tid_x, tid_y, tid_z, ntid_x, ntid_y, ntid_z, ctaid_x, ctaid_y, ctaid_z, nctaid_x,
         nctaid_y, nctaid_z, laneid, warpid, nwarpid, smid, nsmid, gridid, lanemask_eq, lanemask_le,
         lanemask_lt, lanemask_ge, lanemask_gt, dynamic_smem_size, total_smem_size);
#undef PTX_ENUM

std::string_view word_of(std::string_view names, size_t index);
// "and" of Word::and_; empty for none, which is the first.
template <class Enum>
std::string_view name_of(Enum value) {
  return value == Enum{} ? std::string_view()
                         : word_of(names_of(value), static_cast<size_t>(value));
}

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
};

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
