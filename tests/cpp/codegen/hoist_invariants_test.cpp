// What stands before a loop over blocks: of bodies made here, and in the texts of phases.
#include <gtest/gtest.h>

#include "base/words.h"
#include "codegen/kernel_body.h"
#include "plan/plan_graph.h"

namespace stitch {
namespace {

Statement combine(const std::string& name, const std::string& value) {
  const std::string exchange = "reinterpret_cast<f32*>(shared)";
  return {Statement::Kind::kReduce, "f32", name,
          "all_reduce<Max, 255u, 256>(f32(" + value + "), " + exchange + ")"};
}

Statement loop(const std::string& index, std::vector<Statement> body) {
  Statement statement{Statement::Kind::kLoop, "i32", index, "0"};
  statement.bound = "4";
  statement.body = std::move(body);
  return statement;
}

struct Hoisted {
  KernelBody before, loop;
};
Hoisted hoist(std::vector<Statement> statements, const std::set<std::string>& more = {}) {
  std::set<std::string> variant = {"block", "take_slot", "p1"};
  variant.insert(more.begin(), more.end());
  auto [before, loop] = split_invariant({std::move(statements)}, variant);
  return {before, loop};
}

// The maximum of 1,024 numbers, then one number of each block's divided by it.
std::vector<Statement> scaled() {
  return {
      Statement::let("i32", "g0", "block"),
      Statement::let("i32", "t0", "tid() & 255"),
      Statement::var("f32", "s_0"),
      Statement::var("f32", "s_1", "Max::identity<f32>()"),
      loop("i0",
           {Statement::let("i32", "x0", "t0 + (i0) * 256"), Statement::let("f32", "s_2", "p0[x0]"),
            Statement::assign("s_1", "Max::apply(s_1, s_2)")}),
      combine("s_3", "s_1"),
      Statement::assign("s_0", "s_3"),
      Statement::assign("p1[g0]", "div(p0[g0], s_0)", "t0 == 0"),
  };
}

TEST(HoistInvariants, WhatDoesNotDependOnTheBlockGoesBeforeTheLoop) {
  const Hoisted split = hoist(scaled());
  EXPECT_EQ(to_string(split.loop),
            "  const i32 g0 = block;\n"
            "  if (t0 == 0) p1[g0] = div(p0[g0], s_0);\n");
  KernelBody before{scaled()};
  before.pop_back();
  before.erase(before.begin());
  EXPECT_EQ(to_string(split.before), to_string(before));
}

TEST(HoistInvariants, WhatDependsOnTheBlockStays) {
  std::vector<Statement> statements = scaled();
  statements[4].body[0].expr += " + g0 * 1024";
  EXPECT_TRUE(hoist(statements).before.empty()) << "through names of a loop's own";
  statements = scaled();
  statements[3].expr = "p0[g0]";
  EXPECT_TRUE(hoist(statements).before.empty()) << "through what a loop adds to";
}

TEST(HoistInvariants, ALoadOfWhatTheStageStoresStays) {
  EXPECT_TRUE(hoist(scaled(), {"p0"}).before.empty());
}

TEST(HoistInvariants, SharedMemoryHoldsNothingOverTheLoop) {
  std::vector<Statement> statements = scaled();
  statements[4].body[1].expr = "take_slot<f32, 256>(shared + 0, i0)";
  EXPECT_TRUE(hoist(statements).before.empty());
}

TEST(HoistInvariants, AVariableThatIsSetAgainAfterItsReaderStays) {
  std::vector<Statement> statements = scaled();
  statements.push_back(Statement::assign("s_0", "0x0p+0f"));
  for (const Statement& statement : hoist(statements).before) EXPECT_NE(statement.name, "s_0");
}

TEST(HoistInvariants, ArraysThatTheLoopReadsStay) {
  std::vector<Statement> statements = scaled();
  statements[2] = Statement::array("f32", "s_0", 4);
  statements[6] = Statement::assign("s_0[0]", "s_3");
  statements[7].expr = "div(p0[g0], s_0[0])";
  const Hoisted split = hoist(statements);
  EXPECT_EQ(to_string(split.loop),
            "  const i32 g0 = block;\n"
            "  STITCH_ARRAY(f32, s_0, 4);\n"
            "  s_0[0] = s_3;\n"
            "  if (t0 == 0) p1[g0] = div(p0[g0], s_0[0]);\n");
}

TEST(HoistInvariants, ManyValuesWouldTakeTheRegistersOfTheLoop) {
  std::vector<Statement> statements = scaled();
  const Statement store = statements.back();
  for (int i = 10; i < 30; ++i) {
    statements.push_back(Statement::let("f32", concat("s_", i), concat("mul(s_0, ", i, ")")));
    statements.push_back(store);
    statements.back().expr = concat("s_", i);
  }
  EXPECT_TRUE(hoist(statements).before.empty());
}

TEST(HoistInvariants, VariablesThatACallOfTheLoopSetsStay) {
  std::vector<Statement> statements = scaled();
  statements.insert(statements.end() - 1, Statement::call("add_exactly(s_0, s_1, g0)"));
  EXPECT_TRUE(hoist(statements).before.empty());
}

TEST(HoistInvariants, ArithmeticAloneDoesNotPay) {
  EXPECT_TRUE(
      hoist({Statement::let("i32", "t0", "tid() & 255"), Statement::let("f32", "s_0", "p0[t0]"),
             Statement::assign("p1[block]", "s_0", "")})
          .before.empty());
}

// Phase 0 reduces rows of %x, phase 1 combines them and scales %y, which no thread keeps.
std::string scale(const std::string& end) {
  return R"(
    %x = input : f32[613,1024]
    %y = input : f32[613,1024]
    %s = amax(amax(%x){axes=[1]})
    %z = div(%y, %s)
  )" + end;
}

TEST(HoistInvariants, APhaseCombinesBeforeItsLoopOverBlocks) {
  const std::string text = emit_planned(plan_graph(scale("outputs (%z)"), "h200"), 0).text;
  const size_t stage = text.find("void stage_1(Backward<i32> turns, ");
  ASSERT_NE(stage, std::string::npos) << text;
  const size_t end = text.find("if (!turns.are_left()) return;", stage);
  const size_t combined = text.find("all_reduce<Max, ", stage);
  const size_t loop = text.find("  for (; turns.are_left(); turns.next()) {", stage);
  EXPECT_LT(end, combined) << "blocks without work of the phase's: " << text;
  EXPECT_LT(combined, loop) << text;
  EXPECT_LT(loop, text.find("const i32 block = i32(turns.block);", stage)) << text;
  EXPECT_EQ(text.find("all_reduce", loop), std::string::npos) << text;
  EXPECT_TRUE(holds(text, "stage_1(backward<i32>(613, i64(613) <= grid_blocks()), ")) << text;
}

// All of %y is new to its phase: nothing is gained where %x too is reduced by resident blocks.
TEST(HoistInvariants, PhasesBeforeItHaveAllTheirBlocks) {
  const KernelSource source = emit_planned(plan_graph(scale("outputs (%z)"), "h200"), 0);
  EXPECT_EQ(source.in_turns, std::vector<size_t>{1});
}

TEST(HoistInvariants, APhaseThatStoresOverWhatItReadsToo) {
  const Planned planned = plan_graph(scale("mutate %y <- %z\noutputs (none)"), "h200");
  const Mutation& mutation = planned.graph.mutations[0];
  const std::string text =
      emit_planned(planned, 0, {false, {{mutation.value, mutation.input}}}).text;
  const size_t loop = text.find("for (; turns.are_left()");
  ASSERT_NE(loop, std::string::npos) << text;
  EXPECT_NE(text.find("load_vec", loop), std::string::npos) << "of %y, block by block: " << text;
}

TEST(HoistInvariants, BlocksThatKeepWhatTheyReadHaveNoLoopToHoistFrom) {
  const std::string text = emit_planned(plan_graph(R"(
    %x = input : bf16[256,32768]
    %y = div(%x, amax(amax(%x){axes=[1]}))
    outputs (%y)
  )",
                                                   "h200"),
                                        0)
                               .text;
  EXPECT_TRUE(holds(text, "has_k0") && !holds(text, "end_block")) << text;
}

}  // namespace
}  // namespace stitch
