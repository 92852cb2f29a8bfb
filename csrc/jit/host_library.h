// Shared objects from memory into the process.
#pragma once

#include <string>
#include <string_view>

namespace stitch {

// A loaded object; it stays loaded until the process ends, so symbols never dangle.
struct LoadedLibrary {
  void* handle;

  // The address of an exported symbol; InternalError if there is none.
  void* symbol(const std::string& name) const;
};

// Equal bytes are loaded once.  Goes through anonymous memory, so a cache directory mounted without
// execute permission does not matter; where the system forbids that, through a file in a private
// temporary directory.  InternalError with the loader's words if both fail.
LoadedLibrary load_host_library(std::string_view bytes);

}  // namespace stitch
