// Branches, calls, exits and how diverged lanes meet again.
#include "ptxsim/launch_ptx.h"

namespace stitch::ptxsim {
namespace {

const char* kStoreCount = "add.u64 %d11, %d1, %d10; st.global.u32 [%d11], %r20;";

TEST(InterpretControl, IfAndElseMeetAgain) {
  Buffer out = buffer<uint32_t>(64, kOutput), masks = buffer<uint32_t>(64, kOutput);
  expect_clean({.body = std::string(R"(
      and.b32 %r21, %r1, 1; setp.eq.u32 %p1, %r21, 0;
      @%p1 bra even;
      mul.lo.u32 %r20, %r1, 3;
      bra.uni join;
      even: mul.lo.u32 %r20, %r1, 5;
      join: bar.warp.sync -1;
      activemask.b32 %r22; add.u64 %d12, %d2, %d10; st.global.u32 [%d12], %r22;)") +
                        kStoreCount,
                .buffers = {&out, &masks},
                .block = 64});
  for (uint32_t lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(out.as<uint32_t>()[lane], lane * (lane % 2 ? 3 : 5));
    EXPECT_EQ(masks.as<uint32_t>()[lane], 0xffffffffu);
  }
}

TEST(InterpretControl, LoopsOfDifferentLengths) {
  Buffer out = buffer<uint32_t>(32, kOutput);
  expect_clean({.body = std::string(R"(
      mov.u32 %r20, 0; mov.u32 %r21, 0;
      head: setp.ge.u32 %p1, %r21, %r1; @%p1 bra done;
      add.u32 %r21, %r21, 1; add.u32 %r20, %r20, %r21; bra head;
      done:)") + kStoreCount,
                .buffers = {&out}});
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out.as<uint32_t>()[lane], lane * (lane + 1) / 2);
  }
}

// Nobody can go on before lane 31: those that spin must let it.
TEST(InterpretControl, LanesThatSpinLetOthersOfTheirWarpGoOn) {
  Buffer flag = buffer<uint32_t>(1), out = buffer<uint32_t>(32, kOutput);
  expect_clean({.body = R"(
      setp.eq.u32 %p1, %r1, 31; @%p1 bra last;
      spin: ld.acquire.gpu.global.u32 %r20, [%d1]; setp.eq.u32 %p2, %r20, 0; @%p2 bra spin;
      bra.uni join;
      last: mov.u32 %r20, 1; st.release.gpu.global.u32 [%d1], %r20;
      join: add.u64 %d11, %d2, %d10; st.global.u32 [%d11], %r20;)",
                .buffers = {&flag, &out}});
  for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out.as<uint32_t>()[lane], 1u);
}

TEST(InterpretControl, IndexedBranches) {
  Buffer out = buffer<uint32_t>(32, kOutput);
  expect_clean({.body = std::string(R"(
      rem.u32 %r21, %r1, 3;
      ts: .branchtargets b0, b1, b2;
      brx.idx %r21, ts;
      b0: mov.u32 %r20, 100; bra.uni join;
      b1: mov.u32 %r20, 101; bra.uni join;
      b2: mov.u32 %r20, 102;
      join:)") + kStoreCount,
                .buffers = {&out}});
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out.as<uint32_t>()[lane], 100 + lane % 3);
  }
}

const char* kFunctions = R"(
    .func (.param .b32 result) twice(.param .b32 x) {
      .reg .b32 %a; ld.param.b32 %a, [x]; add.u32 %a, %a, %a; st.param.b32 [result], %a; ret; }
    .func (.param .b32 result) triple_if_odd(.param .b32 x) {
      .reg .b32 %a, %b; .reg .pred %q; ld.param.b32 %a, [x]; and.b32 %b, %a, 1;
      setp.eq.u32 %q, %b, 0; st.param.b32 [result], %a; @%q ret;
      { .param .b32 in; .param .b32 out; st.param.b32 [in], %a; call (out), twice, (in);
        ld.param.b32 %b, [out]; } add.u32 %a, %a, %b; st.param.b32 [result], %a; ret; }
)";

