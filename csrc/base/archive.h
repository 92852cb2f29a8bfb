// Values as bytes and back, by one function for both ways: neither forgets what the other knows.
//
// Integers, enums and doubles take 8 bytes, little endian; what has a length follows it; an
// aggregate is its members in their order.  Other types have a pass_parts(Archive&, T&) of their
// own, declared before the first archive of one.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

namespace stitch {

// What any member can be made from: an aggregate has as many as an initialiser may hold of these.
struct AnyMember {
  template <class T>
  operator T() const;  // NOLINT
};
template <class T, class... Members>
constexpr size_t count_members() {
  if constexpr (requires { T{Members{}..., AnyMember{}}; })
    return count_members<T, Members..., AnyMember>();
  return sizeof...(Members);
}

// References to all members of an aggregate.
template <class T>
auto members_of(T& value) {
#define STITCH_MEMBERS(count, ...)             \
  if constexpr (count_members<T>() == count) { \
    auto& [__VA_ARGS__] = value;               \
    return std::tie(__VA_ARGS__);              \
  }
  // clang-format off
  STITCH_MEMBERS(1, a)
  STITCH_MEMBERS(2, a, b)
  STITCH_MEMBERS(3, a, b, c)
  STITCH_MEMBERS(4, a, b, c, d)
  STITCH_MEMBERS(5, a, b, c, d, e)
  STITCH_MEMBERS(6, a, b, c, d, e, f)
  STITCH_MEMBERS(7, a, b, c, d, e, f, g)
  STITCH_MEMBERS(8, a, b, c, d, e, f, g, h)
  STITCH_MEMBERS(9, a, b, c, d, e, f, g, h, i)
  STITCH_MEMBERS(10, a, b, c, d, e, f, g, h, i, j)
  STITCH_MEMBERS(11, a, b, c, d, e, f, g, h, i, j, k)
  STITCH_MEMBERS(12, a, b, c, d, e, f, g, h, i, j, k, l)
  STITCH_MEMBERS(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  STITCH_MEMBERS(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
  STITCH_MEMBERS(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
  // clang-format on
#undef STITCH_MEMBERS
}

class Archive {
 public:
  Archive() = default;  // writes
  static Archive reader(std::string_view bytes) { return Archive(bytes); }

  // Reading, what does not fit leaves values empty.
  template <class T>
  void pass(T& value) {
    if constexpr (std::same_as<T, double>) {
      auto bits = std::bit_cast<uint64_t>(value);
      pass_integer(bits);
      value = std::bit_cast<double>(bits);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      auto bits = static_cast<uint64_t>(value);
      pass_integer(bits);
      value = static_cast<T>(bits);
    } else if constexpr (requires { pass_parts(*this, value); }) {
      pass_parts(*this, value);
    } else {
      std::apply([&](auto&... member) { (pass(member), ...); }, members_of(value));
    }
  }
  void pass(std::string& text) {
    if (const size_t count = pass_count(text.size(), 1); reads_)
      text = take(count);
    else
      written_ += text;
  }
  template <class T>
  void pass(std::vector<T>& values) {
    values.resize(pass_count(values.size(), sizeof(uint64_t)));
    for (size_t i = 0; i < values.size(); ++i) {
      T value = std::move(values[i]);  // of bools there is no reference
      pass(value);
      values[i] = std::move(value);
    }
  }
  template <class T, size_t kCount>
  void pass(std::array<T, kCount>& values) {
    for (T& value : values) pass(value);
  }
  template <class... T>
  void pass(std::variant<T...>& value) {
    size_t index = value.index(), other = 0;
    pass(index);
    if (reads_) ((other++ == index ? void(value.template emplace<T>()) : void()), ...);
    std::visit([&](auto& chosen) { pass(chosen); }, value);
  }

  bool reads() const { return reads_; }
  bool is_whole() const { return fits_ && rest_.empty(); }  // read to the end, and not past it
  std::string bytes() && { return std::move(written_); }

 private:
  explicit Archive(std::string_view bytes) : reads_(true), rest_(bytes) {}

  void pass_integer(uint64_t& value) {
    std::array<char, 8> bytes;
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
    if (!reads_) {
      written_.append(bytes.data(), bytes.size());
      return;
    }
    value = 0;
    int shift = 0;
    for (const char byte : take(8)) value |= uint64_t{static_cast<uint8_t>(byte)} << (8 * shift++);
  }
  // Of elements that take so many bytes at least: none where the rest cannot hold them.
  size_t pass_count(size_t count, size_t least_bytes) {
    pass(count);
    if (!reads_ || count <= rest_.size() / least_bytes) return count;
    fits_ = false;
    return 0;
  }
  std::string_view take(size_t count) {
    fits_ = fits_ && count <= rest_.size();
    const std::string_view taken = rest_.substr(0, fits_ ? count : 0);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  bool reads_ = false, fits_ = true;
  std::string written_;
  std::string_view rest_;
};

template <class... T>
std::string to_bytes(T... values) {
  Archive archive;
  (archive.pass(values), ...);
  return std::move(archive).bytes();
}
// Whether `bytes` are these values and nothing else.
template <class... T>
bool from_bytes(std::string_view bytes, T&... values) {
  Archive archive = Archive::reader(bytes);
  (archive.pass(values), ...);
  return archive.is_whole();
}

}  // namespace stitch
