// Sizes that only a library call knows: the rows of a result, the number that a tensor holds.
//
// Such a symbol is an input whose `input` is -1 - row, the row of the call that defines it; `left`
// says which of the call's results, `right` which extent of it, -1 for the number that it holds.
// Symbols that are made of late ones are late.  Values are filled in as calls run.
#pragma once

#include <set>
#include <vector>

#include "ops/dim.h"

namespace stitch {

// The value of a symbol whose call has not run yet.
inline constexpr int64_t kUnknown = INT64_MIN;

Dim add_late(SymbolTable& table, int row, int result, int dimension, int64_t hint);
inline bool is_late(const Symbol& symbol) {
  return symbol.kind == Symbol::Kind::kInput && symbol.input < 0;
}
inline int row_of(const Symbol& symbol) { return -1 - symbol.input; }
// The rows of the calls that `dim` waits for.
std::set<int> rows_of(const SymbolTable& table, const Dim& dim);
// Evaluates what operands have become known for.
void complete(const SymbolTable& table, std::vector<int64_t>& values);

}  // namespace stitch
