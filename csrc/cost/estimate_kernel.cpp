#include "cost/estimate_kernel.h"

#include <algorithm>
#include <cmath>

namespace stitch {
namespace {

// Threads per multiprocessor with 16-byte accesses that keep DRAM busy: 46 KB in flight on an H200
// (bandwidth times latency).
constexpr double kBusyThreads = 1024;

// Share of the device that blocks use: the busiest multiprocessor decides, the last partial wave
// included.
double occupancy(const StageWork& work, const DeviceSpec& device, int worker_threads) {
  if (!device.is_cuda) {
    const double waves = work.blocks / worker_threads;
    return std::min(1.0, waves / std::ceil(waves));
  }
  const double most = std::max(
      1.0, std::floor(device.threads_per_multiprocessor / static_cast<double>(work.threads)));
  const double blocks = std::max(1.0, work.blocks);
  const double each = std::min(most, std::ceil(blocks / device.multiprocessors));
  const double waves = blocks / (device.multiprocessors * each);
  return std::min(1.0, each * work.threads / kBusyThreads) * waves / std::ceil(waves);
}

}  // namespace

StageEstimate estimate_stage(const StageWork& work, const DeviceSpec& device, int worker_threads) {
  // On the host one core's share of the row grows with the threads at work.
  const double scale = device.is_cuda ? 1.0 : worker_threads / 2.0;
  const double memory = work.dram_bytes / (device.dram_bytes_per_us * scale) +
                        work.cache_bytes / (device.l2_bytes_per_us * scale);
  const double arithmetic = work.operations / (device.flops_per_us * scale) +
                            work.specials / (device.special_per_us * scale);
  const double share = std::max(1e-6, occupancy(work, device, worker_threads));
  return {std::max(memory, arithmetic) / share, share, std::max(1.0, work.blocks)};
}

StageEstimate run_in_turn(const StageEstimate& first, const StageEstimate& then) {
  const double us = first.us + then.us;
  if (us == 0) return first;
  return {us, (first.us * first.share + then.us * then.share) / us, first.blocks};
}

void PhaseTime::add(const StageEstimate& stage) {
  longest_us = std::max(longest_us, stage.us);
  full_us += stage.us * stage.share;
  blocks += stage.blocks;
}

double PhaseTime::alone_us(int threads, const DeviceSpec& device) const {
  const double share = std::min(1.0, threads / kBusyThreads) / device.multiprocessors;
  return full_us / share + (blocks - 1) * device.last_block_us;
}

double estimate_us(const StageEstimate& stage, const DeviceSpec& device) {
  return device.launch_us + stage.us;
}

double estimate_us(const std::vector<PhaseTime>& phases, const DeviceSpec& device, int finish,
                   int threads) {
  double us = device.launch_us;
  for (int p = 0; p < static_cast<int>(phases.size()); ++p) {
    const bool is_alone = finish >= 0 && p >= finish;
    us += is_alone ? phases[p].alone_us(threads, device) : phases[p].us();
    us += p == finish ? device.last_block_us : p == 0 || is_alone ? 0 : device.barrier_us;
  }
  return us;
}

}  // namespace stitch
