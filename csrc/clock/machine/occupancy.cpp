#include "clock/machine/occupancy.h"

#include <algorithm>

#include "base/error.h"
#include "base/round_up.h"
#include "base/words.h"

namespace stitch::clock {

namespace {

constexpr int kSharedUnit = 128;
constexpr int64_t kMostThreads = 1024;

void check_extents(const Launch& launch) {
  constexpr std::array<int64_t, 3> most_grid = {INT32_MAX, 65535, 65535};
  constexpr std::array<int64_t, 3> most_block = {1024, 1024, 64};
  const auto check = [](const char* what, const auto& found, const auto& most) {
    for (size_t d = 0; d < 3; ++d) {
      if (found[d] >= 1 && found[d] <= most[d]) continue;
      throw UserError(concat("extent ", std::string(1, "xyz"[d]), " of the ", what, " is ",
                             found[d], "; it is 1 to ", most[d]));
    }
  };
  check("grid", launch.grid, most_grid);
  check("block", launch.block, most_block);
  if (launch.threads() > kMostThreads)
    throw UserError(concat("a block has ", launch.threads(), " threads; it has at most 1024"));
}

void check_device(const Cubin& cubin, const DeviceSpec& device) {
  const std::string found = concat("sm_", cubin.architecture), arch = device.arch;
  if (arch.starts_with(found) && arch.size() <= found.size() + 1) return;
  throw UserError(concat("the cubin is for ", found, ", and ", device.name, " runs ",
                         arch.empty() ? "no cubins" : arch,
                         "; compile it for that, or name a target of its architecture"));
}

[[noreturn]] void refuse(const CubinKernel& kernel, const std::string& what, int64_t found,
                         int64_t limit) {
  throw UserError(concat("a block of ", kernel.name, " takes ", found, " ", what,
                         ", and a multiprocessor has ", limit,
                         ": it cannot be launched; make blocks smaller"));
}

}  // namespace

Occupancy find_occupancy(const Cubin& cubin, const CubinKernel& kernel, const Launch& launch,
                         const DeviceSpec& device) {
  check_device(cubin, device);
  check_extents(launch);
  const auto& bounds = kernel.max_threads;
  const int64_t most = int64_t{bounds[0]} * bounds[1] * bounds[2];
  if (most > 0 && launch.threads() > most)
    throw UserError(concat("a block has ", launch.threads(), " threads, and ", kernel.name,
                           " is compiled for at most ", most));
  Occupancy found;
  // Sections of sm_90 and later hold the system's share.
  const bool holds_reserve = cubin.architecture >= 90 && kernel.shared_bytes > 0;
  const int64_t own = kernel.shared_bytes + launch.shared_bytes -
                      (holds_reserve ? static_cast<int64_t>(kNumbers.shared_reserve) : 0);
  if (launch.shared_bytes < 0 || own > device.shared_bytes_per_block)
    refuse(kernel, "bytes of shared memory", own, device.shared_bytes_per_block);
  const int64_t shared_bytes =
      round_up(own + static_cast<int64_t>(kNumbers.shared_reserve), kSharedUnit);
  const int64_t warps = divide_up(launch.threads(), kLanes);
  const int64_t registers =
      round_up(std::max(kernel.registers, 1), static_cast<int64_t>(kNumbers.register_unit));
  const int64_t warps_by_registers =
      device.registers_per_multiprocessor / kSchedulers / (registers * kLanes) * kSchedulers;
  if (warps_by_registers < warps)
    refuse(kernel, "registers", registers * warps * kLanes, device.registers_per_multiprocessor);
  const std::pair<int64_t, const char*> limits[] = {
      {divide_up(launch.blocks(), device.multiprocessors), "the grid"},
      {device.threads_per_multiprocessor / (warps * kLanes), "threads"},
      {warps_by_registers / warps, "registers"},
      {device.shared_bytes_per_multiprocessor / shared_bytes, "shared memory"},
      {device.blocks_per_multiprocessor, "blocks"}};
  const auto& least = *std::ranges::min_element(limits);
  found.blocks = least.first;
  found.limit = least.second;
  found.first_cache_bytes = device.shared_bytes_per_multiprocessor +
                            static_cast<int64_t>(kNumbers.unshared_bytes) -
                            found.blocks * shared_bytes;
  return found;
}

}  // namespace stitch::clock
