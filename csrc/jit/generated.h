// What the build generates for the library to carry.
#pragma once

#include <string>
#include <string_view>

namespace stitch {

// The headers of csrc/device/stitch as one text, which every kernel starts with.  It serves both
// targets: it looks at the compiler that reads it.  Kernels follow inside `namespace stitch`.  By
// tools/embed_device.py.
std::string_view device_text();

// SHA-256 of all that this library is built from, by tools/hash_sources.py: what one build keeps
// and only the same can read goes by it.
std::string source_hash();

}  // namespace stitch
