#include "rewrite/rewrite_graph.h"

#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

const std::string kInPlaceHead =
    "%x = input : f32[8,6]\n%s = input : f32[2,6]\n%r = input : f32[1,6]\n%i = input : i64[1,1]\n";

void expect_written(const std::string& before, const std::string& after,
                    const std::string& end = "outputs (none)\n") {
  SCOPED_TRACE(before);
  expect_rewrite(write_in_place, kInPlaceHead + before + "\nmutate %x <- %y\n" + end,
                 kInPlaceHead + after + "\nmutate %x <- %y\n" + end);
}

void expect_kept(const std::string& lines, const std::string& end = "outputs (none)\n") {
  SCOPED_TRACE(lines);
  expect_unchanged(write_in_place, kInPlaceHead + lines + "\nmutate %x <- %y\n" + end);
}

TEST(WriteInPlace, ASliceIsWrittenWhereTheRestIs) {
  expect_written("%y = slice_scatter(%x, neg(%s)){dim=0, start=3, step=2}",
                 "%y = write_slice(%x, neg(%s)){dims=[3,2,0,1]}");
  expect_written("%y = slice_scatter(%x, %r, %i){dim=0}",
                 "%y = write_slice(%x, %r, %i){ints=[0], dims=[0,1,0,1]}");
}

TEST(WriteInPlace, TheInputMayBeReturnedAsItIsInTheEnd) {
  expect_written("%y = slice_scatter(%x, %s){dim=0}", "%y = write_slice(%x, %s){dims=[0,1,0,1]}",
                 "outputs (final %x)\n");
}

TEST(WriteInPlace, SlicesOfSlicesAreOneWrite) {
  const std::string parts =
      "%part = slice(%x){dim=0, start=1, count=4}\n%c = slice(%s){dim=0, count=2}\n"
      "%inner = slice_scatter(%part, %c){dim=0, start=1, step=2}\n";
  expect_written(parts + "%y = slice_scatter(%x, %inner){dim=0, start=1}",
                 "%c = slice(%s){dim=0, count=2}\n%part = slice(%x){dim=0, start=1, count=4}\n"
                 "%y = write_slice(%x, %c){dims=[2,2,0,1]}");
}

TEST(WriteInPlace, TheElementsThatAreReplacedMayBeRead) {
  expect_written(
      "%y = slice_scatter(%x, add(%s, slice(%x){dim=0, start=3, count=2})){dim=0, start=3}",
      "%y = write_slice(%x, add(%s, slice(%x){dim=0, start=3, count=2})){dims=[3,1,0,1]}");
  expect_written(
      "%at = reshape(%i){shape=[1]}\n"
      "%y = slice_scatter(%x, add(index(%x, %at){axes=[0]}, %r), %i){dim=0}",
      "%at = reshape(%i){shape=[1]}\n"
      "%y = write_slice(%x, add(index(%x, %at){axes=[0]}, %r), %i){ints=[0], dims=[0,1,0,1]}");
}

TEST(WriteInPlace, PartsThatDoNotMeetAreWrittenOneByOne) {
  expect_written(
      "%v = slice_scatter(%x, %s){dim=0}\n%y = slice_scatter(%v, neg(%s)){dim=0, start=3, step=2}",
      "%v = write_slice(%x, %s){dims=[0,1,0,1]}\n"
      "%w = write_slice(%x, neg(%s)){dims=[3,2,0,1]}\n%y = library(%v, "
      "%w){name=\"torch_stitch.join\", integer=-1} : f32[8,6]");
}

TEST(WriteInPlace, APartMayReadWhatItReplacesAfterOthersWereWritten) {
  expect_written(
      "%v = slice_scatter(%x, %s){dim=0}\n"
      "%y = slice_scatter(%v, add(%s, slice(%v){dim=0, start=4, count=2})){dim=0, start=4}",
      "%v = write_slice(%x, %s){dims=[0,1,0,1]}\n"
      "%w = write_slice(%x, add(%s, slice(%x){dim=0, start=4, count=2})){dims=[4,1,0,1]}\n"
      "%y = library(%v, %w){name=\"torch_stitch.join\", integer=-1} : f32[8,6]");
}

TEST(WriteInPlace, PartsThatMayMeetAreNot) {
  expect_kept("%v = slice_scatter(%x, %s){dim=0}\n%y = slice_scatter(%v, neg(%s)){dim=0, start=1}");
  expect_kept("%v = slice_scatter(%x, %s){dim=0}\n%y = slice_scatter(%v, %r, %i){dim=0}");
  expect_kept(
      "%v = slice_scatter(%x, %s){dim=0}\n"
      "%y = slice_scatter(%v, slice(%v){dim=0, count=2}){dim=0, start=3}");
}

