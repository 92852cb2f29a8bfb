// Units by liveness: no path brings a register's reader to what another register left.
#include "ptxsim/decode/assign_units.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "launch_ptx.h"

namespace stitch::ptxsim {
namespace {

// ---- random control flow over random registers

struct Generator {
  std::mt19937 random;
  FunctionCode code;

  explicit Generator(uint32_t seed) : random(seed) {}

  int below(int count) { return static_cast<int>(random() % static_cast<uint32_t>(count)); }

  void add_slots(int count) {
    constexpr int kWidths[] = {kPredicate, 2, 4, 4, 8, 16};
    for (int i = 0; i < count; ++i) {
      const Slot slot{code.units, i == 0 ? 4 : kWidths[below(6)]};
      code.slots.push_back(slot);
      code.units += slot.count();
    }
  }

  uint32_t some_unit() {
    return code.slots[static_cast<size_t>(below(static_cast<int>(code.slots.size())))].unit;
  }

  Instruction some_instruction(int length) {
    constexpr Opcode kOpcodes[] = {Opcode::add, Opcode::pack, Opcode::ld,  Opcode::bra,
                                   Opcode::add, Opcode::call, Opcode::ret, Opcode::brx_idx};
    Instruction made;
    made.opcode = kOpcodes[below(8)];
    const bool branches = made.opcode == Opcode::bra || made.opcode == Opcode::brx_idx;
    const bool leaves = made.opcode == Opcode::ret;
    made.flow = branches || leaves || made.opcode == Opcode::call ? Flow::branch : Flow::lanes;
    if (below(3) == 0 || (leaves && below(4) != 0)) made.guard = some_unit();
    if (made.opcode == Opcode::bra) made.immediate = below(length);
    if (made.opcode == Opcode::brx_idx) {
      made.immediate = static_cast<int64_t>(code.tables.size());
      code.tables.push_back({below(length), below(length)});
    }
    if (made.flow == Flow::lanes) {
      made.destinations = static_cast<uint8_t>(below(3));
      made.operand_count = static_cast<uint8_t>(made.destinations + below(3));
    }
    for (size_t i = 0; i < made.operand_count; ++i) {
      made.operands[i] = below(10) == 0 ? kNoUnit : some_unit();
    }
    return made;
  }

  FunctionCode make() {
    add_slots(4 + below(40));
    const int length = 4 + below(60);
    for (int i = 0; i < length; ++i) code.code.push_back(some_instruction(length));
    code.code.emplace_back();
    code.code.back().opcode = Opcode::ret;
    code.code.back().flow = Flow::branch;
    for (int i = below(4); i > 0; --i) {
      const Slot& slot = code.slots[1 + static_cast<size_t>(below(3))];
      code.constants.push_back({slot.unit, Type::b32, 0});
    }
    return std::move(code);
  }
};

std::vector<size_t> successors(const FunctionCode& code, size_t at) {
  const Instruction& instruction = code.code[at];
  std::vector<size_t> next;
  if (instruction.opcode == Opcode::bra) next.push_back(static_cast<size_t>(instruction.immediate));
  if (instruction.opcode == Opcode::brx_idx) {
    const std::vector<int>& table = code.tables[static_cast<size_t>(instruction.immediate)];
    next.assign(table.begin(), table.end());
  }
  const bool goes_on = next.empty() && instruction.opcode != Opcode::ret;
  if ((goes_on || instruction.guard != kNoUnit) && at + 1 < code.code.size()) {
    next.push_back(at + 1);
  }
  return next;
}

// What a unit may hold, as bits of registers; bit 63: nothing that was ever written.
using Contents = std::vector<uint64_t>;

// The two are one function, before and after: walks all its paths.
struct Paths {
  const FunctionCode& before;
  const FunctionCode& after;
  std::map<uint32_t, int> registers;  // by first unit, before

  int register_of(uint32_t unit) const { return registers.at(unit); }

  void expect_own(uint32_t from, uint32_t to, const Contents& contents, size_t at) const {
    if (from == kNoUnit) return;
    const uint64_t others = contents[to] & ~(uint64_t{1} << register_of(from)) & ~(1ull << 63);
    EXPECT_EQ(others, 0u) << "at " << at << " unit " << to << " for " << from;
  }

  void step(size_t at, Contents& contents) const {
    const Instruction &from = before.code[at], &to = after.code[at];
    expect_own(from.guard, to.guard, contents, at);
    for (size_t i = from.destinations; i < from.operand_count; ++i) {
      expect_own(from.operands[i], to.operands[i], contents, at);
    }
    for (size_t i = 0; i < from.destinations; ++i) {
      if (from.operands[i] == kNoUnit) continue;
      uint64_t& held = contents[to.operands[i]];
      if (from.guard == kNoUnit) held = 0;
      held |= uint64_t{1} << register_of(from.operands[i]);
    }
  }

