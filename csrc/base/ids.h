// Typed indices: `struct NodeTag; using NodeId = Id<NodeTag>;`.  An id is the position of a thing
// in the one vector that owns it; ids of different things do not mix.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>

#include "base/error.h"

namespace stitch {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;  // invalid
  constexpr explicit Id(int64_t value) : value_(static_cast<int32_t>(value)) {}

  constexpr bool valid() const { return value_ >= 0; }
  constexpr int32_t value() const { return value_; }  // -1 when invalid
  // Position in the owning vector; InternalError when invalid.
  int32_t index() const {
    STITCH_CHECK(valid(), "an invalid id was used as an index");
    return value_;
  }

  constexpr auto operator<=>(const Id&) const = default;
  friend std::ostream& operator<<(std::ostream& out, Id id) { return out << id.value_; }
  static auto serialize(auto& archive, Id& id) { return archive(id.value_); }  // base/archive.h

 private:
  int32_t value_ = -1;
};

}  // namespace stitch

template <class Tag>
struct std::hash<stitch::Id<Tag>> {
  size_t operator()(stitch::Id<Tag> id) const { return std::hash<int32_t>()(id.value()); }
};
