// Properties of kernel texts; tests/golden/text shows whole ones.
#include "codegen/emit_kernel.h"

#include <regex>

#include "plan/plan_graph.h"
#include "support/golden_graphs.h"
#include "support/own_node.h"

namespace stitch {
namespace {

std::vector<KernelSource> emit(const Planned& planned, const LoweringOptions& options = {}) {
  std::vector<KernelSource> sources;
  for (size_t k = 0; k < planned.plan.kernels.size(); ++k) {
    sources.push_back(emit_planned(planned, k, options));
  }
  return sources;
}

KernelSource emit_one(const std::string& text, const std::string& target,
                      const LoweringOptions& options = {}) {
  return emit(schedule_together(text, target), options).front();
}

const std::vector<std::string> kTargets = {"cpu", "h200"};

constexpr const char* kSoftmax = R"(
  %x = input : f32[4096,1024]
  %e = exp(sub(%x, amax(%x){axes=[1], keepdim}))
  %y = div(%e, sum(%e){axes=[1], keepdim})
  outputs (%y)
)";

TEST(EmitKernel, EveryDefinedNameIsOneTheLoweringMakes) {
  const std::regex definition(R"((?:const )?(?:[a-z0-9]+|(?:Vec|Indexed\w*)<[^>]*>) (\w+) = )");
  const std::regex made(R"((s_|x|b|r|ok|i|g|t|p|n)\d+|block|scratch)");
  for (const GoldenGraph& graph : golden_graphs()) {
    const std::string text = graph.text;
    if (holds(text, "sum_sq_dev")) continue;  // a rewrite expands it before kernels are planned
    for (const std::string& target : kTargets) {
      for (const KernelSource& source : emit(plan_graph(text, target))) {
        int names = 0;
        for (std::sregex_iterator at(source.text.begin(), source.text.end(), definition), end;
             at != end; ++at, ++names) {
          EXPECT_TRUE(std::regex_match((*at)[1].str(), made)) << (*at)[0] << " in " << source.text;
        }
        EXPECT_GT(names, 3) << source.text;
      }
    }
  }
}

std::string row_sums(const std::string& type, const std::string& term) {
  return emit_one("%x = input : " + type + "\n%y = sum(" + term + "){axes=[1]}\noutputs (%y)\n",
                  "cpu")
      .text;
}

TEST(EmitKernel, LanesOfRowsKeepTheirSumsOverTheWholeRow) {
  EXPECT_TRUE(holds(row_sums("f32[4096,1024]", "%x"), "LaneSums<16>"));
  EXPECT_TRUE(holds(row_sums("f32[4096,32]", "%x"), "LaneSums<8>")) << "one strip of each vector";
  EXPECT_TRUE(holds(row_sums("bool[4096,1024]", "cast(%x) : f32"), "LaneSums<64>"));
  EXPECT_FALSE(holds(row_sums("f32[4096,1000]", "%x"), "LaneSums")) << "no vectors divide 250";
}

TEST(EmitKernel, SumsInF64KeepWhatTheyRoundOffWhereF64IsLoadedForThem) {
  EXPECT_TRUE(holds(row_sums("f64[4096,1024]", "%x"), "add_exactly"));
  EXPECT_FALSE(holds(row_sums("f32[4096,1024]", "cast(%x) : f64"), "add_exactly"));
}

// Rows of a segment are added to an array along the vectorised loop; a GPU's threads each walk.
TEST(EmitKernel, TheHostWalksASegmentOnceForAWholeRow) {
  constexpr const char* kRows = R"(
    %x = input : f32[4096,64]
    %s = input : f32[9000,64]
    %order = input : i32[9000]
    %offsets = input : i32[4097]
    %y = exp(segment_sum(%x, %s, %order, %offsets){dim=0})
    outputs (%y)
  )";
  const std::regex array(R"(STITCH_ARRAY\(f32, s_\d+, 64\);)");
  EXPECT_TRUE(std::regex_search(emit_one(kRows, "cpu").text, array)) << emit_one(kRows, "cpu").text;
  const std::string device = emit_one(kRows, "h200").text;
  EXPECT_FALSE(holds(device, "STITCH_ARRAY")) << device;
  EXPECT_TRUE(holds(device, "Sum::apply(s_")) << device;
  for (const std::string& target : kTargets) {
    EXPECT_TRUE(holds(emit_one(kRows, target).text, "= i64(s_")) << "rows may lie far apart";
  }
}

