#include "base/hash.h"

#include <gtest/gtest.h>

namespace stitch {
namespace {

// FIPS 180-4 example values.
TEST(Sha256, MatchesTheStandardsExamples) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheBytesArePassed) {
  const std::string text(300, 'x');
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 sha;
    sha.update(text.substr(0, cut));
    sha.update(text.substr(cut));
    ASSERT_EQ(to_hex(sha.digest()), sha256_hex(text)) << cut;
  }
}

TEST(Hasher, TellsFieldBoundariesApart) {
  EXPECT_NE(Hasher().field("ab").field("c").hex(), Hasher().field("a").field("bc").hex());
  EXPECT_NE(Hasher().field("").field("a").hex(), Hasher().field("a").field("").hex());
  EXPECT_NE(Hasher().field("a").hex(), Hasher().field("a").field("").hex());
  EXPECT_NE(Hasher().field(int64_t{1}).hex(), Hasher().field(int64_t{256}).hex());
  EXPECT_EQ(Hasher().field("ab").field(int64_t{-1}).hex(),
            Hasher().field("ab").field(int64_t{-1}).hex());
}

}  // namespace
}  // namespace stitch
