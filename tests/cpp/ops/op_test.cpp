#include "ops/op.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "base/error.h"
#include "ir/graph.h"
#include "ops/library_calls.h"

namespace stitch {
namespace {

TEST(OpTable, EveryRowIsFoundByKindAndByName) {
  ASSERT_EQ(all_ops().size(), static_cast<size_t>(OpKind::kCount));
  for (const OpInfo& row : all_ops()) {
    EXPECT_EQ(&info(row.kind), &row);
    EXPECT_EQ(op_from_name(row.name), row.kind);
  }
}

TEST(OpTable, PointwiseRowsNameADeviceFunctionAndReductionsAnIdentity) {
  for (const OpInfo& row : all_ops()) {
    EXPECT_NE(row.doc[0], '\0') << row.name;
    EXPECT_LE(row.instructions.special, row.instructions.narrow) << row.name;
    if (row.family == Family::kPointwise) {
      EXPECT_NE(row.function[0], '\0') << row.name;
    }
    if (row.family == Family::kReduce) {
      EXPECT_NE(row.identity[0], '\0') << row.name;
    }
  }
}

TEST(OpTable, NoOverloadIsImportedByTwoRows) {
  std::set<std::string> seen;
  for (const OpInfo& row : all_ops()) {
    std::istringstream overloads(row.aten);
    for (std::string overload; overloads >> overload;)
      EXPECT_TRUE(seen.insert(overload).second) << overload;
  }
}

TEST(OpTable, UnknownNameSuggestsTheNearest) {
  try {
    op_from_name("sigmoit");
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("'sigmoid'"), std::string::npos) << error.what();
  }
}

TEST(LibraryEffects, AreOneNumberThatTheCallSays) {
  Node node;
  node.op = OpKind::k_library;
  node.name = "aten.copy_.default";  // names say nothing
  EXPECT_FALSE(has_effects(node) || may_write_operands(node));
  node.ints = {kRunsInOrder};
  EXPECT_TRUE(has_effects(node));
  EXPECT_FALSE(may_write_operands(node));
  node.ints = {kWritesOperands};
  EXPECT_TRUE(has_effects(node) && may_write_operands(node));
  node.ints = {1, 1, 0, 0};  // a convolution
  EXPECT_FALSE(has_effects(node) || may_write_operands(node));
  node.op = OpKind::k_get;
  node.ints = {kWritesOperands};
  EXPECT_FALSE(has_effects(node) || may_write_operands(node));
}

TEST(LibraryEffects, APutSaysWhetherItsCallWrites) {
  Node node;
  node.op = OpKind::k_put_sum;
  node.ints = {0, 0, 1, -1};
  EXPECT_FALSE(may_write_operands(node));
  node.ints.push_back(kWritesOperands);
  EXPECT_TRUE(may_write_operands(node));
  EXPECT_FALSE(has_effects(node));
}

}  // namespace
}  // namespace stitch
