// Schedules with one fault each: elements that no thread has, results of other threads, memory that
// two values share.
#include "plan/plan_graph.h"
#include "support/faults.h"

namespace stitch {
namespace {

using ScheduleFaults = std::vector<Fault<Planned>>;

void expect_schedule_faults(const std::string& text, const char* target,
                            const ScheduleFaults& faults) {
  expect_refused(
      faults, [&] { return plan_graph(text, target); },
      [](const Planned& planned) {
        for (size_t s = 0; s < planned.plan.stages.size(); ++s)
          verify_schedule(planned.graph, planned.plan.stages[s], planned.plan.schedules[s]);
      });
}

StageSchedule& first(Planned& p) { return p.plan.schedules.at(0); }
MappedAxis& rows(Planned& p) { return first(p).axes.at(0); }
MappedAxis& columns(Planned& p) { return first(p).axes.at(1); }

const char* const kSoftmax = R"(
  %x = input : f32[4096,1024]
  %e = exp(sub(%x, amax(%x){axes=[1], keepdim}))
  %y = div(%e, sum(%e){axes=[1], keepdim})
  outputs (%y)
)";

TEST(VerifySchedule, DigitsOfAxes) {
  expect_schedule_faults(
      kSoftmax, "h200",
      {{"lanes that are no power of two", [](Planned& p) { columns(p).set(Level::kLane, 24); },
        "threads-power-of-two"},
       {"a vector that does not divide the extent",
        [](Planned& p) { columns(p).set(Level::kVector, 3); }, "vector-divides-extent"},
       {"digits in another order", [](Planned& p) { std::ranges::reverse(columns(p).digits); },
        "digits-in-order"},
       {"two digits of one level",
        [](Planned& p) { rows(p).digits.push_back(rows(p).digits.back()); }, "digits-in-order"},
       {"too few blocks", [](Planned& p) { rows(p).set(Level::kGrid, 2047); },
        "blocks-cover-extent"},
       {"smaller tiles", [](Planned& p) { rows(p).set_threads(1, 0); }, "blocks-cover-extent"},
       {"too few trips", [](Planned& p) { columns(p).set(Level::kSerial, 1); },
        "digits-cover-extent"},
       {"too few threads", [](Planned& p) { columns(p).set(Level::kWarp, 2, kLaneBits); },
        "digits-cover-extent"},
       {"a ragged axis called exact", [](Planned& p) { rows(p).set(Level::kSerial, 3); },
        "exact-divides"},
       {"threads that the block does not have", [](Planned& p) { first(p).threads /= 2; },
        "thread-bits-in-block"},
       {"thread bits past the block's",
        [](Planned& p) { rows(p).set_threads(rows(p).threads(), 9); }, "thread-bits-in-block"},
       {"two axes with the same thread bits",
        [](Planned& p) { rows(p).set_threads(rows(p).threads(), 0); }, "thread-bits-disjoint"}});
}

TEST(VerifySchedule, LoopsAndRoots) {
  const auto leaf = [](Planned& p) -> LoopBlock& {
    return *std::ranges::find_if(first(p).blocks, [](const LoopBlock& block) {
      return std::ranges::any_of(block.items, [](const auto& item) { return !item.roots.empty(); });
    });
  };
  expect_schedule_faults(
      kSoftmax, "h200",
      {{"a loop over an axis that there is not", [](Planned& p) { first(p).loops[0].axis = 2; },
        "loop-has-axis"},
       {"a block of another loop", [](Planned& p) { first(p).blocks.back().loop = 9; },
        "block-has-loop"},
       {"a root without a scheme", [](Planned& p) { first(p).schemes.clear(); }, "root-has-scheme"},
       {"a block of another parent", [](Planned& p) { first(p).blocks.back().parent = 0; },
        "block-in-one-block"},
       {"a block in two blocks",
        [](Planned& p) { first(p).blocks[0].items.push_back({.block = 1}); }, "block-in-one-block"},
       {"a block in none", [](Planned& p) { first(p).blocks[0].items.pop_back(); },
        "block-in-one-block"},
       {"a loop inside of itself", [](Planned& p) { first(p).blocks.back().loop = 0; },
        "loops-in-order"},
       {"a root in no leaf", [=](Planned& p) { leaf(p).items[0].roots.clear(); },
        "root-in-one-leaf"},
       {"a root in two leaves", [=](Planned& p) { leaf(p).items.push_back(leaf(p).items.back()); },
        "root-in-one-leaf"},
       {"a root outside of its loops",
        [=](Planned& p) {
          std::vector<LoopBlock::Item>& items = leaf(p).items;
          first(p).blocks[0].items.push_back(items.back());
          items.pop_back();
        },
        "root-in-its-loops"},
       {"a value that is reused before it is made",
        [](Planned& p) { std::ranges::reverse(first(p).leaves); }, "made-before-reused"},
       {"a sum of all threads that each has for itself",
        [](Planned& p) {
          for (auto& [root, scheme] : first(p).schemes) scheme = Scheme::kLocal;
        },
        "scheme-crosses-threads"},
       {"a sum of all warps that shuffles combine",
        [](Planned& p) {
          for (auto& [root, scheme] : first(p).schemes) scheme = Scheme::kWarp;
        },
        "scheme-crosses-threads"},
       {"no room for what warps exchange", [](Planned& p) { first(p).shared_bytes = 0; },
        "shared-within-device"},
       {"more shared memory than a block has", [](Planned& p) { first(p).shared_bytes = 1 << 20; },
        "shared-within-device"}});
}

TEST(VerifySchedule, ArraysHaveASize) {
  expect_schedule_faults(
      column_sum("f32[16384,768]"), "cpu",
      {{"an accumulator along an axis of unknown trips",
        [](Planned& p) { columns(p).digits = {{Level::kSerial, kOpen}}; }, "arrays-are-static"},
       {"tiles of as many trips as are left",
        [](Planned& p) { columns(p).set(Level::kSerial, kOpen); }, "open-digit-is-last"},
       {"an accumulator that no cache holds",
        [](Planned& p) { columns(p).set(Level::kSerial, 1 << 20); }, "arrays-are-static"},
       {"chunks of an axis that blocks divide",
        [](Planned& p) {
          rows(p).digits = {{Level::kSerial, 4}, {Level::kChunk, 4}, {Level::kGrid, 1024}};
        },
        "parts-in-one-block"}});
}

TEST(VerifySchedule, WhatStaysOnChip) {
  const char* scaled = R"(
    %x = input : f32[256,16384]
    %parts = amax(abs(%x)){axes=[1]}
    %y = div(%x, amax(%parts))
    outputs (%y)
  )";
  const auto kept = [](Planned& p) -> PersistentValue& { return first(p).persistent.at(0); };
  expect_schedule_faults(
      scaled, "h200",
      {{"an access without a home", [=](Planned& p) { --kept(p).home.in_registers; },
        "homes-add-up"},
       {"less than no home",
        [=](Planned& p) {
          kept(p).home.in_memory = -1;
          ++kept(p).home.in_registers;
        },
        "homes-add-up"},
       {"accesses that no loop makes",
        [=](Planned& p) {
          ++kept(p).accesses;
          ++kept(p).home.in_registers;
        },
        "accesses-are-trips"},
       {"more registers than were set aside", [=](Planned& p) { kept(p).home.registers = 200; },
        "registers-of-thread"}});
}

TEST(VerifySchedule, SharedMemory) {
  const char* transposes = R"(
    %x = input : f32[512,512]
    %z = input : f32[512,512]
    %y = add(permute(%x){order=[1,0]}, exp(permute(%z){order=[1,0]}))
    outputs (%y)
  )";
  const auto tile = [](Planned& p) -> TiledLoad& { return first(p).tiles.at(1); };
  expect_schedule_faults(
      transposes, "h200",
      {{"two tiles in one place",
        [=](Planned& p) { tile(p).shared_offset = first(p).tiles[0].shared_offset; },
        "shared-disjoint"},
       {"tiles that overlap by a row", [=](Planned& p) { tile(p).shared_offset -= 256; },
        "shared-disjoint"},
       {"a tile past the block's memory",
        [=](Planned& p) { tile(p).shared_offset = first(p).shared_bytes; }, "shared-range"},
       {"a tile before the block's memory", [=](Planned& p) { tile(p).shared_offset = -1024; },
        "shared-range"}});
}

}  // namespace
}  // namespace stitch
