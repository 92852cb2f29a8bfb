// What a plan and its kernels are -> Report.
#pragma once

#include "compilation.h"
#include "jit/compiler.h"

namespace stitch {

Report make_report(const Compilation& c);

// What the compiler said of a GPU's kernels; there may be none: planned, not compiled.
void add_binaries(Report& report, const std::vector<Binary>& binaries);

}  // namespace stitch
