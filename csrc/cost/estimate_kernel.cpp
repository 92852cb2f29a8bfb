#include "cost/estimate_kernel.h"

#include <algorithm>
#include <cmath>

namespace stitch {
namespace {

// Blocks that one multiprocessor holds at once.
double resident_blocks(const StageWork& work, const DeviceSpec& device) {
  double most =
      std::min(device.blocks_per_multiprocessor, device.threads_per_multiprocessor / work.threads);
  if (work.shared_bytes > 0)
    most = std::min<double>(most, device.shared_bytes_per_multiprocessor / work.shared_bytes);
  if (work.registers > 0)
    most = std::min<double>(most,
                            device.registers_per_multiprocessor / (work.registers * work.threads));
  return std::max(1.0, most);
}

// Share of the device that blocks use: the busiest multiprocessor decides.  Two blocks that start
// together end together, and the last partial wave takes as long as a whole one; of many some have
// ended earlier, and it takes as long as its own blocks, or as the fewest that keep memory
// busy: 2.2 waves of 16 blocks of 128 threads are as long as 35 blocks of each multiprocessor, not
// 48 [M].
double occupancy(const StageWork& work, const DeviceSpec& device, int worker_threads,
                 double busy_threads) {
  if (!device.is_cuda) {
    const double waves = work.blocks / worker_threads;
    return std::min(1.0, waves / std::ceil(waves));
  }
  const double most = std::max(1, device.threads_per_multiprocessor / work.threads);
  const double blocks = std::max(1.0, work.blocks);
  const double each = std::min(most, std::ceil(blocks / device.multiprocessors));
  const double busy = busy_threads / work.threads;
  const double all = blocks / device.multiprocessors, whole = std::floor(all / each) * each;
  double last = 0;
  if (all > whole) {
    const double own = std::clamp(std::ceil(all - whole), std::min(busy, each), each);
    last = own + (each - own) * std::min(1.0, 4 / (each * each));
  }
  return std::min(1.0, each / busy) * all / (whole + last);
}

}  // namespace

StageEstimate estimate_stage(const StageWork& work, const DeviceSpec& device, int worker_threads) {
  // On the host one core's share of the row grows with the threads at work.
  const double scale = device.is_cuda ? 1.0 : worker_threads / 2.0;
  const double memory = work.dram_bytes / (device.dram_bytes_per_us * scale) +
                        work.cache_bytes / (device.l2_bytes_per_us * scale);
  // A GPU's pipes run side by side; an instruction is a product and a sum at most.
  const double special = work.specials / (device.special_per_us * scale);
  const double arithmetic = device.is_cuda
                                ? std::max(special, work.operations / (device.flops_per_us / 2))
                                : special + work.operations / (device.flops_per_us * scale);
  const double least_us = std::max(memory, arithmetic);
  // A multiprocessor looks up one line of its first cache each cycle.
  const double lines_us =
      device.is_cuda ? work.lines / (device.multiprocessors * device.cycles_per_us) : 0;
  const auto share_of = [&](double busy_threads) {
    return std::max(1e-6, occupancy(work, device, worker_threads, busy_threads));
  };
  const double moves_us = std::max(memory, lines_us);
  const double moving = share_of(kBusyThreads / (work.in_flight * work.busy));
  const double issuing = share_of(kIssuingThreads);
  const double share = moves_us / moving >= arithmetic / issuing ? moving : issuing;
  const double throughput_us = std::max(moves_us / moving, arithmetic / issuing);
  const double blocks = std::max(1.0, work.blocks);
  const double resident = resident_blocks(work, device);
  const double at_once = resident * device.multiprocessors;
  // One warp's chain, as often as warps must wait for others to end (20.10: N_wave * L_warp).
  const auto chains = [&](double waves) {
    const double cycles = waves * work.cycles - device.latencies.memory;
    return device.is_cuda ? std::max(0.0, cycles) / device.cycles_per_us : 0;
  };
  const double chains_us = chains(std::ceil(blocks / at_once));
  const double later = 1 - std::min(1.0, at_once / blocks);
  const double waits_us = later * std::min(throughput_us, chains_us) / (resident * resident);
  const double busy_us = std::max(throughput_us, chains_us);
  const double us = std::max(busy_us + waits_us, blocks * device.block_us);
  StageWork one = work;
  one.blocks = 1;
  const auto alone = [&](double busy_threads) {
    return occupancy(one, device, worker_threads, busy_threads);
  };
  // The first access is made where the block learns that it is alone (last_block_us).
  const double first_us = device.is_cuda ? device.latencies.memory / device.cycles_per_us : 0;
  const double moves_alone_us =
      moves_us / alone(kBusyThreads / (work.in_flight * work.busy)) - first_us;
  const double alone_us =
      std::max({moves_alone_us, arithmetic / alone(kIssuingThreads), chains(blocks)});
  return {us, share, blocks, least_us, alone_us};
}

StageEstimate run_in_turn(const StageEstimate& first, const StageEstimate& then) {
  const double us = first.us + then.us;
  const double full_us = first.us * first.share + then.us * then.share;
  return {us, us > 0 ? full_us / us : first.share, first.blocks, first.least_us + then.least_us,
          first.alone_us + then.alone_us};
}

void PhaseTime::add(const StageEstimate& stage) {
  longest_us = std::max(longest_us, stage.us);
  full_us += stage.us * stage.share;
  alone_us += stage.alone_us;
}

double estimate_us(const std::vector<PhaseTime>& phases, const DeviceSpec& device) {
  double us = 0;
  Join before = Join::kLaunch;
  for (const PhaseTime& phase : phases) {
    const bool is_alone = phase.join == Join::kLastBlock;
    us += is_alone ? phase.alone_us : phase.us();
    if (phase.join == Join::kLaunch) us += device.launch_us;
    if (phase.join == Join::kGrid) us += device.barrier_us;
    if (is_alone && before != Join::kLastBlock) us += device.last_block_us;
    before = phase.join;
  }
  return us;
}

}  // namespace stitch