std::string scatter_of(const std::string& width) {
  const std::string one = width.empty() ? "" : ",1";
  return "%s = input : f32[4,1000" + width + "]\n%i = input : i64[4,1000" + one +
         "]\n%x = expand(full{number=0} : f32[]){shape=[4,50" + width +
         "]}\n%y = scatter_sum(%x, %s, %i){dim=1}\noutputs (%y)\n";
}

// Of single elements two may fall on one row, so that their loop is no vector loop.
TEST(EmitKernel, AScatterSetsItsRowsAndThenCombinesInOrder) {
  const std::string single = emit_one(scatter_of(""), "cpu").text;
  const std::regex begins(R"(< 50; \+\+s_\d+\) \{\s+p2\[[^\]]*\] = 0x0p\+0f;)");
  const std::regex combines(R"(p2\[([^\]]*)\] = Sum::apply\(p2\[\1\], s_\d+\);)");
  for (const std::string& text : {single, emit_one(scatter_of(",7"), "cpu").text}) {
    EXPECT_TRUE(std::regex_search(text, combines)) << text;
    EXPECT_TRUE(holds(text, "report_bad_index(")) << text;
  }
  EXPECT_TRUE(std::regex_search(single, begins)) << single;
  EXPECT_FALSE(holds(single, "omp simd")) << single;
  const std::string wide = emit_one(scatter_of(",64"), "cpu").text;
  EXPECT_TRUE(holds(wide, "omp simd")) << wide;
  EXPECT_FALSE(holds(wide, "reduction(|")) << "an index is checked once for its row\n" << wide;
}

TEST(EmitKernel, AScatterOfOnePositionStillSetsItsRows) {
  const std::string text = emit_one(R"(
    %s = input : f32[4,1]
    %i = input : i64[4,1]
    %x = expand(full{number=1} : f32[]){shape=[4,50]}
    %y = scatter_prod(%x, %s, %i){dim=1}
    outputs (%y)
  )",
                                    "cpu")
                               .text;
  EXPECT_TRUE(holds(text, "= 0x1p+0f;")) << text;
  EXPECT_TRUE(holds(text, "Prod::apply(p2[")) << text;
}

// Nothing a user can write reaches a kernel text: not names, not files, not operators.
TEST(EmitKernel, HostileNamesAndOriginsNeverReachTheText) {
  for (const std::string& target : kTargets) {
    Planned planned = schedule_together(kSoftmax, target);
    const KernelSource clean = emit(planned).front();
    for (SharedNode& shared : planned.graph.nodes) {
      Node& node = own(shared);
      node.name = "evil */ \\";
      node.origin = {"*/ \\\" evil \n#include <evil>", "evil\".py:1\n*/ system(\"evil\");//\\"};
    }
    const KernelSource hostile = emit(planned).front();
    EXPECT_EQ(hostile.text, clean.text);
    EXPECT_EQ(hostile.name, clean.name);
    EXPECT_FALSE(holds(hostile.text, "evil"));
  }
}

TEST(EmitKernel, IntegerDivisorsThatMayBeZeroAreNotedOnTheHost) {
  const std::string divide = R"(
    %x = input : i32[64,100]
    %d = input : i32[64,100]
    %y = div_floor(%x, %d)
    outputs (%y)
  )";
  const KernelSource noted = emit_one(divide, "cpu");
  EXPECT_TRUE(noted.may_fail);
  EXPECT_TRUE(
      std::regex_search(noted.text, std::regex(R"((s_\d+) = \1 \| i32\(\(s_\d+ == 0\)\);)")))
      << noted.text;
  EXPECT_TRUE(std::regex_search(noted.text, std::regex(R"(omp simd reduction\(\|:s_\d+\))")))
      << noted.text;
  EXPECT_TRUE(holds(noted.text, "report_zero_divisor(")) << noted.text;
  EXPECT_FALSE(emit_one(divide, "h200").may_fail);  // eager yields a value there
}

