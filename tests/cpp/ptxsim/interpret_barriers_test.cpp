// Barriers of a block, named and counted; asynchronous copies.
#include "ptxsim/launch_ptx.h"

namespace stitch::ptxsim {
namespace {

constexpr FindingKind kDivergent = FindingKind::divergent_barrier;

PtxLaunch with_shared(Buffer& out, const std::string& body, uint32_t block = 96) {
  return {.body =
              ".shared .align 16 .b8 sh[1024]; mov.u32 %r10, sh; shl.b32 %r11, %r1, 2;"
              "add.u32 %r11, %r10, %r11;" +
              body,
          .buffers = {&out},
          .block = block};
}

const char* kNeighbour = R"(
    add.u32 %r12, %r1, 1; setp.eq.u32 %p9, %r12, %r13; @%p9 mov.u32 %r12, 0;
    shl.b32 %r12, %r12, 2; add.u32 %r12, %r10, %r12; ld.shared.u32 %r20, [%r12];
    add.u64 %d11, %d1, %d10; st.global.u32 [%d11], %r20;)";

TEST(InterpretBarriers, ThreadsSeeWhatWasStoredBefore) {
  for (const std::string barrier : {"bar.sync 0;", "barrier.sync 3;", "barrier.sync.aligned 0;",
                                    "bar.sync 15, 96;", "bar.red.popc.u32 %r30, 2, %p1;"}) {
    SCOPED_TRACE(barrier);
    Buffer out = buffer<uint32_t>(96, kOutput);
    expect_clean(with_shared(out,
                             "mov.u32 %r13, 96; setp.eq.u32 %p1, %r1, 0;"
                             "st.shared.u32 [%r11], %r1;" +
                                 barrier + kNeighbour));
    for (uint32_t thread = 0; thread < 96; ++thread) {
      EXPECT_EQ(out.as<uint32_t>()[thread], (thread + 1) % 96);
    }
  }
}

TEST(InterpretBarriers, AreDoneAgainAndAgain) {
  Buffer out = buffer<uint32_t>(96, kOutput);
  expect_clean(with_shared(out, R"(
      mov.u32 %r13, 96; mov.u32 %r20, %r1; mov.u32 %r21, 0;
      head: st.shared.u32 [%r11], %r20; bar.sync 0;
      add.u32 %r12, %r1, 1; setp.eq.u32 %p9, %r12, 96; @%p9 mov.u32 %r12, 0;
      shl.b32 %r12, %r12, 2; add.u32 %r12, %r10, %r12; ld.shared.u32 %r20, [%r12];
      bar.sync 0; add.u32 %r21, %r21, 1; setp.lt.u32 %p1, %r21, 10; @%p1 bra head;
      add.u64 %d11, %d1, %d10; st.global.u32 [%d11], %r20;)"));
  for (uint32_t thread = 0; thread < 96; ++thread) {
    EXPECT_EQ(out.as<uint32_t>()[thread], (thread + 10) % 96);
  }
}

TEST(InterpretBarriers, ReduceAPredicate) {
  struct Case {
    const char* set;
    uint32_t all, any, count;
  };
  for (const Case& c :
       {Case{"setp.lt.u32 %p1, %r1, 40;", 0, 1, 40}, Case{"setp.lt.u32 %p1, %r1, 96;", 1, 1, 96},
        Case{"setp.gt.u32 %p1, %r1, 96;", 0, 0, 0}}) {
    Buffer out = buffer<uint32_t>(3 * 96, kOutput);
    expect_clean(with_shared(out, std::string(c.set) + R"(
        bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 1, %p1;
        barrier.red.popc.aligned.u32 %r22, 2, 96, %p1; bar.red.popc.u32 %r23, 2, !%p1;
        selp.u32 %r20, 1, 0, %p2; selp.u32 %r21, 1, 0, %p3;
        add.u32 %r24, %r22, %r23; sub.u32 %r24, %r24, 96; add.u32 %r22, %r22, %r24;
        mul.lo.u32 %r25, %r1, 12; cvt.u64.u32 %d11, %r25; add.u64 %d11, %d1, %d11;
        st.global.u32 [%d11], %r20; st.global.u32 [%d11+4], %r21; st.global.u32 [%d11+8], %r22;)"));
    EXPECT_EQ(out.as<uint32_t>()[150], c.all);
    EXPECT_EQ(out.as<uint32_t>()[151], c.any);
    EXPECT_EQ(out.as<uint32_t>()[152], c.count);
  }
}

// Warp 0 makes what warp 1 uses: one arrives, the other waits.
TEST(InterpretBarriers, ProducersArriveAndConsumersWait) {
  Buffer out = buffer<uint32_t>(32, kOutput);
  expect_clean(with_shared(out, R"(
      setp.ge.u32 %p1, %r1, 32; @%p1 bra consumer;
      st.shared.u32 [%r11], %r1; bar.arrive 1, 64; bra.uni done;
      consumer: bar.sync 1, 64; sub.u32 %r12, 63, %r1; shl.b32 %r12, %r12, 2;
      add.u32 %r12, %r10, %r12; ld.shared.u32 %r20, [%r12];
      add.u64 %d11, %d1, %d10; st.global.u32 [%d11+-128], %r20;
      done:)",
                           64));
  for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out.as<uint32_t>()[lane], 31 - lane);
}

TEST(InterpretBarriers, ShortWarpsCountInFull) {
  Buffer out = buffer<uint32_t>(40, kOutput);
  expect_clean(with_shared(
      out, "mov.u32 %r13, 40; st.shared.u32 [%r11], %r1; bar.sync 1, 64;" + std::string(kNeighbour),
      40));
}

TEST(InterpretBarriers, LanesThatDivergedMeetAtAnAlignedBarrier) {
  Buffer out = buffer<uint32_t>(96, kOutput);
  expect_clean(with_shared(out, R"(
      mov.u32 %r13, 96; mov.u32 %r22, 0;
      head: setp.ge.u32 %p1, %r22, %r1; @%p1 bra done; add.u32 %r22, %r22, 1; bra head;
      done: st.shared.u32 [%r11], %r22; bar.sync 0;)" +
                                    std::string(kNeighbour)));
}

