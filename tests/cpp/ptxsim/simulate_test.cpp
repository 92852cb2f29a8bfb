// simulate: orders, what stays, refusals, residency, deadlock, budget.
#include "base/error.h"
#include "ptxsim/launch_ptx.h"

namespace stitch::ptxsim {
namespace {

const char* kStoreThread = "add.u64 %d11, %d1, %d10; st.global.u32 [%d11], %r3;";

std::string refusal(const PtxLaunch& ptx) {
  try {
    run_ptx(ptx);
  } catch (const UserError& error) {
    return error.what();
  }
  return "was not refused";
}

TEST(Simulate, RefusesLaunchesThatADeviceRefuses) {
  Buffer out = buffer<uint32_t>(64);
  const auto says = [&](PtxLaunch ptx, const std::string& words) {
    ptx.buffers = {&out};
    EXPECT_NE(refusal(ptx).find(words), std::string::npos) << refusal(ptx);
  };
  says({.body = "", .grid = 0}, "grid");
  says({.body = "", .block = 0}, "block");
  says({.body = "", .block = 1025}, "block");
  says({.body = "", .grid = 0x80000000u}, "grid");
  says({.body = "", .dynamic_shared_bytes = 228 << 10}, "shared memory");
  says({.body = "", .block = 256, .directives = ".maxntid 128, 1, 1"}, ".maxntid");
  says({.body = "", .block = 64, .directives = ".reqntid 128, 1, 1"}, ".reqntid");
  PtxLaunch heavy{.body = "", .block = 1024};
  heavy.options.registers = 128;
  says(heavy, "does not fit");
}

TEST(Simulate, CountsBytesByTheWidthOfTheAccess) {
  Buffer in = buffer<uint32_t>(256, kInput), out = buffer<uint32_t>(256);
  PtxLaunch ptx{.body =
                    "mul.wide.u32 %d11, %r3, 16; add.u64 %d12, %d1, %d11;"
                    " add.u64 %d13, %d2, %d11; ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d12];"
                    " ld.global.u32 %r8, [%d1]; add.u32 %r4, %r4, %r8;"
                    " ld.volatile.global.u16 %h1, [%d1];"
                    " st.global.v2.u32 [%d13], {%r4, %r5};"
                    " st.global.v2.u32 [%d13+8], {%r6, %r7};",
                .buffers = {&in, &out},
                .block = 64};
  for (const bool checks : {true, false}) {
    ptx.options.checks = checks;
    const SimulationResult result = run_ptx(ptx);
    EXPECT_TRUE(result.findings.all.empty()) << all_findings(result);
    // One address that all lanes of two warps read moves its bytes once a warp.
    EXPECT_EQ(result.traffic.bytes, (std::array<uint64_t, 6>{0, 0, 8, 1024, 1024, 0}));
  }
}

TEST(Simulate, ParametersMustHaveTheirSize) {
  PtxLaunch ptx{.body = ""};
  LoadedModule module = instantiate(load_module(ptx_text(ptx)));
  Launch launch = make_launch(ptx, module);
  launch.parameters = "1234";
  EXPECT_THROW(simulate(launch, {}, {}), UserError);
}

TEST(Simulate, ResidentBlocksFollowEachLimit) {
  PtxLaunch ptx{.body = "", .block = 256};
  LoadedModule module = instantiate(load_module(ptx_text(ptx)));
  Launch launch = make_launch(ptx, module);
  const Machine machine;
  EXPECT_EQ(resident_blocks(launch, machine, 32), 8);   // 2048 threads
  EXPECT_EQ(resident_blocks(launch, machine, 40), 6);   // 51 warps, in fours 48
  EXPECT_EQ(resident_blocks(launch, machine, 33), 6);   // rounded to 40
  EXPECT_EQ(resident_blocks(launch, machine, 255), 1);  // 8 warps
  launch.dynamic_shared_bytes = 100 << 10;
  EXPECT_EQ(resident_blocks(launch, machine, 32), 2);
  launch.dynamic_shared_bytes = 227 << 10;
  EXPECT_EQ(resident_blocks(launch, machine, 32), 1);
  launch.dynamic_shared_bytes = 0;
  launch.block = {32, 1, 1};
  EXPECT_EQ(resident_blocks(launch, machine, 32), 32);  // blocks
  launch.block = {1024, 1, 1};
  EXPECT_EQ(resident_blocks(launch, machine, 64), 1);
  EXPECT_EQ(resident_blocks(launch, machine, 72), 0);
}

TEST(Simulate, EveryOrderStartsFromTheSameContentsAndTheFirstStays) {
  Buffer counts = buffer<uint32_t>(64, kAny, 10u);
  PtxLaunch ptx{.body =
                    "add.u64 %d11, %d1, %d10; ld.global.u32 %r20, [%d11];"
                    "add.u32 %r20, %r20, 1; st.global.u32 [%d11], %r20;",
                .buffers = {&counts},
                .grid = 2};
  ptx.options.orders = 9;
  expect_clean(ptx);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(counts.as<uint32_t>()[i], 11u);
}

TEST(Simulate, WithoutChecksOneOrderLeavesTheSame) {
  Buffer out = buffer<uint32_t>(1000, kOutput);
  PtxLaunch ptx{.body = kStoreThread, .buffers = {&out}, .grid = 10, .block = 100};
  ptx.options.checks = false;
  const SimulationResult result = run_ptx(ptx);
  EXPECT_TRUE(result.findings.all.empty());
  for (uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(out.as<uint32_t>()[i], i);
  const uint64_t once = result.lane_instructions;
  ptx.options.checks = true;
  EXPECT_EQ(run_ptx(ptx).lane_instructions, 5 * once);
}

TEST(Simulate, WhoComesLastIsNotDeterministic) {
  Buffer out = buffer<uint32_t>(1);
  const PtxLaunch ptx{.body = "mov.u32 %r20, %r2; atom.global.exch.b32 %r21, [%d1], %r20;",
                      .buffers = {&out},
                      .grid = 4,
                      .block = 1};
  expect_finding(ptx, FindingKind::nondeterministic, "arg 0[0]");
  EXPECT_EQ(out.as<uint32_t>()[0], 3u);  // of the first order
  PtxLaunch tolerant = ptx;
  tolerant.options.deterministic = false;
  expect_clean(tolerant);
  Buffer scratch = buffer<uint32_t>(1, kAny);
  PtxLaunch private_to_the_kernel = ptx;
  private_to_the_kernel.buffers = {&scratch};
  scratch.role = kScratch;
  private_to_the_kernel.body = "mov.u32 %r20, %r2; st.relaxed.gpu.global.u32 [%d1], %r20;";
  expect_clean(private_to_the_kernel);
}

TEST(Simulate, AnEndlessLoopSpendsTheBudget) {
  Buffer out = buffer<uint32_t>(32, kAny);
  PtxLaunch ptx{.body = "head: add.u32 %r20, %r1, 1; bra head;", .buffers = {&out}};
  ptx.options.budget = 1 << 20;
  expect_finding(ptx, FindingKind::budget, "budget of 1048576");
  ptx.options.checks = false;
  expect_finding(ptx, FindingKind::budget, "budget of 1048576");
}

TEST(Simulate, AnAbsurdGridSpendsTheBudgetToo) {
  PtxLaunch ptx{.body = "", .grid = 0x7fffffffu};
  ptx.options.budget = 1 << 20;
  expect_finding(ptx, FindingKind::budget, "budget");
}

// Each block adds one and waits until all have.
const char* kGridBarrier = R"(
    setp.ne.u32 %p1, %r1, 0; @%p1 bra wait_block;
    fence.acq_rel.gpu; mov.u32 %r20, %nctaid.x; atom.global.add.u32 %r21, [%d1], 1;
    spin: ld.acquire.gpu.global.u32 %r21, [%d1]; setp.lt.u32 %p2, %r21, %r20; @%p2 bra spin;
    fence.acq_rel.gpu;
    wait_block: bar.sync 0;)";

Machine two_multiprocessors() {
  Machine machine;
  machine.name = "tiny";
  machine.multiprocessors = 2;
  machine.blocks_per_multiprocessor = 2;
  return machine;
}

TEST(Simulate, AGridBarrierThatFitsOrdersItsBlocks) {
  Buffer count = buffer<uint32_t>(1), data = buffer<uint32_t>(8, kScratch);
  Buffer out = buffer<uint32_t>(4 * 64, kOutput);
  PtxLaunch ptx{.body =
                    "setp.ne.u32 %p5, %r1, 0; mul.wide.u32 %d20, %r2, 4; add.u64 %d20, %d2, "
                    "%d20; @!%p5 st.global.u32 [%d20], %r2; bar.sync 0;" +
                    std::string(kGridBarrier) +
                    "xor.b32 %r30, %r2, 3; mul.wide.u32 %d21, %r30, 4; add.u64 %d21, %d2, %d21;"
                    "ld.global.u32 %r31, [%d21]; add.u64 %d22, %d3, %d10;"
                    "st.global.u32 [%d22], %r31;",
                .buffers = {&count, &data, &out},
                .grid = 4,
                .block = 64,
                .cooperative = true,
                .machine = two_multiprocessors()};
  expect_clean(ptx);
  for (uint32_t i = 0; i < 256; ++i) EXPECT_EQ(out.as<uint32_t>()[i], i / 64 ^ 3);
  ptx.options.checks = false;
  count.as<uint32_t>()[0] = 0;
  EXPECT_TRUE(run_ptx(ptx).findings.all.empty());
}

TEST(Simulate, AGridBarrierThatDoesNotFitIsAResidencyFinding) {
  Buffer count = buffer<uint32_t>(1);
  PtxLaunch ptx{.body = kGridBarrier,
                .buffers = {&count},
                .grid = 5,
                .block = 64,
                .machine = two_multiprocessors()};
  expect_finding(ptx, FindingKind::residency, "4 of 5 blocks fill the machine");
  ptx.options.checks = false;
  count.as<uint32_t>()[0] = 0;
  expect_finding(ptx, FindingKind::residency, "spins at");
  ptx.cooperative = true;
  expect_finding(ptx, FindingKind::residency, "4 fit on tiny");
}

TEST(Simulate, WaitingForWhatNobodyDoesIsADeadlock) {
  Buffer flag = buffer<uint32_t>(1);
  expect_finding({.body = "spin: ld.volatile.global.u32 %r20, [%d1]; setp.eq.u32 %p1, %r20, 0;"
                          "@%p1 bra spin;",
                  .buffers = {&flag},
                  .grid = 3},
                 FindingKind::deadlock, "spins at PTX line");
}

TEST(Simulate, BlocksMayWaitForBlocksOfAnyNumber) {
  for (const std::string next : {"add.u32 %r20, %r2, 1;", "sub.u32 %r20, %r2, 1;"}) {
    Buffer flags = buffer<uint32_t>(42), out = buffer<uint32_t>(40, kOutput);
    const bool up = next[0] == 'a';
    flags.as<uint32_t>()[up ? 41 : 0] = 1;
    // Block b waits for flag b + 1 of its neighbour (or the border), then sets its own.
    expect_clean({.body = next + R"(
        add.u32 %r20, %r20, 1; mul.wide.u32 %d20, %r20, 4; add.u64 %d20, %d1, %d20;
        spin: ld.acquire.gpu.global.u32 %r21, [%d20]; setp.eq.u32 %p1, %r21, 0; @%p1 bra spin;
        add.u32 %r22, %r2, 1; mul.wide.u32 %d21, %r22, 4; add.u64 %d21, %d1, %d21;
        mov.u32 %r23, 1; st.release.gpu.global.u32 [%d21], %r23;
        add.u64 %d22, %d2, %d10; st.global.u32 [%d22], %r3;)",
                  .buffers = {&flags, &out},
                  .grid = 40,
                  .block = 1});
  }
}

TEST(Simulate, SpecialRegisters) {
  Buffer out = buffer<uint32_t>(2 * 3 * 4 * 8, kOutput);
  PtxLaunch ptx{.body = R"(
      mov.u32 %r20, %tid.x; mov.u32 %r21, %tid.y; mov.u32 %r22, %ctaid.x; mov.u32 %r23, %ctaid.y;
      mov.u32 %r24, %ntid.x; mov.u32 %r25, %nctaid.x; mov.u32 %r26, %laneid; mov.u32 %r27, %warpid;
      mad.lo.u32 %r28, %r23, %r25, %r22; mul.lo.u32 %r28, %r28, 6;
      mad.lo.u32 %r29, %r21, %r24, %r20;
      add.u32 %r28, %r28, %r29; mul.wide.u32 %d20, %r28, 32; add.u64 %d20, %d1, %d20;
      st.global.v4.u32 [%d20], {%r20, %r21, %r22, %r23};
      mov.u32 %r30, %lanemask_lt;
      st.global.v4.u32 [%d20+16], {%r26, %r27, %r30, %r24};)",
                .buffers = {&out}};
  LoadedModule module = instantiate(load_module(ptx_text(ptx)));
  Launch launch = make_launch(ptx, module);
  launch.grid = {2, 2, 1};
  launch.block = {3, 2, 1};
  const SimulationResult result = simulate(launch, {}, {});
  EXPECT_TRUE(result.findings.all.empty()) << all_findings(result);
  for (uint32_t block = 0; block < 4; ++block) {
    for (uint32_t thread = 0; thread < 6; ++thread) {
      const uint32_t* at = out.as<uint32_t>() + (block * 6 + thread) * 8;
      const uint32_t expected[] = {thread % 3, thread / 3, block % 2,          block / 2,
                                   thread,     0,          (1u << thread) - 1, 3};
      for (int i = 0; i < 8; ++i)
        ASSERT_EQ(at[i], expected[i]) << block << " " << thread << " " << i;
    }
  }
}

TEST(Simulate, ClocksGrow) {
  Buffer out = buffer<uint32_t>(32, kScratch);
  expect_clean({.body = "mov.u64 %d20, %clock64; mov.u32 %r20, %clock; mov.u64 %d21, %clock64;"
                        "setp.gt.u64 %p1, %d21, %d20; selp.u32 %r20, 1, 0, %p1;"
                        "add.u64 %d11, %d1, %d10; st.global.u32 [%d11], %r20;",
                .buffers = {&out}});
  EXPECT_EQ(out.as<uint32_t>()[7], 1u);
}

}  // namespace
}  // namespace stitch::ptxsim
