#include <algorithm>

#include "base/archive.h"
#include "base/hash.h"
#include "jit/kernel_cache.h"

namespace stitch {
namespace {

constexpr std::string_view kMagic = "STITCHKC";
constexpr uint64_t kFormatVersion = 2;
constexpr size_t kHashedFrom = 8 + 8 + 8 + kSha256Bytes;  // magic, version, length, digest

std::string header_of(std::string_view body) {
  const size_t length = kHashedFrom + body.size();
  return std::string(kMagic) + to_bytes(kFormatVersion, length) + sha256(body);
}

}  // namespace

std::string cache_key(const CacheRequest& request) {
  return sha256_hex(to_bytes(kFormatVersion, request));
}

std::string encode_entry(const CacheRequest& request, const Binary& binary) {
  const std::string body = to_bytes(request, binary);
  return header_of(body) + body;
}

std::optional<Binary> decode_entry(std::string_view bytes, const CacheRequest& request) {
  const std::string_view body = bytes.substr(std::min(bytes.size(), kHashedFrom));
  CacheRequest answered;
  Binary binary;
  const bool is_whole = bytes.starts_with(header_of(body)) && from_bytes(body, answered, binary);
  if (!is_whole || answered != request) return std::nullopt;
  binary.from_cache = true;
  return binary;
}

}  // namespace stitch
