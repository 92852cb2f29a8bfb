// PTX text to Module: units, variables, calls, branches, source lines.
#include "ptxsim/isa/module.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace stitch::ptxsim {
namespace {

const std::string kHead = ".version 8.5\n.target sm_90a\n.address_size 64\n";

std::shared_ptr<const Module> load_body(const std::string& body) {
  return load_module(kHead +
                     ".visible .entry k(.param .u64 k0, .param .u32 k1) {\n"
                     ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<20>; .reg .b64 %d<8>;\n"
                     ".reg .f32 %f<8>;\n" +
                     body + "\n}\n");
}

// The n-th instruction of that opcode.
const Instruction& find(const Module& module, Opcode opcode, int n = 0) {
  for (const Instruction& instruction : module.code) {
    if (instruction.opcode == opcode && n-- == 0) return instruction;
  }
  throw std::runtime_error("the module has no such instruction");
}

const Constant& constant(const Function& function, uint32_t unit) {
  for (const Constant& constant : function.constants) {
    if (constant.unit == unit) return constant;
  }
  throw std::runtime_error("the unit is no constant");
}

TEST(LoadModule, RegistersTakeUnitsOfTheirWidthAndImmediatesAreShared) {
  const auto module = load_body("add.s32 %r1, %r2, 7; add.s64 %d1, %d2, 7; sub.s32 %r3, %r1, 7;");
  const Instruction& add = find(*module, Opcode::add);
  const Instruction& wide = find(*module, Opcode::add, 1);
  const Instruction& sub = find(*module, Opcode::sub);
  EXPECT_EQ(add.destinations, 1);
  EXPECT_EQ(add.operand_count, 3);
  EXPECT_EQ(sub.operands[1], add.operands[0]);
  EXPECT_EQ(sub.operands[2], add.operands[2]);
  EXPECT_NE(wide.operands[2], add.operands[2]);
  const Function& kernel = *module->find_entry("k");
  EXPECT_EQ(constant(kernel, wide.operands[2]).type, Type::b64);
  EXPECT_EQ(constant(kernel, add.operands[2]).bits, 7u);
  EXPECT_EQ(kernel.units, 2u + 1 + 2 * 3);  // %r3 begins where %r2 has ended
}

TEST(LoadModule, ImmediatesKeepTheirBits) {
  const auto module = load_body(
      "mov.f32 %f1, 0fFFC00001; mov.f32 %f2, -1.5; mov.u32 %r1, -1; mov.b32 %r2, 0f3F800000;\n"
      "mov.u32 %r3, 017; mov.u32 %r4, 0b101; mov.u16 %h1, -2; mov.u64 %d1, 0xffffffffffffffff;\n"
      "mov.pred %p1, -1; mov.u32 %r5, WARP_SZ; mov.u32 %r6, ~0;");
  const Function& kernel = *module->find_entry("k");
  const uint64_t expected[] = {0xFFC00001, 0xBFC00000, 0xFFFFFFFF, 0x3F800000, 15,        5,
                               0xFFFE,     ~0ull,      0xFFFFFFFF, 32,         0xFFFFFFFF};
  for (int i = 0; i < 11; ++i) {
    EXPECT_EQ(constant(kernel, find(*module, Opcode::mov, i).operands[1]).bits, expected[i]) << i;
  }
}

TEST(LoadModule, NestedScopesHideNamesAndLabels) {
  const auto module = load_body(
      "mov.u32 %r1, 1; { .reg .b32 %r<2>; L: mov.u32 %r1, 2; bra L; }\n"
      "{ L: mov.u32 %r1, 3; @!%p1 bra L; }");
  const uint32_t outer = find(*module, Opcode::mov).operands[0];
  EXPECT_NE(find(*module, Opcode::mov, 1).operands[0], outer);
  EXPECT_EQ(find(*module, Opcode::mov, 2).operands[0], outer);
  EXPECT_EQ(find(*module, Opcode::bra).immediate, 1);
  EXPECT_EQ(find(*module, Opcode::bra, 1).immediate, 3);
  EXPECT_TRUE(find(*module, Opcode::bra, 1).guard_negated);
}

TEST(LoadModule, LocationsAreOfTheOutermostCall) {
  const auto module = load_body(
      ".loc 1 40 7\nmov.u32 %r1, 1;\n"
      ".loc 1 20 3, function_name $L__info_string3, inlined_at 1 40 7\nmov.u32 %r1, 2;\n"
      ".loc 1 5 9, function_name $L__info_string4+4, inlined_at 1 20 3\nmov.u32 %r1, 3;\n"
      ".loc 1 41 7\nmov.u32 %r1, 4;");
  const int lines[] = {40, 40, 40, 41};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(find(*module, Opcode::mov, i).source_line, lines[i]);
  EXPECT_EQ(find(*module, Opcode::mov, 1).line, 10);
}

TEST(LoadModule, VectorsAreFlattenedAndSinksLeftOut) {
  const auto module = load_body(
      "ld.global.nc.L1::no_allocate.v4.f32 {%f1, _, %f2, %f3}, [%d1+-16];\n"
      "st.shared.v2.f32 [%r1+8], {%f1, 0f3F800000}; mov.b32 {%h1, %h2}, %r1;\n"
      "mov.b32 %r2, {%h2, %h1}; ld.global.u8 %r3, [%d1];");
  const Instruction& load = find(*module, Opcode::ld);
  EXPECT_EQ(load.destinations, 4);
  EXPECT_EQ(load.operands[1], kNoUnit);
  EXPECT_EQ(load.immediate, -16);
  EXPECT_EQ(load.vector, 4);
  EXPECT_TRUE(load.modifiers.non_coherent);
  const Instruction& store = find(*module, Opcode::st);
  EXPECT_EQ(store.address_bytes, 4);
  EXPECT_EQ(store.destinations, 0);
  EXPECT_EQ(store.operand_count, 3);
  EXPECT_EQ(find(*module, Opcode::unpack).destinations, 2);
  EXPECT_EQ(find(*module, Opcode::pack).vector, 2);
  EXPECT_EQ(find(*module, Opcode::ld, 1).register_bytes, 4);
}

TEST(LoadModule, OptionalOperandsAlwaysHaveAPlace) {
  const auto module = load_body(
      "setp.lt.s32 %p1, %r1, %r2; setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;\n"
      "bar.red.popc.u32 %r1, 0, %p1; addc.u32 %r1, %r2, %r3; add.cc.u32 %r1, %r2, %r3;");
  const Instruction& alone = find(*module, Opcode::setp);
  EXPECT_EQ(alone.operands[1], kNoUnit);
  EXPECT_EQ(alone.operands[4], kNoUnit);
  EXPECT_EQ(alone.destinations, 2);
  const Instruction& both = find(*module, Opcode::setp, 1);
  EXPECT_EQ(both.modifiers.word, Word::and_);
  EXPECT_EQ(both.operands[4], find(*module, Opcode::not_).operands[0]);
  EXPECT_EQ(find(*module, Opcode::bar_red_popc).operands[2], kNoUnit);
  const Instruction& reads = find(*module, Opcode::addc);
  const Instruction& writes = find(*module, Opcode::add_cc);
  EXPECT_EQ(reads.operands[1], kNoUnit);
  EXPECT_EQ(reads.operands[4], writes.operands[1]);
  EXPECT_TRUE(writes.modifiers.carry_out);
}

TEST(LoadModule, OrdersAndScopesHaveTheDefaultsOfTheIsa) {
  const auto module = load_body(
      "atom.global.add.u32 %r1, [%d1], 1; ld.volatile.global.u32 %r1, [%d1]; membar.gl;\n"
      "fence.sc.sys; ld.acquire.gpu.global.u32 %r1, [%d1]; st.u32 [%d1], %r1;");
  EXPECT_EQ(find(*module, Opcode::atom).modifiers.order, Order::relaxed);
  EXPECT_EQ(find(*module, Opcode::atom).modifiers.scope, Scope::gpu);
  EXPECT_TRUE(find(*module, Opcode::ld).modifiers.is_volatile);
  EXPECT_EQ(find(*module, Opcode::ld).modifiers.order, Order::relaxed);
  EXPECT_EQ(find(*module, Opcode::membar).modifiers.order, Order::sc);
  EXPECT_EQ(find(*module, Opcode::fence).modifiers.scope, Scope::sys);
  EXPECT_EQ(find(*module, Opcode::ld, 1).modifiers.order, Order::acquire);
  EXPECT_EQ(find(*module, Opcode::st).modifiers.space, Space::generic);
}

TEST(LoadModule, BranchTablesHoldPositions) {
  const auto module = load_body(
      "T: .branchtargets A, B, END; @%p1 brx.idx %r1, T;\nA: mov.u32 %r1, 1;\n"
      "B: mov.u32 %r1, 2;\nEND:");
  ASSERT_EQ(module->branch_tables.size(), 1u);
  EXPECT_EQ(module->branch_tables[0], (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(module->code[3].opcode, Opcode::ret);
}

TEST(LoadModule, ConversionsOfWideRegistersSeeTheirTypesWidth) {
  const auto module = load_body("cvt.u32.u8 %r1, %r2; @%p1 cvt.s8.s32 %r3, %r1;");
  ASSERT_EQ(module->code.size(), 5u);
  const auto& code = module->code;
  EXPECT_EQ(code[0].type, Type::u16);  // cuts
  EXPECT_EQ(code[1].operands[1], code[0].operands[0]);
  EXPECT_EQ(code[3].type, Type::s32);  // extends, under the same guard
  EXPECT_EQ(code[3].operands[1], code[2].operands[0]);
  EXPECT_EQ(code[3].guard, code[2].guard);
}

TEST(LoadModule, ArgumentsOfCallsAreTheCalleesOwn) {
  const auto module = load_module(
      kHead +
      ".func (.param .b32 r0) f(.param .align 8 .b8 a[24], .param .b32 b) {\n"
      ".reg .b32 %r<4>; ld.param.b32 %r1, [a+16]; ld.param.b32 %r2, [b];\n"
      "st.param.b32 [r0], %r1; ret; }\n"
      ".entry k() { .reg .b32 %r<4>; .local .b8 own[16]; .reg .b64 %d; mov.u64 %d, own;\n"
      "{ .param .align 8 .b8 p0[24]; .param .b32 p1; .param .b32 q;\n"
      "st.param.b32 [p0+16], %r1; st.param.b32 [p1], %r2; call.uni (q), f, (p0, p1);\n"
      "ld.param.b32 %r3, [q]; } ret; }\n");
  const Function& kernel = *module->find_entry("k");
  const Instruction& call = find(*module, Opcode::call);
  EXPECT_EQ(call.immediate, 0);
  EXPECT_EQ(find(*module, Opcode::ret).operands[0], call.operands[0]);
  EXPECT_EQ(find(*module, Opcode::ret, 1).operand_count, 0);
  EXPECT_EQ(find(*module, Opcode::ld).modifiers.space, Space::local);
  const auto offset = [&](const Instruction& instruction, int operand) {
    return constant(kernel, instruction.operands[static_cast<size_t>(operand)]).bits;
  };
  EXPECT_EQ(offset(find(*module, Opcode::ld), 1), offset(find(*module, Opcode::st, 1), 0));
  EXPECT_EQ(offset(find(*module, Opcode::ld, 1), 1), offset(find(*module, Opcode::st, 2), 0));
  EXPECT_EQ(offset(find(*module, Opcode::st), 0), offset(find(*module, Opcode::ld, 2), 1));
  EXPECT_EQ(kernel.local_bytes, 4u + 4 + 24 + 4 + 16);
}

TEST(LoadModule, VariablesAreLaidOutPerKernel) {
  const auto module = load_module(
      kHead +
      ".extern .shared .align 16 .b8 dynamic[]; .shared .align 4 .b8 both[20];\n"
      ".const .align 4 .b32 c[3] = {1, -2}; .global .align 8 .u64 p[2] = {c, generic(g)+4};\n"
      ".global .align 8 .f32 g = 0f3F800000;\n"
      ".entry one() { .reg .b64 %d; mov.u64 %d, both; mov.u64 %d, dynamic; ret; }\n"
      ".entry two() { .reg .b64 %d; .shared .b32 own[8]; mov.u64 %d, own; mov.u64 %d, g; ret; }");
  const Function& one = *module->find_entry("one");
  EXPECT_EQ(one.shared_bytes, 32u);
  EXPECT_EQ(one.constants.back().bits, 32u);
  const Function& two = *module->find_entry("two");
  EXPECT_EQ(two.shared_bytes, 32u);
  EXPECT_TRUE(two.constants.back().is_global_address);
  EXPECT_EQ(two.constants.back().bits, 16u);
  EXPECT_EQ(module->const_bytes, 12u);
  EXPECT_EQ(module->variables[0].initial, std::string("\1\0\0\0\xfe\xff\xff\xff", 8));
  ASSERT_EQ(module->variables[1].addresses.size(), 2u);
  EXPECT_EQ(module->variables[1].addresses[1].offset, 20u);
  EXPECT_TRUE(module->variables[1].addresses[1].generic);
}

TEST(LoadModule, ParametersOfKernelsAreAligned) {
  const auto module = load_module(kHead +
                                  ".entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b,\n"
                                  ".param .align 4 .b8 c[12]) .maxntid 64, 2 .minnctapersm 3\n"
                                  "{ ret; }");
  const Function& kernel = *module->find_entry("k");
  EXPECT_EQ(kernel.parameters[1].offset, 8u);
  EXPECT_EQ(kernel.parameters[2].type, Type::b8);
  EXPECT_EQ(kernel.parameter_bytes, 28u);
  EXPECT_EQ(kernel.max_threads, (std::array<uint32_t, 3>{64, 2, 1}));
  EXPECT_EQ(kernel.min_blocks, 3u);
  EXPECT_EQ(module->find_entry("other"), nullptr);
}

}  // namespace
}  // namespace stitch::ptxsim
