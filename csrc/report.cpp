#include "report.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace stitch {

// By characters of UTF-8, which the user's files may be named in.
static std::string pad(std::string text, size_t width) {
  const size_t shown = std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; });
  return text.append(width - std::min(width, shown), ' ');
}

static void print(std::ostream& out, const ReportedKernel& kernel) {
  using std::setw;
  out << '\n'
      << pad(kernel.name.substr(0, 47), 48) << setw(9) << kernel.grid << " x "
      << pad(std::to_string(kernel.block), 4) << setw(8)
      << (kernel.registers < 0 ? "-" : std::to_string(kernel.registers)) << setw(8)
      << kernel.spill_bytes << setw(8) << kernel.shared_bytes << setw(8)
      << (kernel.bytes_read + kernel.bytes_written) / 1e6 << std::setprecision(1) << setw(8)
      << kernel.predicted_us << std::setprecision(2) << "  " << kernel.policy;
  for (const ReportedOp& op : kernel.ops) out << "\n    " << op.op << ' ' << op.location;
  const ReportedTime& time = kernel.time;
  if (time.us >= 0)
    out << "\n    " << time.us << " us by the clock"
        << (time.launches > 1 ? " in " + std::to_string(time.launches) + " launches" : "")
        << ", bound by " << time.bound << ": " << std::setprecision(1)
        << time.instructions_per_16_bytes << " instructions for 16 bytes, " << std::setprecision(2)
        << time.resident_threads << " resident threads";
  for (const std::string& sentence : time.assumptions) out << "\n    assumed: " << sentence;
  for (const ReportedPersistent& kept : kernel.persistent)
    out << "\n    " << kept.value << " in " << kept.home << ": " << kept.registers
        << " registers a thread, " << kept.shared_bytes << " bytes a block";
  for (const ReportedTile& tile : kernel.tiles)
    out << "\n    " << tile.value << " through tiles on chip: " << tile.rows << " rows, "
        << tile.bytes << " bytes a block";
}

void Report::add(const Report& graph) {
  if (graphs++ == 0) {
    target = graph.target;
    device = graph.device;
  }
  kernels.insert(kernels.end(), graph.kernels.begin(), graph.kernels.end());
  library_calls.insert(library_calls.end(), graph.library_calls.begin(), graph.library_calls.end());
  cuts.insert(cuts.end(), graph.cuts.begin(), graph.cuts.end());
  for (auto bytes : {&Report::bytes_touched, &Report::bytes_planned, &Report::bytes_unfused,
                     &Report::bytes_compulsory})
    this->*bytes += graph.*bytes;
}

std::string to_string(const Report& report) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(2) << "plan for "
      << (report.graphs ? report.target : "None") << ": " << report.kernels.size() << " kernels, "
      << report.library_calls.size() << " library calls, " << report.graph_breaks()
      << " graph breaks\n"
      << (report.device.empty() ? "" : report.device + "\n") << pad("kernel", 48)
      << "    grid x block    regs  spills  shared      MB      us  policy";
  for (const ReportedKernel& kernel : report.kernels) print(out, kernel);
  for (const ReportedCall& call : report.library_calls)
    out << '\n'
        << pad(call.name + ' ' + call.location, 88) << std::setw(8)
        << (call.bytes_read + call.bytes_written) / 1e6;
  for (const ReportedCut& cut : report.cuts)
    out << "\ncut " << cut.edge << ": rule " << cut.rule << ", " << cut.words << ' ' << cut.remedy;
  out << "\nMB: touched " << report.bytes_touched / 1e6 << ", planned "
      << report.bytes_planned / 1e6 << ", unfused " << report.bytes_unfused / 1e6 << ", compulsory "
      << report.bytes_compulsory / 1e6;
  return out.str();
}

}  // namespace stitch
