// ld and st: types, widening, vectors, spaces, generic addresses, patterns of addresses.
#include <cstdint>
#include <limits>

#include "ptxsim/launch_ptx.h"

namespace stitch::ptxsim {
namespace {

struct TypeCase {
  const char* type;
  int bytes;
  bool is_signed;
};
constexpr TypeCase kTypes[] = {
    {"b8", 1, false},  {"u8", 1, false},  {"s8", 1, true},   {"b16", 2, false}, {"u16", 2, false},
    {"s16", 2, true},  {"b32", 4, false}, {"u32", 4, false}, {"s32", 4, true},  {"b64", 8, false},
    {"u64", 8, false}, {"s64", 8, true},  {"f32", 4, false}, {"f64", 8, false},
};

// Values at the edges of each width, one a lane.
std::vector<uint64_t> edge_values() {
  std::vector<uint64_t> values;
  for (int bits : {8, 16, 32, 64}) {
    const uint64_t top = uint64_t{1} << (bits - 1);
    for (uint64_t value : {top - 1, top, top + 1, 2 * top - 1}) values.push_back(value);
  }
  while (values.size() < 32) values.push_back(0x0123456789abcdefu * values.size());
  return values;
}

uint64_t widened(uint64_t value, const TypeCase& type, int register_bytes) {
  const int shift = 64 - 8 * type.bytes;
  const uint64_t wide = type.is_signed
                            ? static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift)
                            : value << shift >> shift;
  return register_bytes == 8 ? wide : wide & ((uint64_t{1} << 8 * register_bytes) - 1);
}

std::string register_of(const TypeCase& type, int bytes) {
  if (std::string(type.type) == "f32") return "%f1";
  if (std::string(type.type) == "f64") return "%g1";
  return bytes == 2 ? "%h1" : bytes == 4 ? "%r20" : "%d20";
}

TEST(InterpretMemory, LoadsWidenByTheirSignAndStoresCutOff) {
  const std::vector<uint64_t> values = edge_values();
  for (const TypeCase& type : kTypes) {
    for (int bytes : {2, 4, 8}) {
      if (bytes < type.bytes || (type.type[0] == 'f' && bytes != type.bytes)) continue;
      SCOPED_TRACE(std::string(type.type) + " in " + std::to_string(bytes) + " bytes");
      const std::string reg = register_of(type, bytes), name = type.type;
      Buffer in = buffer_of(values), wide = buffer<uint64_t>(32), cut = buffer<uint64_t>(32);
      // The register is stored as a whole, then as the type.
      const std::string whole = type.type[0] == 'f' ? name : "b" + std::to_string(8 * bytes);
      expect_clean({.body = "shl.b64 %d11, %d10, 1; add.u64 %d12, %d1, %d11; add.u64 %d13, %d2, "
                            "%d11; add.u64 %d14, %d3, %d11; ld.global." +
                            name + " " + reg + ", [%d12]; st.global." + whole + " [%d13], " + reg +
                            "; st.global." + name + " [%d14], " + reg + ";",
                    .buffers = {&in, &wide, &cut}});
      for (int lane = 0; lane < 32; ++lane) {
        ASSERT_EQ(wide.as<uint64_t>()[lane], widened(values[lane], type, bytes)) << lane;
        ASSERT_EQ(cut.as<uint64_t>()[lane],
                  widened(values[lane], {type.type, type.bytes, false}, 8))
            << lane;
      }
    }
  }
}

// Contiguous, with a gap, all at one place, and backwards, under a mask and without.
TEST(InterpretMemory, PatternsOfAddressesGiveTheSameBytes) {
  std::vector<uint32_t> values(4 * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint32_t>(i * 2654435761u);
  struct Pattern {
    const char* index;  // of the first element, from %r1
    int (*of)(int lane);
  };
  const Pattern patterns[] = {{"mov.u32 %r20, %r1;", [](int lane) { return lane; }},
                              {"mul.lo.u32 %r20, %r1, 2;", [](int lane) { return 2 * lane; }},
                              {"mov.u32 %r20, 5;", [](int) { return 5; }},
                              {"sub.u32 %r20, 31, %r1;", [](int lane) { return 31 - lane; }}};
  const char* loads[] = {"ld.global.u32 %r30, [%d11];", "ld.global.v2.u32 {%r30, %r31}, [%d11];",
                         "ld.global.v4.u32 {%r30, %r31, %r32, %r33}, [%d11];"};
  for (const Pattern& pattern : patterns) {
    for (int log = 0; log < 3; ++log) {
      for (bool guarded : {false, true}) {
        SCOPED_TRACE(std::string(pattern.index) + loads[log] + (guarded ? " guarded" : ""));
        Buffer in = buffer_of(values), out = buffer<uint32_t>(4 * 32, kAny, 7u);
        const std::string scale = std::to_string(4 << log);
        std::string body =
            "and.b32 %r40, %r1, 1; setp.eq.u32 %p1, %r40, 0; mov.u32 %r30, 7; "
            "mov.u32 %r31, 7; mov.u32 %r32, 7; mov.u32 %r33, 7;";
        body += std::string(pattern.index) + "mul.wide.u32 %d11, %r20, " + scale +
                "; add.u64 %d11, %d1, %d11;" + (guarded ? "@%p1 " : "") + loads[log] +
                "shl.b64 %d12, %d10, 2; add.u64 %d12, %d2, %d12;"
                "st.global.v4.u32 [%d12], {%r30, %r31, %r32, %r33};";
        expect_clean({.body = body, .buffers = {&in, &out}});
        for (int lane = 0; lane < 32; ++lane) {
          for (int e = 0; e < 4; ++e) {
            const bool loaded = e < 1 << log && !(guarded && lane % 2);
            const uint32_t expected =
                loaded ? values[static_cast<size_t>(pattern.of(lane) * (1 << log) + e)] : 7u;
            ASSERT_EQ(out.as<uint32_t>()[4 * lane + e], expected) << lane << " " << e;
          }
        }
      }
    }
  }
}

TEST(InterpretMemory, StoresOfVectorsAndSinks) {
  std::vector<uint16_t> values(32 * 4);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint16_t>(i * 40503u);
  Buffer in = buffer_of(values), out = buffer<uint16_t>(32 * 4, kOutput);
  Buffer wide = buffer<uint64_t>(64, kOutput);
  expect_clean({.body = R"(
      shl.b64 %d11, %d10, 1; add.u64 %d12, %d1, %d11; add.u64 %d13, %d2, %d11;
      ld.global.v4.u16 {%h1, _, %h3, %h4}, [%d12];
      ld.global.v2.u16 {_, %h2}, [%d12];
      st.global.v4.u16 [%d13], {%h4, %h3, %h2, %h1};
      shl.b64 %d11, %d10, 2; add.u64 %d14, %d3, %d11;
      cvt.u64.u16 %d20, %h1; cvt.u64.u16 %d21, %h2;
      st.global.v2.b64 [%d14], {%d20, %d21};)",
                .buffers = {&in, &out, &wide}});
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < 4; ++e) {
      ASSERT_EQ(out.as<uint16_t>()[4 * lane + e], values[static_cast<size_t>(4 * lane + 3 - e)]);
    }
    ASSERT_EQ(wide.as<uint64_t>()[2 * lane + 1], values[static_cast<size_t>(4 * lane + 1)]);
  }
}

