// Control bits, which no disassembler prints: where they are read right, each result of variable
// latency is waited for before its first reader.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "clock/sass/program.h"
#include "jit/generated.h"
#include "jit/nvrtc_directories.h"
#include "support/golden.h"

namespace stitch::clock {
namespace {

using Register = std::pair<OperandKind, int>;

std::vector<Register> registers_of(const Instruction& instruction, bool written) {
  std::vector<Register> found;
  for (const Operand& operand : instruction.operands) {
    const bool is_memory = operand.kind == OperandKind::memory;
    const bool is_register = is_memory || operand.kind == OperandKind::reg;
    if (!is_register || operand.is_destination != written || operand.index == kZeroRegister)
      continue;
    for (int k = 0; k < register_count(instruction, operand); ++k)
      found.push_back({OperandKind::reg, operand.index + k});
  }
  return found;
}

struct Checked {
  int results = 0;  // of variable latency, with a scoreboard
  int readers = 0;  // of these
  std::string fault;
};

// Straight pieces of code: where others come in, or lanes jump out of sight, nothing is pending.
void check_program(const Program& program, Checked& checked) {
  std::set<int64_t> targets;
  for (const Instruction& instruction : program.code) {
    if (const Operand* target = instruction.find('j')) targets.insert(target->value);
  }
  std::map<Register, int> pending;  // scoreboards
  for (size_t i = 0; i < program.code.size(); ++i) {
    const Instruction& instruction = program.code[i];
    if (targets.contains(static_cast<int64_t>(i) * kInstructionBytes)) pending.clear();
    std::erase_if(pending, [&](const auto& entry) {
      return instruction.control.wait_mask >> entry.second & 1;
    });
    for (const bool written : {false, true}) {
      for (const Register& one : registers_of(instruction, written)) {
        if (!pending.contains(one)) continue;
        checked.fault = program.kernel->name + ": " + print_instruction(program, i) +
                        " does not wait for R" + std::to_string(one.second);
        return;
      }
    }
    const int scoreboard = instruction.control.write_scoreboard;
    if (instruction.row->latency != Latency::fixed && scoreboard != kNoScoreboard) {
      for (const Register& one : registers_of(instruction, true)) pending[one] = scoreboard;
      checked.results += !registers_of(instruction, true).empty();
    }
    checked.readers += instruction.control.wait_mask != 0;
    const Flow flow = instruction.row->flow;
    if (flow == Flow::branch || flow == Flow::call || flow == Flow::ret) pending.clear();
  }
}

class ControlBits : public testing::TestWithParam<const char*> {};

TEST_P(ControlBits, EveryReaderWaitsForItsResult) {
  STITCH_SKIP_WITHOUT_NVRTC();
  Checked checked;
  const std::string opening = "namespace stitch {\n";
  for (const auto& entry : std::filesystem::directory_iterator(golden_directory() / "text")) {
    if (!entry.path().stem().string().ends_with(".h200")) continue;
    const std::string text = read_golden(entry.path());
    const std::string first = text.substr(0, text.find(opening, opening.size()));
    const Binary binary = run_nvrtc("kernel", std::string(device_text()) + first, GetParam());
    ASSERT_FALSE(binary.bytes.empty()) << binary.log;
    const Cubin cubin = read_cubin(binary.bytes);
    for (const CubinKernel& kernel : cubin.kernels) check_program(decode(cubin, kernel), checked);
    ASSERT_EQ(checked.fault, "");
  }
  EXPECT_GT(checked.results, 500);
  EXPECT_GT(checked.readers, 500);
}

INSTANTIATE_TEST_SUITE_P(Architectures, ControlBits, testing::Values("sm_80", "sm_90a", "sm_100a"));

}  // namespace
}  // namespace stitch::clock