  void walk(Contents start) const {
    std::vector<Contents> reaching(before.code.size(), Contents(start.size(), 0));
    std::vector<size_t> pending = {0};
    reaching[0] = std::move(start);
    while (!pending.empty() && !testing::Test::HasFailure()) {
      const size_t at = pending.back();
      pending.pop_back();
      Contents contents = reaching[at];
      step(at, contents);
      for (const size_t next : successors(before, at)) {
        bool is_new = false;
        for (size_t unit = 0; unit < contents.size(); ++unit) {
          is_new |= (contents[unit] & ~reaching[next][unit]) != 0;
          reaching[next][unit] |= contents[unit];
        }
        if (is_new) pending.push_back(next);
      }
    }
  }
};

TEST(AssignUnits, NoPathReadsWhatAnotherRegisterLeft) {
  uint64_t units_before = 0, units_after = 0;
  for (uint32_t seed = 0; seed < 2000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const bool is_entry = seed % 2 == 0;
    const FunctionCode before = Generator(seed).make();
    FunctionCode after = before;
    assign_units(is_entry, after);
    Paths paths{before, after, {}};
    for (size_t i = 0; i < before.slots.size(); ++i) {
      paths.registers[before.slots[i].unit] = static_cast<int>(i);
    }
    // By unit: the width of the registers that it is for, and who may have left something there.
    std::map<uint32_t, int> widths;
    Contents start(after.units, 1ull << 63);
    const auto place = [&](uint32_t from, uint32_t to) {
      if (from == kNoUnit) return;
      const Slot& slot = before.slots[static_cast<size_t>(paths.register_of(from))];
      for (uint32_t i = 0; i < slot.count(); ++i) {
        EXPECT_EQ(widths.try_emplace(to + i, slot.bytes * 8 + static_cast<int>(i)).first->second,
                  slot.bytes * 8 + static_cast<int>(i));
      }
      if (is_entry) return;
      start[to] |= uint64_t{1} << paths.register_of(from);  // an earlier call
      EXPECT_EQ(from == kReturnUnit, to == kReturnUnit);
    };
    for (size_t at = 0; at < before.code.size(); ++at) {
      place(before.code[at].guard, after.code[at].guard);
      for (size_t i = 0; i < before.code[at].operand_count; ++i) {
        place(before.code[at].operands[i], after.code[at].operands[i]);
      }
    }
    for (size_t i = 0; i < before.constants.size(); ++i) {
      place(before.constants[i].unit, after.constants[i].unit);
      start[after.constants[i].unit] |= uint64_t{1} << paths.register_of(before.constants[i].unit);
    }
    paths.walk(std::move(start));
    units_before += before.units;
    units_after += after.units;
  }
  EXPECT_LT(units_after, units_before);
}

// ---- in kernels

const std::string kStore = "add.u64 %d11, %d1, %d10; st.global.u32 [%d11], %r90;";

TEST(AssignUnits, AChainOfRegistersTakesFewUnits) {
  std::string body;
  for (int i = 5; i < 90; ++i) {
    body +=
        "add.u32 %r" + std::to_string(i + 1) + ", %r" + std::to_string(i == 5 ? 1 : i) + ", %r3;\n";
  }
  Buffer out = buffer<uint32_t>(64, kOutput);
  const PtxLaunch launch{.body = body + kStore, .buffers = {&out}, .grid = 2};
  EXPECT_LT(load_module(ptx_text(launch))->find_entry("k")->units, 40u);
  expect_clean(launch);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out.as<uint32_t>()[i], i % 32 + 85 * i);
}

// Each of these reads a register on a path that does not write it, after one of its width ended.
TEST(AssignUnits, ARegisterThatEndedHidesNoMissingWrite) {
  const std::string ended = "mov.u32 %r40, 5; setp.lt.u32 %p1, %r1, %r40;";
  for (const std::string unwritten :
       {"@%p1 mov.u32 %r90, 6;", "@%p1 bra L; mov.u32 %r90, 6; L:",
        "mov.u32 %r50, 0; L: @%p1 bra M; mov.u32 %r90, %r50; M: add.u32 %r50, %r50, 1;"
        "setp.lt.u32 %p2, %r50, 3; @%p2 bra L;"}) {
    Buffer out = buffer<uint32_t>(32, kOutput);
    expect_finding({.body = ended + unwritten + kStore, .buffers = {&out}},
                   FindingKind::uninitialized, "a register that nothing has given a value");
  }
}

TEST(AssignUnits, TheLowHalfOfAnEndedRegisterHidesNoMissingWrite) {
  const std::string ended = "mov.b64 %d20, {%r1, %r40}; cvt.u32.u64 %r89, %d20;";
  for (const std::string unwritten : {"mov.b64 %d21, {%r41, %r1};", "add.u64 %d21, %d22, 1;"}) {
    Buffer out = buffer<uint32_t>(32, kOutput);
    expect_finding(
        {.body = ended + unwritten + "cvt.u32.u64 %r90, %d21;" + kStore, .buffers = {&out}},
        FindingKind::uninitialized, "a register that nothing has given a value");
  }
}

// The second call finds what the first has left in the frame.
TEST(AssignUnits, AnEarlierCallHidesNoMissingWrite) {
  const std::string function =
      ".func (.param .b32 o) f(.param .b32 i) {\n.reg .b32 %r<8>; .reg .pred %p<2>;\n"
      "ld.param.u32 %r1, [i]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;\n"
      "st.param.b32 [o], %r2; ret;\nL: mov.u32 %r3, 7; add.u32 %r4, %r3, 1;\n"
      "st.param.b32 [o], %r4; ret;\n}\n";
  const auto call = [](const std::string& argument) {
    return "{ .param .b32 a; .param .b32 b; st.param.b32 [a], " + argument +
           "; call (b), f, (a); ld.param.b32 %r90, [b]; }\n";
  };
  Buffer out = buffer<uint32_t>(32, kOutput);
  expect_clean({.body = call("0") + kStore, .buffers = {&out}, .globals = function});
  EXPECT_EQ(out.as<uint32_t>()[31], 8u);
  expect_finding({.body = call("0") + call("1") + kStore, .buffers = {&out}, .globals = function},
                 FindingKind::uninitialized, "which nothing has written");
}

}  // namespace
}  // namespace stitch::ptxsim