TEST(InterpretMemory, SpacesAndGenericAddresses) {
  Buffer in = buffer<uint32_t>(32, kInput, 1000u), out = buffer<uint32_t>(4 * 32, kOutput);
  expect_clean({.body = R"(
      .shared .align 16 .b8 sh[128];
      .local .align 8 .b8 lo[16];
      shl.b32 %r20, %r1, 2; mov.u32 %r21, sh; add.u32 %r21, %r21, %r20;
      st.shared.u32 [%r21], %r1;
      add.u32 %r22, %r1, 100; mov.u64 %d20, lo; st.local.u32 [%d20+8], %r22;
      cvt.u64.u32 %d21, %r21; cvta.shared.u64 %d21, %d21;
      cvta.local.u64 %d22, %d20; add.u64 %d22, %d22, 8;
      mov.u64 %d23, con; cvta.const.u64 %d23, %d23; and.b32 %r23, %r1, 3;
      mul.wide.u32 %d24, %r23, 4; add.u64 %d23, %d23, %d24;
      cvta.global.u64 %d25, %d1;
      rem.u32 %r24, %r1, 4; mov.u64 %d30, %d25;
      setp.eq.u32 %p1, %r24, 1; @%p1 mov.u64 %d30, %d21;
      setp.eq.u32 %p2, %r24, 2; @%p2 mov.u64 %d30, %d22;
      setp.eq.u32 %p3, %r24, 3; @%p3 mov.u64 %d30, %d23;
      ld.u32 %r30, [%d30];
      ld.shared.u32 %r31, [%r21]; ld.local.u32 %r32, [lo+8]; ld.const.u32 %r33, [con+4];
      shl.b64 %d31, %d10, 2; add.u64 %d31, %d2, %d31;
      st.v4.u32 [%d31], {%r30, %r31, %r32, %r33};)",
                .buffers = {&in, &out},
                .globals = ".const .align 4 .u32 con[4] = {500, 501, 502, 503};"});
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t generic[] = {1000, lane, lane + 100, 503};
    EXPECT_EQ(out.as<uint32_t>()[4 * lane], generic[lane % 4]) << lane;
    EXPECT_EQ(out.as<uint32_t>()[4 * lane + 1], lane);
    EXPECT_EQ(out.as<uint32_t>()[4 * lane + 2], lane + 100);
    EXPECT_EQ(out.as<uint32_t>()[4 * lane + 3], 501u);
  }
}

