// SHA-256 (FIPS 180-4), and a hasher of length-prefixed fields for keys.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace stitch {

class Sha256 {
 public:
  static constexpr int kDigestBytes = 32;
  using Digest = std::array<uint8_t, kDigestBytes>;

  void update(std::string_view bytes);
  Digest digest() const;  // of everything so far; more updates may follow

 private:
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_{};
  uint64_t length_bytes_ = 0;
};

std::string to_hex(const Sha256::Digest& digest);
Sha256::Digest sha256(std::string_view bytes);
std::string sha256_hex(std::string_view bytes);

// Each field goes in with its length, so no two field lists feed the same bytes.
class Hasher {
 public:
  Hasher& field(std::string_view bytes);
  Hasher& field(int64_t value);
  std::string hex() const { return to_hex(sha_.digest()); }

 private:
  Sha256 sha_;
};

}  // namespace stitch
