// What a compile depends on, the key made of it, and the file format of one cached binary.
//
// File: magic, format version, total length, SHA-256 of the rest; then (base/archive.h) the request
// with the full source, and the binary with its attributes.  Nothing in a file is trusted before
// length and hash agree, and a file only answers a request whose fields equal the stored ones byte
// for byte.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jit/compiler.h"

namespace stitch {

struct CacheRequest {
  std::string kind;      // "cuda", "ptx" or "host"; "plan" (kept_plan.h), "clock" (time_kernels.h)
  std::string arch;      // "sm_90a", or the CPU features that code is made for; a plan's target
  std::string compiler;  // name and version
  std::string options;
  std::string prelude;  // SHA-256 of the device text, which is the same for all kernels
  std::string source;   // all kernel texts; a plan's graph

  friend bool operator==(const CacheRequest&, const CacheRequest&) = default;
};

// 64 hex digits over every field.
std::string cache_key(const CacheRequest& request);

constexpr size_t kMaxEntryBytes = size_t{64} << 20;

std::string encode_entry(const CacheRequest& request, const Binary& binary);
// Nothing if the bytes are damaged or answer another request.
std::optional<Binary> decode_entry(std::string_view bytes, const CacheRequest& request);

}  // namespace stitch
