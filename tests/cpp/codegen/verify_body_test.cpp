// Bodies with one fault each: names, constants, arrays, and barriers that some threads miss.
#include "codegen/kernel_body.h"

#include "support/faults.h"

namespace stitch {
namespace {

using Kind = Statement::Kind;
using Statements = std::vector<Statement>;

Statement let(const std::string& name, const std::string& expr) {
  return Statement::let("f32", name, expr);
}
Statement store(const std::string& place, const std::string& expr) {
  return Statement::assign(place, expr);
}
Statement loop(const std::string& name, const std::string& bound, Statements body) {
  return {Kind::kLoop, "i64", name, "0", "", bound, "", 0, std::move(body)};
}
const Statement kReduce = {Kind::kReduce, "f32", "s_9", "all_reduce<Sum, 31u, 32>(p0[0], 0)"};

void verify_statements(const Statements& statements) {
  verify_body({statements}, {"p0", "p1", "n0", "n1"});
}
void expect_sound(const Statements& statements) {
  EXPECT_NO_THROW(verify_statements(statements)) << to_string(KernelBody{statements});
}

// What is appended to a sound body breaks the rule.
struct BodyFault {
  const char* name;
  Statements appended;
  const char* rule;
};

void expect_body_faults(const std::vector<BodyFault>& faults) {
  std::vector<Fault<Statements>> found;
  for (const auto& [name, appended, rule] : faults)
    found.push_back(
        {name, [=](Statements& body) { body.insert(body.end(), appended.begin(), appended.end()); },
         rule});
  const auto make_sound = [] {
    return Statements{let("s_0", "p0[0]"),
                      Statement::let("i64", "t0", "tid() & 31"),
                      Statement::array("f32", "s_1", 8),
                      Statement::let("Vec<f32, 4>", "s_2", "load_vec<4>(p0)"),
                      loop("i0", "n0",
                           {let("x0", "i0 * 4"), let("s_3", "add(s_0, p0[x0])"),
                            store("p1[x0]", "s_3"), Statement::assign("s_1[7]", "s_3")}),
                      loop("i0", "t0", {store("p1[t0]", "s_0")}),
                      kReduce};
  };
  expect_refused(found, make_sound, verify_statements);
}

TEST(VerifyBody, Names) {
  Statement guarded = store("p1[0]", "1");
  guarded.predicate = "ok3 & (t0 == 0)";
  const char *use = "defined-before-use", *once = "defined-once";
  expect_body_faults({
      {"a value that nobody defines", {let("s_4", "s_5")}, use},
      {"an index that nobody defines", {store("p1[x3]", "s_0")}, use},
      {"an argument that the kernel has not", {let("s_4", "p2[0]")}, use},
      {"a bound that nobody defines", {loop("i1", "n2", {})}, use},
      {"a predicate of an unknown name", {guarded}, use},
      {"a value before its definition", {let("s_4", "s_5"), let("s_5", "s_0")}, use},
      {"a value of a loop that is closed", {let("s_4", "s_3")}, use},
      {"an index of a loop that is closed", {let("s_4", "p0[i0]")}, use},
      {"a second definition", {let("s_0", "p0[1]")}, once},
      {"a second definition inside of a loop", {loop("i1", "4", {let("s_0", "p0[i1]")})}, once},
      {"an array over a value", {Statement::array("f32", "s_0", 4)}, once},
  });
}

TEST(VerifyBody, WhatIsAssigned) {
  expect_body_faults({
      {"a constant", {Statement::assign("s_0", "1.0f")}, "constant-stays"},
      {"an element of a constant vector", {Statement::assign("s_2.v[0]", "1")}, "constant-stays"},
      {"the result of a reduction", {Statement::assign("s_9", "s_0")}, "constant-stays"},
      {"the index of a loop", {loop("i1", "4", {Statement::assign("i1", "2")})}, "constant-stays"},
      {"an element past an array", {Statement::assign("s_1[8]", "s_0")}, "index-in-array"},
      {"an element that is read past an array", {let("s_4", "s_1[9]")}, "index-in-array"},
      {"an element before an array", {let("s_4", "s_1[-1]")}, "index-in-array"},
      {"an array of fewer than none", {Statement::array("f32", "s_4", -1)}, "count-of-array"},
      {"a vector of three", {Statement::let("Vec<f32, 3>", "s_4", "s_2")}, "vector-width"},
      {"a vector of none", {Statement::var("Vec<f32, 0>", "s_4")}, "vector-width"},
  });
}

TEST(VerifyBody, Barriers) {
  Statement guarded = kReduce, tile = Statement::call("fill_tile<4, 4>(p1)", "(t0 == 0)");
  guarded.name = "s_4";
  const Statement plain = guarded;
  guarded.predicate = "(p0[0] == 0)";
  const char* even = "barrier-in-even-loop";
  expect_body_faults({
      {"a reduction under a predicate", {guarded}, "barrier-for-all"},
      {"a tile that some threads fill", {tile}, "barrier-for-all"},
      {"a loop up to a thread's number", {loop("i1", "t0", {plain})}, even},
      {"a loop up to what is made of it",
       {Statement::let("i64", "s_5", "t0 * 2"), loop("i1", "s_5", {plain})},
       even},
      {"a loop as long as memory says", {loop("i1", "p0[t0]", {plain})}, even},
      {"a barrier in the loop inside", {loop("i1", "t0", {loop("i2", "4", {plain})})}, even},
  });
  expect_sound({loop("i1", "n0", {plain})});
}

TEST(VerifyBody, WhatDependsOnAnIndexIsDefinedAgainWhereALoopWalksItAgain) {
  const Statements again = {let("s_0", "p0[i0]")};
  expect_sound({loop("i0", "4", {let("s_0", "p0[i0]"), loop("i0", "2", again)})});
}

TEST(VerifyBody, NumbersAndTypesAreNoNames) {
  expect_sound({let("s_0", "i64(12LL) + 0x1p+11f + i32(3) + -1.5e2f")});
}

}  // namespace
}  // namespace stitch
