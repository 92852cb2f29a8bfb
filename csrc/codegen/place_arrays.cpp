#include "codegen/place_arrays.h"

#include <algorithm>

#include "base/round_up.h"
#include "ops/type.h"

namespace stitch {
namespace {

constexpr int64_t kAlignmentBytes = 64;  // STITCH_ARRAY and STITCH_SCRATCH

int64_t count_bytes(const Statement& array) {
  int64_t element = 16;  // of what carries an index beside its value
  for (int type = 0; type < static_cast<int>(DType::kOpaque); ++type) {
    const DTypeInfo& known = info(static_cast<DType>(type));
    if (array.type == known.device_name || array.type == known.register_name) element = known.bytes;
  }
  return round_up(std::max<int64_t>(1, array.count) * element, kAlignmentBytes);
}

void find_arrays(std::vector<Statement>& statements, std::vector<Statement*>& found) {
  for (Statement& statement : statements) {
    if (statement.kind == Statement::Kind::kArray) found.push_back(&statement);
    find_arrays(statement.body, found);
  }
}

}  // namespace

int64_t place_arrays(KernelBody& body) {
  std::vector<Statement*> arrays;
  find_arrays(body.statements, arrays);
  std::ranges::stable_sort(arrays, {}, [](const Statement* array) { return count_bytes(*array); });
  int64_t on_stack = 0, in_scratch = 0;
  for (Statement* array : arrays) {
    const int64_t bytes = count_bytes(*array);
    const bool fits = on_stack + bytes <= kMostStackBytes;
    if (!fits) array->expr = std::to_string(in_scratch);
    (fits ? on_stack : in_scratch) += bytes;
  }
  return in_scratch;
}

}  // namespace stitch
