#include "ptxsim/lanes/lanes_table.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {

Handler find_lanes(Opcode opcode, Type type, Type source, const Modifiers& modifiers) {
  using Find = Handler (*)(const Query&);
  static constexpr Find kFamilies[] = {find_integer, find_bits,        find_float,  find_half,
                                       find_select,  find_approximate, find_convert};
  const Query query = {opcode, type, source, modifiers};
  for (const Find find : kFamilies)
    if (Handler handler = find(query)) return handler;
  return nullptr;
}

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
