#include "jit/cache_key.h"

#include <array>
#include <bit>
#include <cstdint>

#include "base/hash.h"

namespace stitch {
namespace {

constexpr std::string_view kMagic = "STITCHKC";
constexpr uint64_t kFormatVersion = 1;
constexpr size_t kHashedFrom = 8 + 8 + 8 + kSha256Bytes;  // magic, version, length, digest

std::string encode_integer(uint64_t value) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

// With its length, so that no two lists of records are the same bytes.
void append_record(std::string& out, std::string_view record) {
  out += encode_integer(record.size());
  out += record;
}

// Reads from the front of `rest`; after a failure everything reads as empty and ok is false.
struct Reader {
  std::string_view rest;
  bool ok = true;

  std::string_view take(uint64_t count) {
    if (!ok || count > rest.size()) {
      ok = false;
      return {};
    }
    const std::string_view taken = rest.substr(0, count);
    rest.remove_prefix(count);
    return taken;
  }
  uint64_t integer() {
    uint64_t value = 0;
    int shift = 0;
    for (char byte : take(8)) value |= uint64_t{static_cast<unsigned char>(byte)} << (8 * shift++);
    return value;
  }
  std::string_view record() { return take(integer()); }
};

std::array<std::string_view, 6> list_fields(const CacheRequest& request) {
  return {request.kind,    request.arch,    request.compiler,
          request.options, request.prelude, request.source};
}

// The fields that must agree, in file order.
std::string encode_request(const CacheRequest& request) {
  std::string bytes;
  append_record(bytes, cache_key(request));
  for (std::string_view field : list_fields(request)) append_record(bytes, field);
  return bytes;
}

}  // namespace

std::string cache_key(const CacheRequest& request) {
  std::string records;
  append_record(records, encode_integer(kFormatVersion));
  for (std::string_view field : list_fields(request)) append_record(records, field);
  return sha256_hex(records);
}

std::string encode_entry(const CacheRequest& request, const Binary& binary) {
  std::string body;
  append_record(body, encode_request(request));
  for (int value : {binary.registers, binary.spill_bytes, binary.stack_bytes, binary.shared_bytes})
    body += encode_integer(static_cast<uint64_t>(int64_t{value}));
  body += encode_integer(std::bit_cast<uint64_t>(binary.compile_ms));
  append_record(body, binary.log);
  append_record(body, binary.bytes);

  std::string file(kMagic);
  file += encode_integer(kFormatVersion);
  file += encode_integer(kHashedFrom + body.size());
  file += sha256(body);
  return file + body;
}

std::optional<Binary> decode_entry(std::string_view bytes, const CacheRequest& request,
                                   std::string& why) {
  const auto refuse = [&](const char* reason) {
    why = reason;
    return std::nullopt;
  };
  Reader header{bytes};
  const bool is_ours = header.take(kMagic.size()) == kMagic && header.integer() == kFormatVersion;
  const bool is_whole = header.integer() == bytes.size();
  const std::string_view digest = header.take(kSha256Bytes);
  const bool is_intact = header.ok && is_ours && is_whole && digest == sha256(header.rest);
  if (!is_intact) return refuse("damaged");
  Reader body{header.rest};
  if (body.record() != encode_request(request)) return refuse("made for another kernel");
  Binary binary;
  for (int* value :
       {&binary.registers, &binary.spill_bytes, &binary.stack_bytes, &binary.shared_bytes}) {
    *value = static_cast<int>(static_cast<int64_t>(body.integer()));
  }
  binary.compile_ms = std::bit_cast<double>(body.integer());
  binary.log = body.record();
  binary.bytes = body.record();
  binary.from_cache = true;
  if (!body.ok || !body.rest.empty()) return refuse("damaged");
  return binary;
}

}  // namespace stitch
