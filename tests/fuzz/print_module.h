// print_module: one line an instruction, what the decoder made of a text.
#pragma once

#include <string>

#include "ptxsim/isa/module.h"

namespace stitch::ptxsim {

std::string print_module(const Module& module);

}  // namespace stitch::ptxsim
