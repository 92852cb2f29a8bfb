// What the build generates for the library to carry.
#pragma once

#include <string>
#include <string_view>

namespace stitch {

// The headers of csrc/device/stitch as one text, which every kernel starts with, for both targets:
// it looks at the compiler.  Kernels follow in `namespace stitch`.  By tools/embed_device.py.
std::string_view device_text();

// SHA-256 of all sources, by tools/hash_sources.py: the key of what only the same build can read.
std::string source_hash();

}  // namespace stitch
