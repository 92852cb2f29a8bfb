// Where this repository lies: golden files and .venv are looked for there.
#pragma once

#include <filesystem>

namespace stitch {

std::filesystem::path source_directory();

}  // namespace stitch
