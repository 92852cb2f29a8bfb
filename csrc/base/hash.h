// SHA-256 (FIPS 180-4), by PicoSHA2 (third_party/picosha2).
#pragma once

#include <picosha2.h>

#include <string>
#include <string_view>

namespace stitch {

constexpr size_t kSha256Bytes = picosha2::k_digest_size;
inline std::string sha256(std::string_view bytes) {  // as bytes, not as text
  std::string digest(kSha256Bytes, '\0');
  picosha2::hash256(bytes, digest);
  return digest;
}
inline std::string sha256_hex(std::string_view bytes) {
  return picosha2::hash256_hex_string(bytes);
}

}  // namespace stitch