TEST(EmitKernel, DivisorsThatCannotBeZeroCostNothing) {
  for (const std::string divide :
       {"%x = input : i32[64,100]\n%y = remainder(%x, full{value=7} : i32)\noutputs (%y)",
        "%x = input : f32[64,100]\n%y = remainder(%x, %x)\noutputs (%y)"}) {
    const KernelSource source = emit_one(divide, "cpu");
    EXPECT_FALSE(source.may_fail) << source.text;
    EXPECT_FALSE(holds(source.text, "report")) << source.text;
  }
}

TEST(EmitKernel, TheNameTellsTheOpsAndHashesTheText) {
  const KernelSource one = emit_one(kSoftmax, "h200");
  EXPECT_TRUE(std::regex_match(one.name, std::regex("stitch_amax_sub_exp_sum_[0-9a-f]{10}")))
      << one.name;
  EXPECT_TRUE(holds(one.text, "STITCH_KERNEL(" + one.name + ", " + std::to_string(one.threads)));
  EXPECT_EQ(one.name, emit_one(kSoftmax, "h200").name);
  EXPECT_NE(one.name, emit_one(kSoftmax, "cpu").name);
}

TEST(EmitKernel, ArgumentsComeInAFixedOrder) {
  const Planned planned = schedule_together(R"(
    %x = input : bf16[64,s1]
    %b = input : f32[s1]
    %y = add(cast(%x) : f32, %b)
    outputs (%y)
  )",
                                            "h200");
  const KernelSource source = emit(planned).front();
  ASSERT_EQ(source.pointers.size(), 3u);
  EXPECT_EQ(source.pointers[0].value, planned.graph.inputs[0]);
  EXPECT_EQ(source.pointers[1].value, planned.graph.inputs[1]);
  EXPECT_TRUE(source.pointers[2].is_store);
  // Blocks along the ragged columns, and their number.
  ASSERT_EQ(source.sizes.size(), 2u);
  EXPECT_EQ(source.sizes[1], Dim::symbol(1));
  EXPECT_TRUE(holds(source.text,
                    "(const bf16* __restrict__ p0, const f32* __restrict__ p1, "
                    "f32* __restrict__ p2, i64 n0, i64 n1, i32* error)"))
      << source.text;
}

TEST(EmitKernel, VectorAccessesAskForTheirAlignment) {
  const KernelSource wide =
      emit_one("%x = input : f32[64,1024]\n%y = neg(%x)\noutputs (%y)\n", "h200");
  for (const KernelArgument& argument : wide.pointers) EXPECT_EQ(argument.alignment_bytes, 16);
  EXPECT_TRUE(holds(wide.text, "load_vec<4>(p0"));
  EXPECT_TRUE(holds(wide.text, "store_vec(p1"));
  const KernelSource odd = emit_one("%x = input : f32[1021]\n%y = neg(%x)\noutputs (%y)\n", "h200");
  for (const KernelArgument& argument : odd.pointers) EXPECT_EQ(argument.alignment_bytes, 4);
  EXPECT_FALSE(holds(odd.text, "load_vec"));
}

TEST(EmitKernel, AnOffsetThatIsNoMultipleOfTheWidthIsNotAVectorLoad) {
  const KernelSource source = emit_one(R"(
    %x = input : f32[64,1025]
    %y = neg(slice(%x){dim=1, start=1, count=1024})
    outputs (%y)
  )",
                                       "h200");
  EXPECT_FALSE(holds(source.text, "load_vec")) << source.text;
  EXPECT_EQ(source.pointers[0].alignment_bytes, 4);
}

