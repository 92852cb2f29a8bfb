// The headers of csrc/device/stitch as one text, which every kernel starts with.
//
// The build generates the definition (tools/embed_device.py).  The text serves both targets: it
// looks at the compiler that reads it.  Kernels follow inside `namespace stitch`.
#pragma once

#include <string_view>

namespace stitch {

std::string_view device_text();

}  // namespace stitch
