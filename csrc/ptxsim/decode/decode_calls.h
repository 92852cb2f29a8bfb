// Calls: whom they call, and where their arguments are.
//
// No function is active twice, so the .param variables that a call passes are the callee's own:
// what is stored to them is where the callee reads it, and nothing is copied.  This holds where no
// other call of that function stands between the stores and their call, as compilers write it.
#pragma once

#include "ptxsim/decode/decode_operands.h"

namespace stitch::ptxsim {

// call (results), callee, (arguments);
struct CallText {
  const PtxOperand* results = nullptr;
  const PtxOperand* arguments = nullptr;
  uint32_t callee = 0;  // in PtxModule::functions
};
CallText read_call(const PtxModule& module, FunctionOperands& operands, const PtxInstruction& text);

// Makes all variables that the function's calls pass one with the parameters of the callees.
void bind_calls(const PtxModule& module, const PtxFunction& function, FunctionOperands& operands);

}  // namespace stitch::ptxsim