TEST(EmitKernel, RaggedThreadsNeitherStoreNorAccumulate) {
  const auto emit_rows = [](const std::string& extent) {
    return emit_one("%x = input : f32[64," + extent + R"(]
      %s = sum(%x){axes=[1], keepdim} : f32
      %y = sub(%x, add(%s, amax(%x){axes=[1], keepdim}))
      outputs (%y)
    )",
                    "h200")
        .text;
  };
  const std::string text = emit_rows("50257");
  EXPECT_TRUE(holds(text, "(ok1) ? s_")) << text;
  EXPECT_TRUE(holds(text, ": Sum::identity<f32>()"));
  EXPECT_TRUE(holds(text, "load_if(ok1, p0, "));
  EXPECT_TRUE(holds(text, ": Max::identity<f32>()")) << "nothing is read";
  EXPECT_TRUE(holds(text, "if (ok1) p1["));
  EXPECT_FALSE(holds(emit_rows("50260"), ": Max::identity<f32>()")) << "the last vector once more";
}

TEST(EmitKernel, OneThreadStoresAReplicatedResult) {
  const KernelSource source =
      emit_one("%x = input : f32[64,1024]\n%y = sum(%x){axes=[1]}\noutputs (%y)\n", "h200");
  EXPECT_TRUE(holds(source.text, "if (((tid() & 127) == 0)) p1[x0] = ")) << source.text;
}

TEST(EmitKernel, SharedMemoryIsDeclaredOnlyWhereWarpsMeet) {
  EXPECT_TRUE(holds(emit_one(kSoftmax, "h200").text, "STITCH_SHARED(u8, shared, "));
  const KernelSource narrow =
      emit_one("%x = input : f32[65536,64]\n%y = sum(%x){axes=[1]}\noutputs (%y)\n", "h200");
  EXPECT_FALSE(holds(narrow.text, "shared"));
  EXPECT_FALSE(holds(emit_one(kSoftmax, "cpu").text, "shared"));
}

TEST(EmitKernel, IndicesReadFromMemoryAreChecked) {
  for (const std::string& target : kTargets) {
    const KernelSource gather = emit_one(R"(
      %w = input : f32[100,16]
      %i = input : i64[8]
      %y = index(%w, %i){axes=[0]}
      outputs (%y)
    )",
                                         target);
    EXPECT_TRUE(gather.may_fail);
    // Collected on the host: a branch would keep the loop from vectorising.
    const bool on_host = target == "cpu";
    const std::string check = on_host ? "" : "check_index(";
    EXPECT_TRUE(holds(gather.text, check + "wrap_index(i64(s_"));
    EXPECT_TRUE(holds(gather.text, on_host ? "report_bad_index(s_" : "i64(100), error)"));
    EXPECT_FALSE(emit_one(kSoftmax, target).may_fail);
  }
}

TEST(EmitKernel, AGuardedIndexIsCheckedOnlyWhereItIsRead) {
  const KernelSource source = emit_one(R"(
    %w = input : f32[100,16]
    %i = input : i64[8]
    %y = pad(index(%w, %i){axes=[0]}){before=[1,0], shape=[10,16]}
    outputs (%y)
  )",
                                       "h200");
  EXPECT_TRUE(std::regex_search(
      source.text, std::regex(R"(wrap_index\(i64\(\(s_\d+ \? i64\(s_\d+\) : i64\(0\)\)\))")))
      << source.text;
}

// Small tensors can still make large indices: values counted or flattened past 32 bits.
TEST(EmitKernel, IndicesPastThirtyTwoBitsAreComputedInSixtyFour) {
  for (const char* text : {
           "%x = input : f32[65536,65537]\n%y = neg(%x)\noutputs (%y)\n",
           "%a = input : f32[65536,1]\n%b = input : f32[65537]\n"
           "%y = argmax(add(%a, %b))\noutputs (%y)\n",
           "%y = iota{count=1000000, step=1000000} : i64\noutputs (%y)\n",
       }) {
    const std::string source = emit_one(text, "h200").text;
    EXPECT_FALSE(std::regex_search(source, std::regex(R"(const i32 [xbr]\d)"))) << source;
  }
}

