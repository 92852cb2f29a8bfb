#include "stage/schedule.h"

namespace stitch {

std::string to_string(const StageSchedule& schedule, const Graph& graph) {
  std::ostringstream out;
  out << "grid " << to_string(schedule.grid) << " threads " << schedule.threads << " shared "
      << schedule.shared_bytes << "\n";
  if (const Template& chosen = schedule.bounds.chosen; chosen != Template{}) {
    const std::array levels{"derived", "thread", "warp", "block"};
    out << "template " << levels[static_cast<size_t>(chosen.level)] << " threads "
        << chosen.block_threads << "\n";
  }
  for (size_t a = 0; a < schedule.axes.size(); ++a)
    out << "axis " << a << ": " << to_string(schedule.axes[a]) << "\n";
  for (const TiledLoad& tile : schedule.tiles)
    out << "tile of %" << tile.value << ": " << tile.rows << " along axis " << tile.along
        << " across axis " << tile.across << " pitch " << tile.pitch << "\n";
  auto show = [&](auto& self, int block, int indent) -> void {
    for (const LoopBlock::Item& item : schedule.blocks[block].items) {
      const std::string pad(indent, ' ');
      if (item.block >= 0) {
        const LoopSpec& spec = schedule.loops[schedule.blocks[item.block].loop];
        out << pad << "loop " << to_string(spec.level) << " of axis " << spec.axis << "\n";
        self(self, item.block, indent + 2);
      }
      for (NodeId root : item.roots)
        out << pad << info(graph[root]).name << " %" << root << " "
            << to_string(schedule.schemes.at(root)) << "\n";
    }
  };
  show(show, 0, 0);
  for (const auto& [value, index] : schedule.kept_on_chip)
    out << "kept " << info(graph[value]).name << " %" << value << "\n";
  for (const PersistentValue& persistent : schedule.persistent) {
    const Home& home = persistent.home;
    out << "kept " << info(graph[persistent.value]).name << " %" << persistent.value << " in "
        << to_string(home) << (persistent.is_of_stage ? "" : " across the grid barrier") << ": "
        << home.registers << " registers, " << home.shared_bytes << " bytes at "
        << home.shared_offset << "\n";
  }
  for (const BlockBuffer& buffer : schedule.buffers)
    out << "%" << buffer.value << " in shared memory: " << buffer.elements << " elements of a block"
        << ", rows of " << buffer.length << " pitch " << buffer.pitch << " at "
        << buffer.shared_offset << "\n";
  return out.str();
}

}  // namespace stitch
