// A driver table whose device is the simulator: the runtime loads and launches as on a GPU.
//
// An image is PTX text, an address is one of this process, a launch is over when it returns and
// streams mean nothing.  What kernels are accused of does not end the call: it is kept until
// SimulatedRun::check asks.
#pragma once

#include <memory>
#include <string>

#include "ptxsim/machine/simulate.h"
#include "runtime/driver.h"

namespace stitch::ptxsim {

struct SimulatedDevice {
  Machine machine;
  SimulationOptions options;
};

// The row of the DeviceSpec table, or "two_sm": an h200 of two multiprocessors, where grids that
// cannot be resident are cheap.  UserError for another name, and for a row that is no GPU.
Machine machine_of(const std::string& target);
// NVRTC's architecture for it.
std::string arch_of(const std::string& target);

// By the setting `simulate`: "fast" is one order, in which nothing is looked at, and with "noise"
// approximate instructions err by what their documentation allows.  Devices live as long as the
// process: modules are loaded into them.
const SimulatedDevice& simulated_device(const std::string& target, const std::string& how = "true");

// Orders of warps that each checked launch goes through from here on, in the whole process.
void set_orders(int orders);

// Of all launches of the process since the last reset.
Traffic read_traffic();
void reset_traffic();

// What the host asked of the device beside launches, in the process so far.
struct HostCalls {
  uint64_t waits;   // for the device or a stream
  uint64_t copies;  // fills of device memory: the driver table has nothing else that moves any
};
HostCalls read_host_calls();

struct ThreadState;

// While it lives, this thread's driver is the simulated device.  A run inside another, of a library
// call that calls a compiled function, leaves the outer one as it was.
class SimulatedRun {
 public:
  explicit SimulatedRun(const SimulatedDevice& device);
  ~SimulatedRun();
  // InternalError that lists what the launches since the construction were accused of.
  void check() const;

 private:
  ScopedDriver driver_;
  std::unique_ptr<ThreadState> outer_;
};

}  // namespace stitch::ptxsim