std::string call(const std::string& function, const std::string& guard = "") {
  return "{ .param .b32 in; .param .b32 out; st.param.b32 [in], %r1; " + guard + " call (out), " +
         function + ", (in); " + guard + " ld.param.b32 %r20, [out]; }";
}

TEST(InterpretControl, CallsReturnEachLaneToItsOwnPlace) {
  Buffer out = buffer<uint32_t>(64, kOutput);
  expect_clean({.body = "setp.lt.u32 %p1, %r1, 7; @%p1 bra other;" + call("triple_if_odd") +
                        "bra.uni join; other:" + call("twice") + "join:" + kStoreCount,
                .buffers = {&out},
                .block = 64,
                .globals = kFunctions});
  for (uint32_t lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(out.as<uint32_t>()[lane], lane < 7 ? 2 * lane : lane % 2 ? 3 * lane : lane);
  }
}

TEST(InterpretControl, GuardedCalls) {
  Buffer out = buffer<uint32_t>(32, kOutput);
  expect_clean({.body = "setp.lt.u32 %p1, %r1, 7; mov.u32 %r20, 5;" +
                        call("triple_if_odd", "@%p1") + kStoreCount,
                .buffers = {&out},
                .globals = kFunctions});
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out.as<uint32_t>()[lane], lane >= 7 ? 5 : lane % 2 ? 3 * lane : lane);
  }
}

TEST(InterpretControl, LanesExitByThemselves) {
  Buffer out = buffer<uint32_t>(32, kAny, 9u);
  expect_clean({.body = "setp.lt.u32 %p1, %r1, 5; @%p1 exit; setp.gt.u32 %p1, %r1, 20; @%p1 ret;"
                        "mov.u32 %r20, 1;" +
                        std::string(kStoreCount),
                .buffers = {&out}});
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out.as<uint32_t>()[lane], lane < 5 || lane > 20 ? 9u : 1u);
  }
}

TEST(InterpretControl, TheEndOfTheTextIsAReturn) {
  const std::string entry = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {";
  for (const std::string body : {".reg .pred %p; setp.eq.u32 %p, 1, 2; @%p ret; }", "}"}) {
    LoadedModule module = instantiate(load_module(entry + body));
    Launch launch;
    launch.module = &module;
    launch.kernel = module.module->find_entry("k");
    const SimulationResult result = simulate(launch, {}, {});
    EXPECT_TRUE(result.findings.all.empty()) << all_findings(result);
  }
}

TEST(InterpretControl, BlocksThatAreNoMultipleOfAWarp) {
  Buffer out = buffer<uint32_t>(3 * 37, kOutput);
  expect_clean({.body = "mov.u32 %r20, %r3;" + std::string(kStoreCount),
                .buffers = {&out},
                .grid = 3,
                .block = 37});
  for (uint32_t thread = 0; thread < 3 * 37; ++thread) {
    EXPECT_EQ(out.as<uint32_t>()[thread], thread);
  }
}

TEST(InterpretControl, TrapsEndTheLaunch) {
  Buffer out = buffer<uint32_t>(32);
  for (bool checks : {true, false}) {
    PtxLaunch ptx{.body = "setp.eq.u32 %p1, %r3, 70; @%p1 trap;", .buffers = {&out}, .grid = 4};
    ptx.options.checks = checks;
    try {
      run_ptx(ptx);
      FAIL() << "a trap must end the launch";
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find("trap"), std::string::npos) << error.what();
    }
  }
}

