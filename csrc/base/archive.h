// Values as bytes and back: zpp::bits, with lengths that are checked before memory is taken.
//
// Aggregates are their members in their order.  Other types have a `serialize(archive, value)`, one
// function for both ways: neither forgets what the other knows.
#pragma once

// Inlining that is forced is no faster, and what is kept takes half again as long to compile.
#define ZPP_BITS_INLINE_MODE 0
#include <zpp_bits.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stitch {

// What goes before all that has a length: none is larger than the bytes behind it.
struct Length : zpp::bits::option<Length> {
  using default_size_type = Length;
  Length(uint64_t count = 0) : count(count) {}  // NOLINT
  operator uint64_t() const { return count; }   // NOLINT
  uint64_t count;
};
template <class AnyArchive>
zpp::bits::errc serialize(AnyArchive& archive, Length& length) {
  const std::errc result = archive(length.count);
  const bool fits =
      AnyArchive::kind() == zpp::bits::kind::out || length <= archive.remaining_data().size();
  return fits ? result : std::errc::result_out_of_range;
}

template <class... T>
std::string to_bytes(T... values) {
  std::string bytes;
  zpp::bits::out(bytes, Length())(values...).or_throw();
  return bytes;
}
// Whether `bytes` are these values and nothing else; if not, the values are left empty.
template <class... T>
bool from_bytes(std::string_view bytes, T&... values) {
  zpp::bits::in archive(bytes, Length());
  const bool is_whole = success(archive(values...)) && archive.position() == bytes.size();
  if (!is_whole) ((values = T()), ...);
  return is_whole;
}

}  // namespace stitch

// A bit has no address to be read into.  Where the library looks for what a type has of its own,
// and where its archives do.
namespace zpp::bits::traits {
template <class AnyArchive>
errc serialize(AnyArchive& archive, std::vector<bool>& bits) {
  std::vector<char> bytes(bits.begin(), bits.end());
  const errc result = archive(bytes);
  bits.assign(bytes.begin(), bytes.end());
  return result;
}
}  // namespace zpp::bits::traits
namespace zpp::bits {
using traits::serialize;
}
