#include "base/error.h"

#include <gtest/gtest.h>

#include <thread>
#include <unordered_set>

#include "base/ids.h"

namespace stitch {
namespace {

template <class Thrown>
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Thrown& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Error, AFailedCheckNamesTheConditionAndTheMessage) {
  const int found = 3;
  const std::string message =
      message_of<InternalError>([&] { STITCH_CHECK(found == 4, "found " << found << " stages"); });
  EXPECT_EQ(message.find("found 3 stages [error_test.cpp:"), 0u) << message;
  EXPECT_NE(message.find("found == 4"), std::string::npos) << message;
}

TEST(Error, AnHeldCheckDoesNotBuildItsMessage) {
  int built = 0;
  STITCH_CHECK(true, "never " << ++built);
  EXPECT_EQ(built, 0);
}

TEST(Error, ContextsAreAppendedInnermostFirst) {
  const ErrorContext outer("while compiling graph 7");
  std::string message;
  {
    const ErrorContext inner("while planning kernel 3");
    message = message_of<UserError>([] { throw UserError("bad"); });
  }
  EXPECT_EQ(message, "bad\n  while planning kernel 3\n  while compiling graph 7");
  EXPECT_EQ(message_of<UserError>([] { throw UserError("bad"); }),
            "bad\n  while compiling graph 7");
}

TEST(Error, ContextsOfOtherThreadsDoNotShow) {
  const ErrorContext here("while here");
  std::string message;
  std::thread([&] { message = message_of<Error>([] { throw UnsupportedError("no"); }); }).join();
  EXPECT_EQ(message, "no");
}

struct AppleTag;
using AppleId = Id<AppleTag>;

TEST(Id, IsInvalidUntilGivenAValueAndThenAnIndex) {
  const AppleId none, third(3);
  EXPECT_FALSE(none.valid());
  EXPECT_EQ(none.value(), -1);
  EXPECT_THROW(none.index(), InternalError);
  EXPECT_EQ(third.index(), 3);
}

TEST(Id, ComparesHashesAndOrders) {
  EXPECT_EQ(AppleId(2), AppleId(2));
  EXPECT_LT(AppleId(2), AppleId(3));
  const std::unordered_set<AppleId> ids = {AppleId(1), AppleId(1), AppleId(2)};
  EXPECT_EQ(ids.size(), 2u);
}

TEST(Verdict, ARefusalCarriesRuleReasonAndRemedy) {
  const Verdict refusal = Verdict::no(12, "too large", "split it");
  EXPECT_FALSE(refusal);
  EXPECT_EQ(refusal.rule, 12);
  EXPECT_EQ(refusal.why, "too large");
  EXPECT_EQ(refusal.remedy, "split it");
  EXPECT_TRUE(Verdict::yes());
}

TEST(Verdict, WhatARefusalDoesNotSayIsInItsRow) {
  const Verdict plain = Verdict::no(kRuleWritten), own = Verdict::no(kRuleOtherIndices, "rows");
  EXPECT_FALSE(plain.why.empty());
  EXPECT_FALSE(plain.remedy.empty());
  EXPECT_EQ(own.why, "rows");
  EXPECT_EQ(own.remedy, "the value goes through memory");
}

}  // namespace
}  // namespace stitch
