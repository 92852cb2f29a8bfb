// Units by liveness: registers of a function that no lane needs at the same time share one.
#pragma once

#include "ptxsim/decode/decode_function.h"

namespace stitch::ptxsim {

// Renumbers the units of all operands.  Immediates and special registers, which are filled once,
// keep a unit of their own, as do a device function's registers that may be read before the
// function writes them: nothing may seem to have written those.
void assign_units(bool is_entry, FunctionCode& code);

}  // namespace stitch::ptxsim
