#include <ranges>

#include "runtime/build_program.h"

namespace stitch {
namespace {

std::vector<BufferId> used_by(const Step& step) {
  if (const auto* allocate = std::get_if<AllocateStep>(&step)) return {allocate->buffer};
  if (const auto* launch = std::get_if<LaunchStep>(&step))
    return map_to_vector(launch->pointers, &LaunchPointer::buffer);
  if (const auto* copy = std::get_if<CopyStep>(&step)) return {copy->from, copy->to};
  const auto* call = std::get_if<CallStep>(&step);
  std::vector<BufferId> used = call ? call->inputs : std::vector<BufferId>();
  if (call) used.insert(used.end(), call->outputs.begin(), call->outputs.end());
  return used;
}

struct Slot {
  int64_t bytes = 0;
  int busy_until = -1;
};

// The free slot that grows least, of these the smallest; -1 if none is free.
int find_free_slot(const std::vector<Slot>& slots, int first, int64_t bytes) {
  const auto rank = [&](int i) {
    return std::pair(std::max<int64_t>(0, bytes - slots[i].bytes), slots[i].bytes);
  };
  auto free = std::views::iota(0, static_cast<int>(slots.size())) |
              std::views::filter([&](int i) { return slots[i].busy_until < first; });
  const auto best = std::ranges::min_element(free, {}, rank);
  return best == free.end() ? -1 : *best;
}

}  // namespace

std::vector<Lifetime> find_lifetimes(const Program& program) {
  std::vector<Lifetime> lifetimes(program.buffers.size());
  auto use = [&](BufferId id, int position) {
    while (id.valid()) {
      Lifetime& lifetime = lifetimes[id.index()];
      if (lifetime.first < 0) lifetime.first = position;
      lifetime.last = position;
      id = program.buffers[id.index()].base;
    }
  };
  const int end = static_cast<int>(program.steps.size());
  for (int i = 0; i < end; ++i)
    for (const BufferId id : used_by(program.steps[i])) use(id, i);
  for (const ProgramOutput& output : program.outputs) use(output.buffer, end);
  for (const BufferId id : program.stored_arguments) use(id, end);
  return lifetimes;
}

void assign_slots(Program& program) {
  const std::vector<Lifetime> lifetimes = find_lifetimes(program);
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(program.buffers.size()); ++i)
    if (program.buffers[i].kind == Buffer::Kind::kSlab && lifetimes[i].first >= 0)
      order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](int i) { return lifetimes[i].first; });
  const std::vector<int64_t> hints = program.symbols.hints();
  std::vector<Slot> slots;
  program.slots.clear();
  for (const int i : order) {
    const int64_t bytes = storage_bytes(program.buffers[i].type, hints);
    int slot = find_free_slot(slots, lifetimes[i].first, bytes);
    if (slot < 0) {
      slot = static_cast<int>(slots.size());
      slots.emplace_back();
      program.slots.emplace_back();
    }
    slots[slot] = {std::max(slots[slot].bytes, bytes), lifetimes[i].last};
    program.slots[slot].push_back(BufferId(i));
    program.buffers[i].index = slot;
  }
}

void insert_releases(Program& program) {
  const std::vector<Lifetime> lifetimes = find_lifetimes(program);
  const int end = static_cast<int>(program.steps.size());
  std::vector<std::vector<BufferId>> releases(end);
  for (int i = 0; i < static_cast<int>(program.buffers.size()); ++i) {
    const bool is_tensor = program.buffers[i].kind != Buffer::Kind::kSlab;
    const int last = lifetimes[i].last;
    if (is_tensor && last >= 0 && last < end) releases[last].push_back(BufferId(i));
  }
  std::vector<Step> steps;
  for (int i = 0; i < end; ++i) {
    auto* call = std::get_if<CallStep>(&program.steps[i]);
    if (call && call->stores_over) {
      const BufferId over = memory_of(program, call->inputs[0]);
      const Buffer::Kind kind = program.buffers[over.index()].kind;
      const bool is_own = kind == Buffer::Kind::kResult || kind == Buffer::Kind::kFresh;
      call->stores_over = is_own && lifetimes[over.index()].last == i;
    }
    steps.push_back(std::move(program.steps[i]));
    for (const BufferId id : releases[i]) steps.emplace_back(ReleaseStep{id});
  }
  program.steps = std::move(steps);
}

}  // namespace stitch
