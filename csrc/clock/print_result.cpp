#include <fstream>

#include "base/error.h"
#include "base/words.h"
#include "clock/time_kernel.h"

namespace stitch::clock {

namespace {

std::string rounded(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

}  // namespace

std::string print_result(const ClockResult& result) {
  constexpr double mega = 1e6;
  constexpr int most_uses = 4;
  std::ostringstream text;
  text << result.kernel << " on " << result.device << ": " << rounded(result.us, 2)
       << " us without its launch, bound by " << result.bound << "\n  " << result.occupancy.blocks
       << " resident blocks, " << result.resident_threads << " threads, limited by "
       << result.occupancy.limit << "; " << result.registers << " registers\n  "
       << rounded(result.instructions_per_thread, 0) << " instructions a thread, "
       << rounded(result.instructions_per_16_bytes, 1) << " per 16 bytes\n  memory "
       << rounded(result.memory_bytes / mega, 2) << " MB, asked for "
       << rounded(result.asked_bytes / mega, 2) << " MB\n  in use: "
       << join(result.uses | std::views::take(most_uses), ", ",
               [](const Use& use) { return use.what + " " + rounded(use.share, 2); });
  if (result.simulated_share < 1)
    text << "\n  " << rounded(100 * result.simulated_share, 0)
         << " % of a multiprocessor's blocks were run, the rest counted at their pace";
  for (const std::string& sentence : result.assumptions) text << "\n  assumed: " << sentence;
  return text.str();
}

std::string print_json(const ClockResult& result) {
  std::ostringstream text;
  text << std::setprecision(9);
  const auto add = [&](const char* name, const auto& value) {
    text << (text.tellp() == 0 ? "{\n " : ",\n ") << quote_json(name) << ": " << value;
  };
  add("kernel", quote_json(result.kernel));
  add("target", quote_json(result.device));
  add("us", result.us);
  add("bound", quote_json(result.bound));
  add("memory_bytes", result.memory_bytes);
  add("asked_bytes", result.asked_bytes);
  add("resident_blocks", result.occupancy.blocks);
  add("resident_threads", result.resident_threads);
  add("limited_by", quote_json(result.occupancy.limit));
  add("registers", result.registers);
  add("instructions_per_thread", result.instructions_per_thread);
  add("thread_instructions_per_16_bytes", result.instructions_per_16_bytes);
  add("simulated_share", result.simulated_share);
  add("uses", "{" + join(result.uses, ", ", [&](const Use& use) {
                return quote_json(use.what) + ": " + rounded(use.share, 4);
              }) + "}");
  add("assumptions", "[" + join(result.assumptions, ", ", quote_json) + "]");
  text << "\n}";
  return text.str();
}

void write_timeline(const ClockResult& result, const std::string& path) {
  if (path.empty()) return;
  std::ofstream text(path);
  text << std::fixed << std::setprecision(4) << "{\"traceEvents\":[";
  const char* separator = "\n";
  const auto add = [&](const std::string& name, int row, const Span& span) {
    text << separator << "{\"ph\":\"X\",\"pid\":0,\"tid\":" << row << ",\"name\":\"" << name
         << "\",\"ts\":" << span.start / result.cycles_per_us
         << ",\"dur\":" << (span.end - span.start) / result.cycles_per_us << "}";
    separator = ",\n";
  };
  for (size_t b = 0; b < result.run.blocks.size(); ++b) {
    const BlockSpan& block = result.run.blocks[b];
    const int row = block.slot * (result.warps_per_block + 1);
    add("block " + std::to_string(b), row, block);
    for (int w = 0; w < result.warps_per_block; ++w)
      add("warp " + std::to_string(w), row + 1 + w,
          result.run.warps[b * result.warps_per_block + w]);
  }
  text << "\n]}\n" << std::flush;
  if (!text) throw UserError("the timeline cannot be written to " + path);
}

}  // namespace stitch::clock
