// Functions of shared objects that are in memory.
#pragma once

#include <string>
#include <string_view>

namespace stitch {

// The address of what the object exports under this name, InternalError if there is none.  Equal
// bytes are loaded once and stay so until the process ends: addresses never dangle.
//
// Goes through anonymous memory, so a cache directory mounted without execute permission does not
// matter; where the system forbids that, through a file in a private temporary directory.
// InternalError with the loader's words if both fail.
void* load_host_function(std::string_view bytes, const std::string& name);

}  // namespace stitch
