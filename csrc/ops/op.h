// Everything the compiler knows about an op, one OpInfo per row of ops.def.
//
// A switch over OpKind outside ops/ is a design error: what differs between ops is a column.
#pragma once

#include <string_view>

#include "ops/type.h"

namespace stitch {

enum class OpKind : uint16_t {
#define STITCH_OP(name, ...) k_##name,
#include "ops/ops.def"
#undef STITCH_OP
  kCount
};

enum class Family : uint8_t {
  kSource,     // no inputs: iota, full
  kInput,      // a graph input
  kPointwise,  // one element from one element of each operand
  kReduce,     // over the axes in `ints`; the output drops them
  kView,       // the same elements at other indices
  kReader,     // elements at computed or data-dependent indices: cat, pad, index, gather
  kWriter,     // the memory of the first operand, of which it replaces some elements
  kLibrary,    // a call through the dispatcher, `get`, one result of it, and what may become one
};

// How a row's result type follows from its operands.
enum class TypeRule : uint8_t { kSame, kBool, kFirst, kInteger, kExplicit, kSecond, kFloat };

enum class CostClass : uint8_t { kFree, kLight, kDivide, kSpecial, kHeavy };

// Of a GPU's thread, for one result.
struct Instructions {
  double exact = 1, narrow = 1;  // in f32; rounded to 16 bits
  double special = 0;            // of them, those of the special pipe
};

struct OpInfo {
  OpKind kind;
  const char* name;
  Family family;
  int arity;  // -1: any number
  TypeRule type_rule;
  const char* function;  // device function; combine functor of a reduction, segments or scatters
  const char* identity;  // "0", "1", "lowest", "highest" or "" (algebra: reductions only)
  CostClass cost;
  Instructions instructions;
  std::string aten;  // overloads imported one to one, separated by spaces
  const char* doc;
};

// A reader that combines elements of its second operand: each row those of its segment.
inline bool combines_segments(const OpInfo& op) {
  return op.family == Family::kReader && op.function[0] != 0;
}

// A writer that makes all the memory it writes: combines its second operand at its third's indices.
inline bool combines_at_indices(const OpInfo& op) {
  return op.family == Family::kWriter && op.function[0] != 0;
}

// A library call, or a put, which may become one.
inline bool may_call(const OpInfo& op) {
  return op.family == Family::kLibrary && op.kind != OpKind::k_get;
}
inline bool is_put(const OpInfo& op) { return may_call(op) && op.kind != OpKind::k_library; }

// A result's element type; `declared`: for kExplicit.  UserError when the operands disagree.
DType result_dtype(const OpInfo& op, const std::vector<DType>& operands, DType declared);
// Is it a quotient or remainder of integers?  Eager's CPU kernels raise where its divisor is zero.
inline bool divides_integers(const OpInfo& op, DType result) {
  return op.cost == CostClass::kDivide && op.arity == 2 && is_integral(result);
}
// It is evaluated for what it reports, also where nobody reads its result.
inline bool is_assertion(const OpInfo& op) { return op.kind == OpKind::k_assert_true; }

// Of a table that a pass has: what it does with the nodes of one op.
template <class Function>
struct OpRow {
  OpKind op;
  Function function;
};
// Null where the op has no row.
template <class Function, size_t kRows>
Function find_function(const OpRow<Function> (&rows)[kRows], OpKind op) {
  const auto* row = find_by(rows, op, &OpRow<Function>::op);
  return row ? row->function : nullptr;
}

const OpInfo& info(OpKind kind);
inline const Instructions& gpu_instructions(OpKind op) { return info(op).instructions; }
const std::vector<OpInfo>& all_ops();
// UserError for an unknown name.
OpKind op_from_name(std::string_view name);

}  // namespace stitch
