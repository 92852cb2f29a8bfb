// One kernel that is accused and one that is not for each check, through the whole machine.
#include "ptxsim/launch_ptx.h"

namespace stitch::ptxsim {
namespace {

const char* kAddresses = "add.u64 %d11, %d1, %d10; add.u64 %d12, %d2, %d10;";

struct Buffers {
  Buffer in = buffer<uint32_t>(128, kInput, 3u);
  Buffer out = buffer<uint32_t>(128, kOutput);

  PtxLaunch launch(const std::string& body, const std::string& globals = "") {
    return {.body = std::string(kAddresses) + body,
            .buffers = {&in, &out},
            .grid = 2,
            .block = 64,
            .globals = globals};
  }
};

const char* kCopyElement = "ld.global.u32 %r20, [%d11]; st.global.u32 [%d12], %r20;";

TEST(SimulateChecks, OutOfBounds) {
  Buffers buffers;
  expect_finding(buffers.launch("ld.global.u32 %r20, [%d11+4]; st.global.u32 [%d12], %r20;"),
                 FindingKind::out_of_bounds, "arg 0");
  expect_clean(buffers.launch(kCopyElement));
  buffers.out.role = kAny;
  expect_finding(buffers.launch("st.global.u32 [%d12+-4], %r1;"), FindingKind::out_of_bounds, "");
}

TEST(SimulateChecks, OutOfBoundsOfSharedAndLocalMemory) {
  Buffers buffers;
  const std::string shared =
      ".shared .align 4 .b8 sh[256]; mov.u32 %r30, sh; shl.b32 %r31, %r1, 2;"
      "add.u32 %r30, %r30, %r31;";
  expect_finding(buffers.launch(shared + "st.shared.u32 [%r30+4], %r1;" + kCopyElement),
                 FindingKind::out_of_bounds, "shared");
  expect_clean(buffers.launch(shared + "st.shared.u32 [%r30], %r1;" + kCopyElement));
  const std::string local = ".local .align 4 .b8 lo[8]; mov.u64 %d30, lo;";
  expect_finding(buffers.launch(local + "st.local.u32 [%d30+8], %r1;" + kCopyElement),
                 FindingKind::out_of_bounds, "local");
  expect_clean(buffers.launch(local + "st.local.u32 [%d30+4], %r1;" + kCopyElement));
}

TEST(SimulateChecks, Misaligned) {
  Buffers buffers;
  expect_finding(buffers.launch("ld.global.v2.u32 {%r20, %r21}, [%d1+4]; st.global.u32 [%d12], "
                                "%r20;"),
                 FindingKind::misaligned, "");
  expect_clean(
      buffers.launch("ld.global.v2.u32 {%r20, %r21}, [%d1+8]; st.global.u32 [%d12], "
                     "%r20;"));
}

TEST(SimulateChecks, Uninitialized) {
  Buffers buffers;
  const std::string shared =
      ".shared .align 4 .b8 sh[256]; mov.u32 %r30, sh; shl.b32 %r31, %r1, 2;"
      "add.u32 %r30, %r30, %r31;";
  const std::string load = "ld.shared.u32 %r20, [%r30]; st.global.u32 [%d12], %r20;";
  expect_finding(buffers.launch(shared + load), FindingKind::uninitialized, "shared");
  expect_clean(buffers.launch(shared + "st.shared.u32 [%r30], %r1;" + load));
  expect_finding(buffers.launch(".local .align 4 .b8 lo[8]; ld.local.u32 %r20, [lo];"
                                "st.global.u32 [%d12], %r20;"),
                 FindingKind::uninitialized, "local");
}

TEST(SimulateChecks, Races) {
  Buffers buffers;
  const std::string shared =
      ".shared .align 4 .b8 sh[256]; mov.u32 %r30, sh; shl.b32 %r31, %r1, 2;"
      "add.u32 %r30, %r30, %r31; xor.b32 %r32, %r31, 4; mov.u32 %r33, sh;"
      "add.u32 %r32, %r32, %r33; st.shared.u32 [%r30], %r1;";
  const std::string load = "ld.shared.u32 %r20, [%r32]; st.global.u32 [%d12], %r20;";
  expect_clean(buffers.launch(shared + "bar.sync 0;" + load));
  expect_clean(buffers.launch(shared + "bar.warp.sync -1;" + load));
  PtxLaunch racy = buffers.launch(shared + load);
  racy.options.deterministic = false;
  expect_finding(racy, FindingKind::race, "");
  racy.body = std::string(kAddresses) + shared + "shfl.sync.bfly.b32 %r40, %r1, 1, 31, -1;" + load;
  expect_finding(racy, FindingKind::race, "");
}

TEST(SimulateChecks, RacesBetweenBlocks) {
  Buffer flag = buffer<uint32_t>(2), out = buffer<uint32_t>(2, kOutput);
  const auto launch = [&](const std::string& store, const std::string& load) {
    PtxLaunch ptx{.body =
                      "setp.eq.u32 %p1, %r2, 1; @%p1 bra reader; mov.u32 %r20, 7;"
                      "st.global.u32 [%d1+4], %r20; mov.u32 %r21, 1; " +
                      store + " [%d1], %r21; bra.uni done; reader: spin: " + load +
                      " %r22, [%d1]; setp.eq.u32 %p2, %r22, 0; @%p2 bra spin;"
                      "ld.global.u32 %r20, [%d1+4]; done: add.u64 %d12, %d2, %d10;"
                      "st.global.u32 [%d12], %r20;",
                  .buffers = {&flag, &out},
                  .grid = 2,
                  .block = 1};
    return ptx;
  };
  expect_clean(launch("st.release.gpu.global.u32", "ld.acquire.gpu.global.u32"));
  expect_finding(launch("st.relaxed.gpu.global.u32", "ld.relaxed.gpu.global.u32"),
                 FindingKind::race, "");
  expect_finding(launch("st.release.cta.global.u32", "ld.acquire.cta.global.u32"),
                 FindingKind::race, "");
}

TEST(SimulateChecks, ReadOnly) {
  Buffers buffers;
  expect_finding(buffers.launch(std::string(kCopyElement) + "st.global.u32 [%d11], %r20;"),
                 FindingKind::read_only, "arg 0");
  buffers.in.role = kAny;
  expect_clean(buffers.launch(std::string(kCopyElement) + "st.global.u32 [%d11], %r20;"));
}

TEST(SimulateChecks, Unwritten) {
  Buffers buffers;
  expect_finding(buffers.launch("setp.eq.u32 %p1, %r3, 77; @!%p1 st.global.u32 [%d12], %r1;"),
                 FindingKind::unwritten, "arg 1[77]");
  expect_finding(buffers.launch("st.global.u32 [%d12], %r1; st.global.u32 [%d12], %r1;"),
                 FindingKind::unwritten, "arg 1");
  expect_clean(buffers.launch(kCopyElement));
}

}  // namespace
}  // namespace stitch::ptxsim
