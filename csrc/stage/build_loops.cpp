#include "stage/build_loops.h"

#include "stage/reduction_arrays.h"

namespace stitch {

bool is_innermost(const StageSchedule& schedule, int block) {
  auto is_unrolled = [&](int at) {
    const int loop = schedule.blocks[at].loop;
    return loop >= 0 && is_written_out(schedule, loop);
  };
  const std::vector<LoopBlock::Item>& items = schedule.blocks[block].items;
  return !is_unrolled(block) && std::ranges::all_of(items, [&](const LoopBlock::Item& item) {
    return item.block < 0 || is_unrolled(item.block);
  });
}

std::vector<int> block_path(const StageSchedule& schedule, int block) {
  std::vector<int> path;
  for (; block >= 0; block = schedule.blocks[block].parent) path.push_back(block);
  std::ranges::reverse(path);
  return path;
}

std::vector<int> path_to(const StageSchedule& schedule, NodeId root) {
  const auto holds_root = [&](const LoopBlock& block) {
    return std::ranges::any_of(block.items, [&](const LoopBlock::Item& item) {
      return std::ranges::count(item.roots, root) > 0;
    });
  };
  const auto found = std::ranges::find_if(schedule.blocks, holds_root);
  STITCH_CHECK(found != schedule.blocks.end(), "a root is in no loop of its kernel");
  return block_path(schedule, static_cast<int>(found - schedule.blocks.begin()));
}

NodeList roots_below(const StageSchedule& schedule, int block) {
  NodeList roots;
  for (const LoopBlock::Item& item : schedule.blocks[block].items) {
    std::ranges::copy(item.roots, std::back_inserter(roots));
    if (item.block >= 0)
      std::ranges::copy(roots_below(schedule, item.block), std::back_inserter(roots));
  }
  return roots;
}

namespace {

struct LoopBuilder {
  const Graph& graph;
  StageSchedule& schedule;

  // Along strips where one of the roots sums over the axis, over the whole where none does.
  bool takes_level(const NodeList& group, int loop) const {
    const LoopSpec& spec = schedule.loops[loop];
    if (!schedule.axes[spec.axis].has(Level::kStrip)) return true;
    const bool sums = std::ranges::any_of(group, [&](NodeId root) {
      const RootSpace& space = space_of(schedule, root);
      return reduces_loop(schedule, space, loop) && takes_strips(graph, schedule, space);
    });
    return sums == (spec.level != Level::kSerial);
  }

  bool needs_loop(NodeId root, int loop) const {
    return loop < std::ssize(schedule.loops) &&
           role_of(space_of(schedule, root), schedule.axes[schedule.loops[loop].axis].axis) !=
               Role::kAbsent;
  }

  // The roots that can run together at this loop: those that agree on needing it and wait for no
  // reduction that finishes only when the loop ends.
  NodeList take_group(NodeList& remaining, int loop) const {
    const bool has_loop = loop < std::ssize(schedule.loops);
    const bool wanted = needs_loop(remaining.front(), loop);
    NodeList group, left;
    for (auto root = remaining.begin(); root != remaining.end(); ++root) {
      const auto& awaited = schedule.spaces.depends.at(*root);
      const auto blocks = [&](NodeId other) {
        return awaited.count(other) > 0 &&
               (!has_loop || std::ranges::count(group, other) == 0 ||
                reduces_loop(schedule, space_of(schedule, other), loop));
      };
      const bool is_ready =
          needs_loop(*root, loop) == wanted && std::none_of(remaining.begin(), root, blocks);
      (is_ready ? group : left).push_back(*root);
    }
    remaining = left;
    return group;
  }

  void build(int block, NodeList roots, int loop) {
    while (!roots.empty()) {
      NodeList group = take_group(roots, loop);
      if (loop >= std::ssize(schedule.loops)) {
        schedule.blocks[block].items.push_back({-1, group});
      } else if (needs_loop(group.front(), loop) && takes_level(group, loop)) {
        const int child = static_cast<int>(schedule.blocks.size());
        schedule.blocks.push_back({loop, block, {}});
        schedule.blocks[block].items.push_back({child, {}});
        build(child, group, loop + 1);
      } else {
        build(block, group, loop + 1);
      }
    }
  }
};

}  // namespace

void build_loops(const Graph& graph, StageSchedule& schedule) {
  schedule.blocks = {LoopBlock{}};
  const NodeList roots = map_to_vector(schedule.spaces.roots, &RootSpace::root);
  LoopBuilder{graph, schedule}.build(0, roots, 0);
}

}  // namespace stitch
