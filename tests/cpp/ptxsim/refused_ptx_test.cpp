// Texts that are refused: the message names the line, what is wrong, and what was meant.
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "ptxsim/isa/module.h"

namespace stitch::ptxsim {
namespace {

std::string refusal(const std::string& text) {
  try {
    load_module(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "loaded";
}

const std::string kRefused = ".version 8.5\n.target sm_90a\n.address_size 64\n";

// In the body of a kernel, on line 5.
std::string body_refusal(const std::string& line) {
  return refusal(
      kRefused +
      ".entry k(.param .u64 k0) { .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>;\n" + line +
      "\n}\n");
}

struct Case {
  const char* text;
  const char* message;
};

TEST(RefusedPtx, Instructions) {
  const Case cases[] = {
      {"ad.s32 %r1, %r2, %r3;", "unknown instruction `ad.s32`; nearest: `add`"},
      {"add.s33 %r1, %r2, %r3;", "nearest: `s32`"},
      {"add.foo.s32 %r1, %r2, %r3;", "`foo` is not allowed"},
      {"mul.lo.s32.s32 %r1, %r2, %r3;", "`s32` is not allowed"},
      {"add %r1, %r2, %r3;", "needs a type"},
      {"ld.acquire.global.u32 %r1, [%d1];", "needs a scope"},
      {"ld.gpu.global.u32 %r1, [%d1];", "has a scope and no order"},
      {"shfl.sync.b32 %r1, %r2, 1, 31, -1;", "needs one of"},
      {"setp.s32 %p1, %r1, %r2;", "needs a comparison"},
      {"add.s32 %r1, %r2;", "has 2 operands, it takes 3"},
      {"add.s32 %r1, %r2, %x1;", "`%x1` is not declared"},
      {"add.s32 %r1, %r2, %r8;", "`%r8` is not declared"},
      {"add.s32 %r1, %r2, %d1;", "`%d1` is .b64, the instruction takes .b32"},
      {"add.s32 5, %r2, %r3;", "the destination is no register"},
      {"add.f32 %r1, %r2, 1;", "a floating constant is wanted"},
      {"@%r1 ret;", "`%r1` is not a predicate"},
      {"bra nowhere;", "`nowhere` is not declared"},
      {"bra %r1;", "is not a label"},
      {"brx.idx %r1, L; L: ret;", "is not a label of .branchtargets"},
      {"T: .branchtargets L; brx.idx %r1, T;", "`L` of the branch table is not a label"},
      {"ld.global.v2.u32 %r1, [%d1];", "takes 2 elements"},
      {"ld.shared.u32 %r1, [k0];", "is not in the space"},
      {"ld.global.u32 %r1, %d1;", "an [address] is wanted"},
      {"call nobody, ();", "`nobody` is not declared"},
      {"call %d1, ();", "indirect calls are not simulated"},
      {"call k, (k0);", "is a kernel"},
      {"mov.u32 %r1, %tid.w;", "nearest: `%tid.x`"},
      {"tcgen05.mma.x %r1;", "unknown instruction"},
  };
  for (const Case& row : cases) {
    const std::string message = body_refusal(row.text);
    EXPECT_EQ(message.find("PTX line 5: "), 0u) << row.text << "\n" << message;
    EXPECT_NE(message.find(row.message), message.npos) << row.text << "\n" << message;
    EXPECT_NE(message.find(std::string("5 | ") + row.text), message.npos) << message;
  }
}

TEST(RefusedPtx, Directives) {
  const Case cases[] = {
      {"", "PTX begins with .version"},
      {".version 7.7\n.target sm_90", "line 1: PTX 7.7 is too old"},
      {".version 8.0\n.target sm_90b", "line 2: unknown target `sm_90b`; nearest: `sm_90`"},
      {".version 8.0\n", "no .target"},
      {".version 8.0\n.target sm_90\n.address_size 32", "line 3: only .address_size 64"},
      {".version 8.0\n.target sm_90\n.entri k() {}",
       "unknown directive `.entri`; nearest: `.entry`"},
      {".version 8.0\n.target sm_90\n.entry k() {", "found the end of the text"},
      {".version 8.0\n.target sm_90\n.entry k() { /* }", "comment without end"},
      {".version 8.0\n.target sm_90\n.entry k() {} .entry k() {}", "`k` is declared twice"},
      {".version 8.0\n.target sm_90\n.entry k() .maxntid 0 {}", "1 to 1024"},
      {".version 8.0\n.target sm_90\n.shared .b8 x[99999999999];", "bytes at most"},
      {".version 8.0\n.target sm_90\n.global .b8 x[65536][65536][65536];", "bytes at most"},
      {".version 8.0\n.target sm_90\n.global .b8 x[2] = {1, 2, 3};", "more initial values"},
      {".version 8.0\n.target sm_90\n.global .u64 x = nobody;", "`nobody` is not a variable"},
      {".version 8.0\n.target sm_90\n.global .align 3 .b8 x;", "a power of two"},
      {".version 8.0\n.target sm_90\n.global .b8 \x01x;", "the name of a variable"},
      {".version 8.0\n.target sm_90\n.func f() { call f, (); }", "calls itself"},
      {".version 8.0\n.target sm_90\n.func f(); .entry k() { call f, (); }", "has no body"},
      {".version 8.0\n.target sm_90\n.func f(.reg .b32 x) {}", "are of .param"},
      {".version 8.0\n.target sm_90\n.entry k() { .loc 1 2 3, inlined 1; }", "unknown word"},
  };
  for (const Case& row : cases) {
    const std::string message = refusal(row.text);
    EXPECT_NE(message.find(row.message), message.npos) << row.text << "\n" << message;
  }
}

TEST(RefusedPtx, NestingAndLengthAreBounded) {
  const std::string start = kRefused + ".entry k() ";
  EXPECT_NE(refusal(start + std::string(1'000'000, '{')).find("nested too deep"),
            std::string::npos);
  const std::string name(1'000'000, 'x');
  EXPECT_LT(refusal(start + "{ " + name + "; }").size(), 1000u);
  EXPECT_NE(refusal(start + "{ .reg .b32 %r<4000000000>; mov.u32 %r1, %r3999999999; }")
                .find("is not declared"),
            std::string::npos);
}

// Every prefix of a text either loads or is refused with a line.
TEST(RefusedPtx, TruncatedTexts) {
  const std::string text = kRefused +
                           ".func (.param .b32 r) f(.param .b32 a) { .reg .b32 %r; ret; }\n"
                           ".entry k(.param .u64 k0) .maxntid 32 { .reg .b32 %r<4>; .reg .pred p;\n"
                           "{ .param .b32 a; .param .b32 r; call.uni (r), f, (a); }\n"
                           ".loc 1 2 3, function_name $L, inlined_at 1 4 5\n"
                           "@!p st.global.v2.u32 [%r1+0x10], {%r1, 1.5e3}; L: bra.uni L; }";
  for (size_t size = 0; size < text.size(); ++size) {
    const std::string message = refusal(text.substr(0, size));
    EXPECT_TRUE(message == "loaded" || message.find("PTX line ") == 0) << size << "\n" << message;
  }
}

}  // namespace
}  // namespace stitch::ptxsim