TEST(EmitKernel, NumbersAreExact) {
  auto text_of = [](const std::string& dtype, const std::string& number) {
    return emit_one("%x = input : " + dtype + "[8]\n%c = full{" + number + "} : " + dtype +
                        "\n%y = maximum(%x, %c)\noutputs (%y)\n",
                    "cpu")
        .text;
  };
  EXPECT_TRUE(holds(text_of("f32", "number=0.1"), "0x1.99999ap-4f"));
  EXPECT_TRUE(holds(text_of("f64", "number=0.1"), "0x1.999999999999ap-4"));
  EXPECT_TRUE(holds(text_of("f32", "number=-inf"), "-infinity<f32>()"));
  EXPECT_TRUE(holds(text_of("f32", "number=nan"), "quiet_nan<f32>()"));
  EXPECT_TRUE(holds(text_of("f32", "number=1e300"), "infinity<f32>()"));
  EXPECT_TRUE(holds(text_of("f32", "number=-0.0"), "-0x0p+0f"));
  EXPECT_TRUE(holds(text_of("i64", "value=9007199254740993"), "9007199254740993LL"));
  EXPECT_TRUE(holds(text_of("i64", "value=-9223372036854775808"), "(-9223372036854775807LL - 1)"));
}

TEST(EmitKernel, AliasedMemoryIsNotRestricted) {
  const std::string text = R"(
    %x = input : f32[64,64]
    %y = add(%x, 1)
    mutate %x <- %y
    outputs (none)
  )";
  for (const std::string& target : kTargets) {
    const Planned planned = schedule_together(text, target);
    const Mutation& mutation = planned.graph.mutations[0];
    const KernelSource in_place =
        emit(planned, {false, {{mutation.value, mutation.input}}}).front();
    EXPECT_FALSE(holds(in_place.text, "__restrict__")) << in_place.text;
    EXPECT_TRUE(holds(emit(planned).front().text, "__restrict__"));
  }
}

// Others read the same element only to throw it away, and would race with the store.
TEST(EmitKernel, OnlyTheThreadThatOverwritesAnElementReadsIt) {
  struct Case {
    const char* text;
    const char* load;
    bool skips_past_end = false;  // threads there read nothing anyway
  };
  const Case cases[] = {{R"(%x = input : f32[64]
          %g = input : f32[64,512]
          %y = add(mul(%x, 0.5), sum(%g){axes=[1]})
          mutate %x <- %y
          outputs (none))",
                         R"(load_if\(.*tid\(\) & \d+\) == 0.*, p0, x0\))"},
                        {R"(%x = input : f32[61,67]
          %y = add(%x, 1)
          mutate %x <- %y
          outputs (none))",
                         R"(load_if\(.*ok0.*, p0, )", true},
                        {R"(%x = input : f32[61,68]
          %y = add(%x, 1)
          mutate %x <- %y
          outputs (none))",
                         R"(load_vec_if<4>\(.*ok0.*, p0 \+ )"}};
  for (const Case& in_place : cases) {
    const Planned planned = schedule_together(in_place.text, "h200");
    const Mutation& mutation = planned.graph.mutations[0];
    const KernelSource source = emit(planned, {false, {{mutation.value, mutation.input}}}).front();
    EXPECT_TRUE(std::regex_search(source.text, std::regex(in_place.load))) << source.text;
    EXPECT_EQ(holds(emit(planned).front().text, "load_if"), in_place.skips_past_end)
        << "by copy nothing is overwritten";
  }
}

TEST(EmitKernel, ArraysAlongAnEmptyAxisAreCPlusPlus) {
  const std::string text = R"(
    %x = input : f32[3,0]
    %y = sum(%x){axes=[0]}
    outputs (%y)
  )";
  EXPECT_FALSE(holds(emit_one(text, "h200").text, ", 0);")) << emit_one(text, "h200").text;
}