// What NVRTC makes of a vector of which one element is read.
TEST(InterpretControl, HalvesOfAPackedRegisterAreKnownApart) {
  const std::string pack = "mov.b64 %d20, {%r1, %r40};";
  for (const std::string take : {"cvt.u32.u64 %r20, %d20;", "mov.b64 {%r20, %r41}, %d20;"}) {
    Buffer out = buffer<uint32_t>(32, kOutput);
    expect_clean({.body = pack + take + kStoreCount, .buffers = {&out}});
    for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out.as<uint32_t>()[lane], lane);
  }
  for (const std::string take :
       {"mov.b64 {%r41, %r20}, %d20;", "shr.u64 %d21, %d20, 32; cvt.u32.u64 %r20, %d21;",
        "mov.b64 %d20, {%r40, %r1}; cvt.u32.u64 %r20, %d20;"}) {
    Buffer out = buffer<uint32_t>(32, kOutput);
    expect_finding({.body = pack + take + kStoreCount, .buffers = {&out}},
                   FindingKind::uninitialized, "a register that nothing has given a value");
  }
}

// Conversions from bf16 to f32, unrolled.
TEST(InterpretControl, HalvesThatAreShiftedOutNeedNotBeKnown) {
  const std::string pack = "cvt.u16.u32 %h1, %r1; mov.b32 %r41, {%h1, %h40};";
  for (const std::string take :
       {"shl.b32 %r20, %r41, 16;", "mov.u32 %r42, 20; shl.b32 %r20, %r41, %r42;",
        "mov.b32 {%h2, %h3}, %r41; cvt.u32.u16 %r20, %h2;"}) {
    Buffer out = buffer<uint32_t>(32, kOutput);
    expect_clean({.body = pack + take + kStoreCount, .buffers = {&out}});
  }
  Buffer out = buffer<uint32_t>(32, kOutput);
  expect_clean({.body = "mov.b64 %d20, {%r1, %r40}; shl.b64 %d21, %d20, 32;"
                        "mov.b64 {%r41, %r20}, %d21;" +
                        std::string(kStoreCount),
                .buffers = {&out}});
  for (const std::string take :
       {"shl.b32 %r20, %r41, 15;", "shr.u32 %r20, %r41, 16;", "shl.b32 %r20, %r41, %r43;",
        "mov.b32 {%h2, %h3}, %r41; cvt.u32.u16 %r20, %h3;", "mov.u32 %r20, %r41;",
        "mov.b32 %r44, {%h40, %h1}; shl.b32 %r20, %r44, 16;", "shl.b32 %r20, %r43, 16;",
        "setp.lt.u32 %p1, %r1, 9; selp.u32 %r45, 15, 16, %p1; shl.b32 %r20, %r41, %r45;"}) {
    Buffer found = buffer<uint32_t>(32, kOutput);
    expect_finding({.body = pack + take + kStoreCount, .buffers = {&found}},
                   FindingKind::uninitialized, "a register that nothing has given a value");
  }
}

TEST(InterpretControl, RegistersNeverWritten) {
  Buffer in = buffer<uint32_t>(32, kInput), out = buffer<uint32_t>(32, kOutput);
  const std::vector<Buffer*> buffers = {&in, &out};
  const std::string store = "add.u64 %d11, %d2, %d10; st.global.u32 [%d11], %r1;";
  expect_finding({.body = "@%p5 add.u32 %r1, %r1, 0;" + store, .buffers = buffers},
                 FindingKind::uninitialized, "guard");
  expect_finding(
      {.body = "add.u64 %d12, %d1, %d40; ld.global.u32 %r30, [%d12];" + store, .buffers = buffers},
      FindingKind::uninitialized, "address");
  expect_finding({.body = "add.u64 %d11, %d2, %d10; add.u32 %r50, %r51, 1;"
                          "st.global.u32 [%d11], %r50;",
                  .buffers = buffers},
                 FindingKind::uninitialized, "");
  // What is never used, not chosen, or decided by the other side is no defect.
  expect_clean({.body = "add.u32 %r50, %r51, 1; setp.eq.u32 %p1, %r1, %r1;"
                        "selp.u32 %r52, %r1, %r50, %p1; setp.eq.u32 %p2, %r50, 3;"
                        "or.pred %p3, %p1, %p2; @%p3 mov.u32 %r1, %r52;" +
                        store,
                .buffers = buffers});
}

}  // namespace
}  // namespace stitch::ptxsim
