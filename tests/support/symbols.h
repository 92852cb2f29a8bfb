// Sizes that are only known at run time, as tests name them.
#pragma once

#include "ops/dim.h"

namespace stitch {

inline const Dim s0 = Dim::symbol(0), s1 = Dim::symbol(1);

}  // namespace stitch
