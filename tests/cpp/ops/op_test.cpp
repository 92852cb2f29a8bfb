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

TEST(LibraryEffects, WritingAndSpeakingCallsHaveEffects) {
  for (const char* name : {"aten.copy_.default", "aten.add.out", "_c10d_functional.wait_tensor",
                           "mylib.custom.default", "aten._assert_async.msg"})
    EXPECT_TRUE(has_effects(name)) << name;
  for (const char* name : {"aten.mm.default", "aten.convolution.default",
                           "aten.poisson_nll_loss.default", "torch_stitch.random.default"})
    EXPECT_FALSE(has_effects(name)) << name;
}

TEST(LibraryEffects, RandomDrawsAreOneThatTheCallSays) {
  Node node;
  node.op = OpKind::k_library;
  node.name = "aten._standard_gamma.default";
  EXPECT_FALSE(has_effects(node));
  node.ints = {1};
  EXPECT_TRUE(has_effects(node));
  node.op = OpKind::k_get;
  EXPECT_FALSE(has_effects(node));
}

TEST(LibraryEffects, OnlyWritingCallsMayWriteOperands) {
  EXPECT_TRUE(may_write_operands("aten.index_put_.default"));
  EXPECT_TRUE(may_write_operands("mylib.custom.default"));
  EXPECT_FALSE(may_write_operands("aten.rand.default"));
  EXPECT_FALSE(may_write_operands("aten.mm.default"));
  EXPECT_FALSE(may_write_operands("torch_stitch.random.default"));
}

}  // namespace
}  // namespace stitch
