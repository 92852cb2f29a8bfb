// SHA-256 of all that this library is built from, by tools/hash_sources.py: what one build keeps
// and only the same can read goes by it.
#pragma once

#include <string>

namespace stitch {

std::string source_hash();

}  // namespace stitch
