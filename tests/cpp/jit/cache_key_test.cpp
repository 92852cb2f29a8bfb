#include <gtest/gtest.h>

#include <set>

#include "jit/kernel_cache.h"

namespace stitch {
namespace {

CacheRequest small_request() { return {"cuda", "sm_90a", "nvrtc 13", "-a", "p", "x = 1;"}; }

Binary small_binary() {
  Binary binary;
  binary.bytes = std::string("\0cubin", 6);
  binary.log = "fine";
  binary.registers = 32;
  binary.spill_bytes = 4;
  binary.stack_bytes = 16;
  binary.shared_bytes = 400;
  binary.compile_ms = 42.5;
  return binary;
}

std::optional<Binary> decode(const std::string& bytes) {
  return decode_entry(bytes, small_request());
}

TEST(CacheEntry, RoundTripKeepsEverything) {
  const std::optional<Binary> read = decode(encode_entry(small_request(), small_binary()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->bytes, small_binary().bytes);
  EXPECT_EQ(read->log, "fine");
  EXPECT_EQ(read->registers, 32);
  EXPECT_EQ(read->spill_bytes, 4);
  EXPECT_EQ(read->stack_bytes, 16);
  EXPECT_EQ(read->shared_bytes, 400);
  EXPECT_EQ(read->compile_ms, 42.5);
  EXPECT_TRUE(read->from_cache);
}

TEST(CacheEntry, EveryChangedByteIsFound) {
  const std::string entry = encode_entry(small_request(), small_binary());
  for (size_t at = 0; at < entry.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = entry;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      ASSERT_FALSE(decode(damaged)) << "byte " << at << " bit " << bit;
    }
  }
}

TEST(CacheEntry, EveryTruncationAndExtensionIsFound) {
  const std::string entry = encode_entry(small_request(), small_binary());
  for (size_t size = 0; size < entry.size(); ++size) {
    ASSERT_FALSE(decode(entry.substr(0, size))) << size;
  }
  EXPECT_FALSE(decode(entry + '\0'));
  EXPECT_FALSE(decode(entry + entry));
}

TEST(CacheEntry, AnEntryForAnotherRequestDoesNotAnswer) {
  CacheRequest other = small_request();
  other.source += " ";
  EXPECT_FALSE(decode(encode_entry(other, small_binary())));
}

TEST(CacheKey, EveryFieldChangesTheKey) {
  std::set<std::string> keys = {cache_key(small_request())};
  for (std::string CacheRequest::* field :
       {&CacheRequest::kind, &CacheRequest::arch, &CacheRequest::compiler, &CacheRequest::options,
        &CacheRequest::prelude, &CacheRequest::source}) {
    CacheRequest changed = small_request();
    (changed.*field) += "!";
    keys.insert(cache_key(changed));
  }
  EXPECT_EQ(keys.size(), 7u);
  EXPECT_EQ(cache_key(small_request()), *keys.find(cache_key(small_request())));
  EXPECT_EQ(cache_key(small_request()).size(), 64u);
}

TEST(CacheKey, MovingTextBetweenFieldsChangesTheKey) {
  CacheRequest moved = small_request();
  moved.kind = "cudasm_90a";
  moved.arch = "";
  EXPECT_NE(cache_key(moved), cache_key(small_request()));
}

}  // namespace
}  // namespace stitch
