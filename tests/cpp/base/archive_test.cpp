#include "base/archive.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace stitch {
namespace {

enum class Kind : uint8_t { kFirst, kSecond };

struct Inner {
  std::string text;
  std::vector<bool> flags = {};
};
// A number with a function of its own.
class Hidden {
 public:
  explicit Hidden(int number = 0) : number_(number) {}
  int number() const { return number_; }

 private:
  int number_;
};
auto serialize(auto& archive, Hidden& hidden) {
  int number = hidden.number();
  const auto result = archive(number);
  hidden = Hidden(number);
  return result;
}

struct Outer {
  Kind kind = Kind::kFirst;
  int small = 0;
  int64_t large = 0;
  double number = 0;
  std::vector<Inner> inner = {};
  std::array<std::string, 2> pair = {};
  std::variant<Inner, Hidden> either = {};
  Hidden hidden = Hidden();
};
static_assert(zpp::bits::number_of_members<Outer>() == 8);
static_assert(zpp::bits::number_of_members<Inner>() == 2);

Outer example() {
  return {Kind::kSecond,
          -7,
          std::numeric_limits<int64_t>::min(),
          -0.0,
          {{"", {true, false, true}}, {std::string("a\0b", 3)}},
          {"one", "two"},
          Hidden(5),
          Hidden(6)};
}

TEST(Archive, WhatIsWrittenIsRead) {
  Outer read;
  ASSERT_TRUE(from_bytes(to_bytes(example()), read));
  EXPECT_EQ(read.kind, Kind::kSecond);
  EXPECT_EQ(read.small, -7);
  EXPECT_EQ(read.large, std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(std::signbit(read.number));
  ASSERT_EQ(read.inner.size(), 2u);
  EXPECT_EQ(read.inner[0].flags, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(read.inner[1].text, std::string("a\0b", 3));
  EXPECT_EQ(read.pair[1], "two");
  EXPECT_EQ(std::get<Hidden>(read.either).number(), 5);
  EXPECT_EQ(read.hidden.number(), 6);
}

TEST(Archive, ReadingReplacesWhatWasThere) {
  Outer read = example();
  ASSERT_TRUE(from_bytes(to_bytes(Outer()), read));
  EXPECT_EQ(to_bytes(read), to_bytes(Outer()));
}

TEST(Archive, EqualValuesAreEqualBytesAndOthersAreNot) {
  Outer other = example();
  EXPECT_EQ(to_bytes(other), to_bytes(example()));
  other.inner[0].flags[1] = true;
  EXPECT_NE(to_bytes(other), to_bytes(example()));
  EXPECT_NE(to_bytes(std::string("ab"), std::string("c")),
            to_bytes(std::string("a"), std::string("bc")));
}

TEST(Archive, BytesThatEndEarlyOrGoOnAreNotWhole) {
  const std::string bytes = to_bytes(example());
  for (size_t size = 0; size < bytes.size(); ++size) {
    Outer read;
    EXPECT_FALSE(from_bytes(bytes.substr(0, size), read)) << size;
  }
  Outer read;
  EXPECT_FALSE(from_bytes(bytes + "x", read));
}

TEST(Archive, OtherBytesThrowNothing) {
  std::string bytes = to_bytes(example());
  for (char& byte : bytes) {
    const char written = std::exchange(byte, '\xff');
    Outer read;
    EXPECT_NO_THROW(from_bytes(bytes, read)) << &byte - bytes.data();
    byte = written;
  }
}

TEST(Archive, ALengthThatNothingCouldHaveTakesNoMemory) {
  std::vector<std::string> texts = {"there"};
  EXPECT_FALSE(from_bytes(to_bytes(uint64_t{1} << 60), texts));
  EXPECT_TRUE(texts.empty());
}

}  // namespace
}  // namespace stitch
