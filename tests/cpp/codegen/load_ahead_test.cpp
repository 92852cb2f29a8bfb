#include "codegen/load_ahead.h"

#include <gtest/gtest.h>

namespace stitch {
namespace {

using Kind = Statement::Kind;

Statement row_load(const std::string& name, const std::string& address) {
  Statement s = Statement::let("Vec<f32, 4>", name, "load_vec<4>(p0 + (" + address + "))");
  s.may_go_ahead = true;
  return s;
}

Statement met(const std::string& name, const std::string& value) {
  return {Kind::kReduce, "f32", name, "all_reduce<Sum, 511u, 512>(" + value + ", shared)"};
}

Statement unrolled(const std::string& name, const std::string& bound, std::vector<Statement> body) {
  Statement s{Kind::kLoop, "i32", name, "0"};
  s.bound = bound;
  s.pragma = "STITCH_UNROLL";
  s.body = std::move(body);
  return s;
}

std::string ahead_of(const Statement& statement, int registers = 16) {
  const StageSchedule schedule;
  Scopes scopes(schedule);
  for (int taken = 0; taken < 20; ++taken) scopes.fresh();
  return to_string({load_ahead(statement, registers, scopes)}, 0);
}

TEST(LoadAhead, TheNextTripIsLoadedBeforeTheThreadsOfThisOneMeet) {
  EXPECT_EQ(ahead_of(unrolled("i0", "16",
                              {Statement::let("i32", "x0", "i0"),
                               unrolled("i1", "2",
                                        {Statement::let("i32", "b1", "t1 + i1 * 512"),
                                         row_load("s_1", "x0 * 4096 + b1"),
                                         Statement::assign("s_2", "s_2 + s_1.v[0] + s_1.v[1]")}),
                               met("s_3", "s_2"), Statement::assign("p1[x0]", "s_3", "")})),
            R"(Vec<f32, 4> s_20[2];
STITCH_UNROLL
for (i32 i0 = 0; i0 < 1; ++i0) {
  const i32 x0 = i0;
  STITCH_UNROLL
  for (i32 i1 = 0; i1 < 2; ++i1) {
    const i32 b1 = t1 + i1 * 512;
    s_20[i1] = load_ahead<4>(p0 + (x0 * 4096 + b1));
  }
}
STITCH_UNROLL
for (i32 i0 = 0; i0 < 16; ++i0) {
  const i32 x0 = i0;
  STITCH_UNROLL
  for (i32 i1 = 0; i1 < 2; ++i1) {
    const i32 b1 = t1 + i1 * 512;
    const Vec<f32, 4> s_1 = s_20[i1];
    s_2 = s_2 + s_1.v[0] + s_1.v[1];
  }
  const i32 s_21 = i0 + 1;
  STITCH_UNROLL
  for (i32 i0 = s_21; i0 < (s_21 < 16 ? s_21 + 1 : s_21); ++i0) {
    const i32 x0 = i0;
    STITCH_UNROLL
    for (i32 i1 = 0; i1 < 2; ++i1) {
      const i32 b1 = t1 + i1 * 512;
      s_20[i1] = load_ahead<4>(p0 + (x0 * 4096 + b1));
    }
  }
  const f32 s_3 = all_reduce<Sum, 511u, 512>(s_2, shared);
  p1[x0] = s_3;
}
)");
}

void expect_unchanged(const Statement& statement, int registers = 16) {
  EXPECT_EQ(ahead_of(statement, registers), to_string({{statement}}, 0));
}

TEST(LoadAhead, WhatATripComputesIsNotKnownAheadOfIt) {
  expect_unchanged(
      unrolled("i0", "16",
               {Statement::let("i32", "s_1", "p2[i0]"), Statement::var("i32", "s_4", "s_1"),
                row_load("s_2", "s_4"), met("s_3", "s_2.v[0]")}));
  // An accumulator that a later statement of the trip changes.
  expect_unchanged(unrolled(
      "i0", "16",
      {row_load("s_2", "s_9"), met("s_3", "s_2.v[0]"), Statement::assign("s_9", "s_9 + 4")}));
}

TEST(LoadAhead, LoadsBehindTheBarrierAndLoopsWithoutOneStay) {
  expect_unchanged(unrolled("i0", "16", {met("s_3", "s_2"), row_load("s_1", "i0 * 4")}));
  expect_unchanged(
      unrolled("i0", "16", {row_load("s_1", "i0 * 4"), Statement::assign("s_2", "s_1.v[0]")}));
  expect_unchanged(unrolled("i0", "n0", {row_load("s_1", "i0 * 4"), met("s_3", "s_1.v[0]")}));
  expect_unchanged(unrolled("i0", "1", {row_load("s_1", "i0 * 4"), met("s_3", "s_1.v[0]")}));
}

TEST(LoadAhead, OnlyWhatTheRegistersHold) {
  const Statement two = unrolled(
      "i0", "16",
      {row_load("s_1", "i0"), row_load("s_2", "i0 + n0"), met("s_3", "s_1.v[0] + s_2.v[0]")});
  expect_unchanged(two, 7);
  EXPECT_NE(ahead_of(two, 8), to_string({{two}}, 0));
}

}  // namespace
}  // namespace stitch