// Two states that replace each other: whatever is stored in place, the old values are read first.
TEST(EmitKernel, ReadsOfAReplacedInputComeBeforeItsStore) {
  const std::string text = R"(
    %x = input : f32[61,67]
    %y = input : f32[61,67]
    %a = neg(%y)
    %b = abs(%x)
    mutate %x <- %a
    mutate %y <- %b
    outputs (none)
  )";
  for (const std::string& target : kTargets) {
    const Planned planned = plan_graph(text, target);
    for (size_t m = 0; m < planned.plan.in_place.size(); ++m) {
      if (!planned.plan.in_place[m]) continue;
      const Mutation& mutation = planned.graph.mutations[m];
      for (const KernelSource& source :
           emit(planned, {false, {{mutation.value, mutation.input}}})) {
        std::string load, load_by_owner, store;
        for (size_t p = 0; p < source.pointers.size(); ++p) {
          const KernelArgument& argument = source.pointers[p];
          const std::string element = "p" + std::to_string(p) + "[";
          if (argument.value == mutation.input) {
            load = "= " + element;
            load_by_owner = ", p" + std::to_string(p) + ", ";
          }
          if (argument.value == mutation.value && argument.is_store) store = element;
        }
        if (load.empty() || store.empty()) continue;
        // On the host the loops behind the first do the same for what is left of the row.
        constexpr std::string_view kLoop = "omp simd";
        const size_t second = source.text.find(kLoop, source.text.find(kLoop) + 1);
        const std::string first = target == "cpu" ? source.text.substr(0, second) : source.text;
        const size_t loads = std::min(first.rfind(load), first.rfind(load_by_owner));
        EXPECT_LT(loads, first.find(store)) << target << "\n" << source.text;
      }
    }
  }
}

TEST(EmitKernel, EagerCastsRoundEveryNarrowResult) {
  const std::string text = R"(
    %x = input : bf16[64]
    %y = mul(exp(%x), %x)
    outputs (%y)
  )";
  LoweringOptions eager;
  eager.emulate_eager_casts = true;
  EXPECT_TRUE(holds(emit_one(text, "h200", eager).text, "round_to<bf16>(exp(")) << "rounds twice";
  EXPECT_FALSE(holds(emit_one(text, "h200").text, "round_to<bf16>")) << "the store rounds";
}

TEST(EmitKernel, HostMaximaKeepNanAndVectorise) {
  const std::string text = emit_one(kSoftmax, "cpu").text;
  EXPECT_TRUE(std::regex_search(text, std::regex(R"(omp simd reduction\(max:s_\d+\) )"
                                                 R"(reduction\(\|:s_\d+\))")))
      << text;
  EXPECT_TRUE(holds(text, "? quiet_nan<f32>() : "));
}

// A bool of each lane would make vectors of 64 elements, and rows of as many three times as long.
TEST(EmitKernel, HostTruthsAreGatheredInLanesOfAFloat) {
  const std::string text = emit_one(R"(
    %x = input : f32[4096,1024]
    %a = all(eq(%x, 1)){axes=[1]}
    %b = any(eq(%x, 2)){axes=[1]}
    outputs (%a, %b)
  )",
                                    "cpu")
                               .text;
  for (const char* part : {R"(i32 (s_\d+) = All::identity<i32>)", R"(i32 (s_\d+) = Any::identity)",
                           R"(reduction\(&:s_\d+\))", R"((s_\d+) = \1 & i32\(s_\d+\))",
                           R"((s_\d+) = \1 \| i32\(s_\d+\))"}) {
    EXPECT_TRUE(std::regex_search(text, std::regex(part))) << part << "\n" << text;
  }
}

// Rows of `extent` elements behind `before` others, up to 2048.
std::string padded_rows(int extent, int before) {
  const std::string number = std::to_string(extent);
  return emit_one("%x = input : bf16[4096," + number + "]\n%p = pad(%x){before=[0," +
                      std::to_string(before) + "], shape=[4096,2048], value=0}\n" +
                      "%y = cast(%p) : f32[4096,2048]\n%s = sum(%y){axes=[1]}\noutputs (%s)\n",
                  "h200")
      .text;
}

TEST(EmitKernel, LoadsBehindABoundThatNoVectorCrossesAreVectors) {
  EXPECT_TRUE(holds(padded_rows(2000, 0), "load_vec_if<8>("));
  EXPECT_TRUE(holds(padded_rows(2000, 8), "load_vec_if<8>("));
  for (const auto& [extent, before] : {std::pair{2001, 0}, {2000, 4}, {2004, 0}}) {
    EXPECT_FALSE(holds(padded_rows(extent, before), "load_vec_if")) << extent << " " << before;
    EXPECT_TRUE(holds(padded_rows(extent, before), "load_if(")) << extent << " " << before;
  }
}

}  // namespace
}  // namespace stitch
