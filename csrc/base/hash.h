// SHA-256 (FIPS 180-4).
#pragma once

#include <string>
#include <string_view>

namespace stitch {

constexpr size_t kSha256Bytes = 32;
std::string sha256(std::string_view bytes);  // as bytes, not as text
std::string sha256_hex(std::string_view bytes);

}  // namespace stitch
