#include "ptxsim/lanes/lanes.h"

namespace stitch::ptxsim {

thread_local uint64_t approximation_noise = 0;

void set_approximation_noise(uint64_t seed) { approximation_noise = seed; }

// lanes_*.cpp, compiled once for each of these.
namespace baseline {
Handler find_lanes(Opcode opcode, Type type, Type source, const Modifiers& modifiers);
}
#if defined(__x86_64__)
namespace avx2 {
Handler find_lanes(Opcode opcode, Type type, Type source, const Modifiers& modifiers);
}
#endif

namespace {

auto choose_lanes() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
    return avx2::find_lanes;
  }
#endif
  return baseline::find_lanes;
}

}  // namespace

Handler find_handler(Opcode opcode, Type type, Type source_type, const Modifiers& modifiers) {
  static const auto find_lanes = choose_lanes();
  return find_lanes(opcode, type, source_type, modifiers);
}

}  // namespace stitch::ptxsim