TEST(InterpretBarriers, DivergenceIsAccused) {
  Buffer out = buffer<uint32_t>(96, kAny);
  expect_finding(with_shared(out,
                             "setp.lt.u32 %p1, %r1, 7; @%p1 bar.sync 0;"
                             "setp.ge.u32 %p2, %r1, 7; @%p2 bar.sync 0;"),
                 kDivergent, "aligned barrier with");
  expect_finding(with_shared(out, "setp.lt.u32 %p1, %r1, 32; @%p1 exit; bar.sync 0;"), kDivergent,
                 "32 threads have exited");
  expect_finding(with_shared(out, "setp.lt.u32 %p1, %r1, 7; @%p1 exit; barrier.sync 0;"),
                 kDivergent, "7 threads have exited");
  expect_finding(with_shared(out,
                             "setp.lt.u32 %p1, %r1, 32; @%p1 bra a; bar.sync 0; bra.uni b;"
                             "a: bar.sync 0; b:"),
                 kDivergent, "not all at one barrier");
  expect_finding(with_shared(out, "bar.sync 1, 40;"), kDivergent, "multiple of 32");
  expect_finding(with_shared(out,
                             "setp.lt.u32 %p1, %r1, 32; selp.u32 %r20, 64, 96, %p1;"
                             "bar.sync 1, %r20;"),
                 kDivergent, "expects");
  expect_finding(with_shared(out, "mov.u32 %r20, 16; bar.sync %r20, 96;"), kDivergent,
                 "a block has 16");
}

