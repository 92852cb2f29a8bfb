#include "rewrite/rewrite_graph.h"

#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

const std::string kWrittenHead =
    "%x = input : f32[8,6]\n%s = input : f32[2,6]\n%r = input : f32[1,6]\n"
    "%i = input : i64[1]\n%e = exp(%x)\n%t = exp(%s)\n";

void expect_read(const std::string& lines, const std::string& before, const std::string& after) {
  SCOPED_TRACE(before);
  const std::string head = kWrittenHead + lines + "%y = neg(";
  expect_rewrite(read_past_writes, head + before + ")\noutputs (%y)\n",
                 head + after + ")\noutputs (%y)\n");
}

TEST(ReadPastWrites, WhatWasWrittenIsReadWhereItWasMade) {
  expect_read("%v = slice_scatter(%e, %t){dim=0, start=2}\n", "slice(%v){dim=0, start=2, count=2}",
              "%t");
}

TEST(ReadPastWrites, WhatStandsBesideIsReadWhereItWas) {
  const std::string lines =
      "%v = slice_scatter(%e, %t){dim=0, start=2}\n%w = slice_scatter(%v, %r){dim=0}\n";
  expect_read(lines, "slice(%w){dim=0, start=4, count=3}", "slice(%e){dim=0, start=4, count=3}");
  expect_read(lines, "slice(%w){dim=0, start=2, count=2}", "%t");
}

TEST(ReadPastWrites, WhatMeetsAWriteOnlyInPartStays) {
  const std::string lines = "%v = slice_scatter(%e, %t){dim=0, start=2}\n";
  for (const char* read :
       {"slice(%v){dim=0, start=3, count=2}", "slice(%v){dim=0, start=2, count=1}",
        "slice(%v){dim=1, start=2, count=2}", "slice(%v){dim=0, start=1, step=2, count=2}"})
    expect_read(lines, read, read);
  const std::string at = "%v = slice_scatter(%e, %r, reshape(%i){shape=[1,1]}){dim=0}\n";
  expect_read(at, "slice(%v){dim=0, count=1}", "slice(%v){dim=0, count=1}");
}

TEST(ReadPastWrites, TheLastOfTwoWritesCounts) {
  expect_read("%v = slice_scatter(%e, %s){dim=0, start=2}\n",
              "slice_scatter(%v, %t){dim=0, start=2}", "slice_scatter(%e, %t){dim=0, start=2}");
}

TEST(ReadPastWrites, WritesIntoASelectedRowAreWritesIntoTheWhole) {
  expect_read("%p = slice(%e){dim=0, start=3, count=1}\n%q = reshape(%p){shape=[6]}\n",
              "reshape(slice_scatter(%q, reshape(slice(%r){dim=1, count=2}){shape=[2]})"
              "{dim=0, start=4}){shape=[1,6]}",
              "slice_scatter(%p, reshape(slice(%r){dim=1, count=2})"
              "{shape=[1,2]}){dim=1, start=4}");
}

}  // namespace
}  // namespace stitch
