#include "support/source_directory.h"

namespace stitch {

std::filesystem::path source_directory() { return STITCH_SOURCE_DIR; }

}  // namespace stitch