TEST(InterpretBarriers, UnalignedBarriersLetLanesComeByThemselves) {
  Buffer out = buffer<uint32_t>(96, kOutput);
  expect_clean(with_shared(out, R"(
      mov.u32 %r13, 96; st.shared.u32 [%r11], %r1; and.b32 %r22, %r1, 1; setp.eq.u32 %p1, %r22, 0;
      @%p1 bra even; barrier.sync 0; bra.uni join; even: barrier.sync 0; join:)" +
                                    std::string(kNeighbour)));
}

TEST(InterpretBarriers, WaitingForNobodyIsADeadlock) {
  Buffer out = buffer<uint32_t>(96, kAny);
  expect_finding(with_shared(out,
                             "setp.lt.u32 %p1, %r1, 32; @%p1 bra a; bar.sync 1; bra.uni b;"
                             "a: bar.sync 2; b:"),
                 FindingKind::deadlock, "waits at barrier 2");
  expect_finding(with_shared(out, "setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 96;"),
                 FindingKind::deadlock, "waits at barrier 1");
}

const char* kCopy = R"(
    shl.b32 %r12, %r1, 4; add.u32 %r12, %r10, %r12; shl.b64 %d11, %d10, 2;
    add.u64 %d11, %d2, %d11;)";

PtxLaunch with_copy(Buffer& out, Buffer& in, const std::string& body) {
  PtxLaunch ptx = with_shared(out, kCopy + body + R"(
      bar.sync 0; sub.u32 %r14, 63, %r1; shl.b32 %r14, %r14, 4; add.u32 %r14, %r10, %r14;
      ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r14];
      shl.b64 %d12, %d10, 2; add.u64 %d12, %d1, %d12;
      st.global.v4.u32 [%d12], {%r20, %r21, %r22, %r23};)",
                              64);
  ptx.buffers.push_back(&in);
  ptx.options.orders = 12;
  return ptx;
}

TEST(InterpretCopies, AreThereAfterTheWait) {
  std::vector<uint32_t> values(256);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint32_t>(i * 7919);
  for (const std::string wait :
       {"cp.async.wait_all;", "cp.async.commit_group; cp.async.wait_group 0;",
        "cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1;"}) {
    SCOPED_TRACE(wait);
    Buffer in = buffer_of(values), out = buffer<uint32_t>(256, kOutput);
    expect_clean(with_copy(out, in, "cp.async.cg.shared.global [%r12], [%d11], 16;" + wait));
    for (uint32_t i = 0; i < 256; ++i) {
      ASSERT_EQ(out.as<uint32_t>()[i], values[(63 - i / 4) * 4 + i % 4]);
    }
  }
}

TEST(InterpretCopies, FillWithZerosWhatIsNotRead) {
  Buffer in = buffer<uint32_t>(256, kInput, 5u), out = buffer<uint32_t>(256, kOutput);
  expect_clean(with_copy(out, in,
                         "cp.async.ca.shared.global [%r12], [%d11], 16, 8;"
                         "cp.async.wait_all;"));
  for (uint32_t i = 0; i < 256; ++i) ASSERT_EQ(out.as<uint32_t>()[i], i % 4 < 2 ? 5u : 0u);
}

TEST(InterpretCopies, ReadingBeforeTheWaitIsARace) {
  Buffer in = buffer<uint32_t>(256, kInput, 5u), out = buffer<uint32_t>(256, kAny);
  for (const std::string wait :
       {"", "cp.async.commit_group; cp.async.wait_group 1;", "cp.async.wait_group 0;"}) {
    SCOPED_TRACE(wait);
    PtxLaunch ptx = with_copy(out, in, "cp.async.cg.shared.global [%r12], [%d11], 16;" + wait);
    ptx.options.deterministic = false;  // that bits differ is another finding
    expect_finding(ptx, FindingKind::race, "");
  }
}

}  // namespace
}  // namespace stitch::ptxsim