TEST(WriteInPlace, NotWhereOthersAreRead) {
  expect_kept(
      "%y = slice_scatter(%x, add(%s, slice(%x){dim=0, start=2, count=2})){dim=0, start=3}");
  expect_kept(
      "%y = slice_scatter(%x, flip(slice(%x){dim=0, start=3, count=2}){axes=[0]})"
      "{dim=0, start=3}");
  expect_kept("%t = exp(%x)\n%y = slice_scatter(%x, %s){dim=0}", "outputs (%t)\n");
  expect_kept("%old = neg(slice(%x){dim=0, count=2})\n%y = slice_scatter(%x, add(%old, %s)){dim=0}",
              "outputs (%old)\n");
  expect_kept(
      "%new = add(slice(%x){dim=0, count=2}, %s)\n%t = exp(%new)\n"
      "%y = slice_scatter(%x, %new){dim=0}",
      "outputs (%t)\n");
}

TEST(WriteInPlace, NotWhereTheValueIsReturned) {
  expect_kept("%y = slice_scatter(%x, %s){dim=0}", "outputs (%y)\n");
  expect_kept("%y = slice_scatter(%x, %s){dim=0}\n%v = reshape(%y){shape=[48]}", "outputs (%v)\n");
  expect_kept("%y = slice_scatter(%x, %s){dim=0}", "outputs (%x)\n");
}

TEST(WriteInPlace, NotWhereTheSliceThatIsPutBackIsOfAnother) {
  expect_kept(
      "%z = input : f32[8,6]\n%part = slice(%z){dim=0, start=1, count=4}\n"
      "%inner = slice_scatter(%part, %s){dim=0}\n%y = slice_scatter(%x, %inner){dim=0, start=1}");
  expect_kept(
      "%part = slice(%x){dim=0, start=1, count=4}\n%other = slice(%part){dim=0, count=2}\n"
      "%inner = slice_scatter(%other, %r){dim=0}\n%y = slice_scatter(%x, %inner){dim=0}");
}

TEST(WriteInPlace, NotIntoWhatIsNoInput) {
  expect_kept("%e = exp(%x)\n%y = slice_scatter(%e, %s){dim=0}");
}

const std::string kParts = "%a = input : f32[4,6]\n%b = input : f32[4,2]\n";

TEST(WriteJoinedParts, EachPartIsWrittenWhereItBelongs) {
  const Graph graph =
      write_joined_parts(read_graph(kParts + "%s = reshape(sum(%a){axes=[1]}){shape=[4,1]}\n"
                                             "%y = cat(%b, %s, %b){dim=1}\noutputs (%y)"));
  const Node& join = graph[graph.outputs[0].node];
  ASSERT_TRUE(is_join(join)) << to_string(graph);
  ASSERT_EQ(join.inputs.size(), 3u);
  const std::vector<int64_t> starts = {0, 2, 3};
  for (size_t p = 0; p < starts.size(); ++p) {
    const Node& write = graph[join.inputs[p]];
    EXPECT_EQ(write.op, OpKind::k_write_slice);
    EXPECT_EQ(write.inputs[0], graph[join.inputs[0]].inputs[0]) << "one memory";
    EXPECT_EQ(write.dims, (std::vector<Dim>{0, 1, starts[p], 1}));
  }
}

TEST(WriteJoinedParts, PartsWithoutElementsAreLeftOut) {
  const Graph graph = write_joined_parts(
      read_graph(kParts + "%s = reshape(sum(%a){axes=[1]}){shape=[4,1]}\n"
                          "%y = cat(%s, slice(%b){dim=1, count=0}){dim=1}\noutputs (%y)"));
  EXPECT_EQ(graph[graph.outputs[0].node].inputs.size(), 1u);
}

TEST(WriteJoinedParts, NotWhereItGainsNothingOrKernelsReadIt) {
  const std::string sum = "%s = reshape(sum(%a){axes=[1]}){shape=[4,1]}\n";
  const std::string cat = kParts + sum + "%y = cat(%b, %s){dim=1}\n";
  expect_unchanged(write_joined_parts,
                   kParts + "%y = cat(%b, neg(%b)){dim=1}\noutputs (%y)");  // one pass
  expect_unchanged(write_joined_parts, cat + "%n = neg(%y)\noutputs (%n)");
  expect_unchanged(write_joined_parts, cat + "%n = neg(%y)\noutputs (%y, %n)");
  expect_unchanged(write_joined_parts,
                   "%x = input : f32[4,3]\n" + cat + "mutate %x <- %y\noutputs (none)");
  expect_unchanged(write_joined_parts,
                   cat +
                       "%z = library(%y){name=\"mine.write_\", ints=[2], integer=0} : f32[4,3]\n"
                       "outputs (%z)");
}

}  // namespace
}  // namespace stitch