TEST(InterpretMemory, StrongAndVolatileFormsMoveTheSameBytes) {
  for (const std::string form : {"volatile.", "relaxed.gpu.", "acquire.sys.", "relaxed.cta."}) {
    Buffer in = buffer<uint32_t>(32, kAny, 9u), out = buffer<uint32_t>(32, kOutput);
    const std::string store = form == "acquire.sys." ? "release.sys." : form;
    expect_clean({.body = "add.u64 %d11, %d1, %d10; add.u64 %d12, %d2, %d10; ld." + form +
                          "global.u32 %r20, [%d11]; add.u32 %r20, %r20, %r1; st." + store +
                          "global.u32 [%d12], %r20;",
                  .buffers = {&in, &out}});
    for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out.as<uint32_t>()[lane], 9 + lane);
  }
}

TEST(InterpretMemory, VariablesOfTheModuleKeepTheirValuesFromLaunchToLaunch) {
  Buffer out = buffer<uint32_t>(2);
  PtxLaunch ptx{
      .body =
          "ld.global.u32 %r20, [count]; add.u32 %r21, %r20, 1;"
          "st.global.u32 [count], %r21; st.global.u32 [%d1], %r21;"
          "ld.global.u32 %r22, [filled+4]; st.global.u32 [%d1+4], %r22;",
      .buffers = {&out},
      .block = 1,
      .globals = ".global .align 4 .u32 count; .global .align 4 .u32 filled[2] = {3, 4};"};
  LoadedModule module = instantiate(load_module(ptx_text(ptx)));
  for (uint32_t launch = 1; launch <= 3; ++launch) {
    const SimulationResult result = simulate(make_launch(ptx, module), {}, {});
    EXPECT_TRUE(result.findings.all.empty()) << all_findings(result);
    EXPECT_EQ(out.as<uint32_t>()[0], launch);  // five orders each, and counted once
    EXPECT_EQ(out.as<uint32_t>()[1], 4u);
  }
}

TEST(InterpretMemory, HintsAndPrefetchesDoNothing) {
  Buffer out = buffer<uint32_t>(32, kOutput);
  expect_clean({.body = "add.u64 %d11, %d1, %d10; prefetch.global.L2 [%d11]; prefetchu.L1 [%d11];"
                        "membar.gl; nanosleep.u32 20; griddepcontrol.wait; pmevent 1;"
                        "griddepcontrol.launch_dependents; st.global.cs.u32 [%d11], %r1;",
                .buffers = {&out}});
  EXPECT_EQ(out.as<uint32_t>()[31], 31u);
}

}  // namespace
}  // namespace stitch::ptxsim
