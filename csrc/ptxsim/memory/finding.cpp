#include "ptxsim/memory/finding.h"

#include <array>

#include "base/words.h"
#include "ptxsim/isa/module.h"
#include "ptxsim/machine/machine.h"

namespace stitch::ptxsim {
namespace {

constexpr std::array kKindNames = {
    "out_of_bounds",     "misaligned",       "uninitialized", "race",
    "divergent_barrier", "deadlock",         "residency",     "read_only",
    "unwritten",         "nondeterministic", "budget",
};

std::array<uint32_t, 3> thread_of(const Site& site) {
  const uint64_t lane = site.lane < 0 ? 0 : static_cast<uint64_t>(site.lane);
  return unravel(uint64_t(site.warp->index) * kLanes + lane, site.warp->block->threads);
}

std::string place_name(const Function& kernel, const Site& site) {
  std::string text = "kernel " + kernel.name;
  if (site.instruction) {
    const Instruction& at = *site.instruction;
    text += at.source_line ? concat(" line ", at.source_line) : "";
    text += concat(" (PTX ", at.line, ")");
  }
  if (!site.warp) return text;
  const Block& block = *site.warp->block;
  text += concat(", block ", index_name(block.index), ", warp ", site.warp->index);
  if (site.lane < 0) return text;
  return concat(text, ", lane ", site.lane, " (thread ", index_name(thread_of(site)), ")");
}

}  // namespace

const char* kind_name(FindingKind kind) { return kKindNames[size_t(kind)]; }
std::string to_string(const Finding& finding) {
  return concat(kind_name(finding.kind), ": ", finding.message);
}

std::string line_name(const Instruction& instruction) {
  return instruction.source_line ? concat("line ", instruction.source_line)
                                 : concat("PTX line ", instruction.line);
}

std::array<uint32_t, 3> unravel(uint64_t linear, const std::array<uint32_t, 3>& sizes) {
  const uint64_t x = linear % sizes[0], rest = linear / sizes[0];
  return {uint32_t(x), uint32_t(rest % sizes[1]), uint32_t(rest / sizes[1])};
}

std::string index_name(const std::array<uint32_t, 3>& index) {
  return "(" + join(index, ", ") + ")";
}

Reporter::Reporter(const Function& kernel, Findings& findings)
    : kernel_(kernel), findings_(findings) {
  for (const Finding& finding : findings_.all)
    if (finding.ptx_line) seen_.insert({finding.kind, finding.ptx_line, finding.other_line});
}

bool Reporter::is_new(FindingKind kind, const Site& site, int other_line) {
  ++findings_.count;
  if (findings_.all.size() >= Findings::kMost) return false;
  return seen_.insert({kind, site.instruction ? site.instruction->line : 0, other_line}).second;
}

void Reporter::add(FindingKind kind, const Site& site, const std::string& what, int other_line) {
  Finding finding{.kind = kind, .message = place_name(kernel_, site) + ": " + what};
  if (site.instruction) {
    finding.ptx_line = site.instruction->line;
    finding.line = site.instruction->source_line ? site.instruction->source_line : finding.ptx_line;
  }
  finding.other_line = other_line;
  if (site.warp) {
    finding.block = site.warp->block->index;
    finding.thread = thread_of(site);
  }
  findings_.all.push_back(std::move(finding));
}

void Reporter::report(FindingKind kind, const std::string& what) {
  ++findings_.count;
  if (findings_.all.size() < Findings::kMost) add(kind, Site{}, what, 0);
}

}  // namespace stitch::ptxsim
