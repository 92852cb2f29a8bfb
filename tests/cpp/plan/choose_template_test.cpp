// Templates of a kernel: what is enumerated, what is taken, and that each computes the same.
#include "plan/kernels/choose_template.h"

#include <set>

#include "cpp/jit/nvrtc_directories.h"
#include "cpp/plan/plan_graph.h"
#include "cpp/runtime/fake_frame.h"
#include "jit/compiler.h"
#include "jit/generated.h"
#include "ptxsim/simulated_driver.h"
#include "runtime/build_program.h"
#include "stage/map_axes.h"

namespace stitch {
namespace {

// All that differ, with their times; whatever they gain.
std::vector<KernelChoice> enumerate(KernelChooser& chooser) {
  std::vector<KernelChoice> choices =
      chooser.list_templates(std::numeric_limits<double>::infinity());
  choices.erase(choices.begin());  // as derived
  return chooser.evaluate(std::move(choices));
}

std::string normed_rows(const std::string& type) {
  return "%x = input : " + type +
         "\n%e = exp(sub(%x, amax(%x){axes=[1], keepdim}))\n"
         "%y = div(%e, sum(%e){axes=[1], keepdim})\noutputs (%y)\n";
}

std::string costly_rows(const std::string& type) {
  return "%x = input : " + type + "\n%y = sum(tanh(erf(tanh(%x)))){axes=[1]}\noutputs (%y)\n";
}

std::string exponential(const std::string& type) {
  return "%x = input : " + type + "\n%y = exp(%x)\noutputs (%y)\n";
}

// One stage as it is derived, and the chooser that looks for better.
struct Choosing {
  explicit Choosing(const std::string& text, const char* target = "h200")
      : planned(schedule_together(text, target)),
        chooser{planned.graph, planned.plan.stages, kernel(), target_of(target), memo} {}

  const PlannedKernel& kernel() const { return planned.plan.kernels[0]; }
  KernelChoice choose() { return chooser.choose(); }
  double us() const { return chooser.predict_us({{0, planned.only()}}); }
  // The stage by the choice.
  const StageSchedule& take(const KernelChoice& choice) {
    planned.plan.schedules = {chooser.schedule(choice).at(0)};
    name_blocks(planned.graph.symbols, planned.plan);
    return planned.only();
  }

  Planned planned;
  TemplateMemo memo;
  KernelChooser chooser;
};

class Templates : public testing::TestWithParam<std::string> {};

TEST_P(Templates, TheBestByTheEvaluatorIsTakenOrTheDerived) {
  Choosing choosing(GetParam());
  const double derived_us = choosing.us();
  const KernelChoice chosen = choosing.choose();
  const std::vector<KernelChoice> all = enumerate(choosing.chooser);
  ASSERT_FALSE(all.empty());
  double least_us = all[0].us;
  for (const KernelChoice& choice : all) least_us = std::min(least_us, choice.us);
  if (!chosen.templates.empty()) {
    EXPECT_DOUBLE_EQ(chosen.us, least_us);
    EXPECT_LT(chosen.us, 0.97 * derived_us) << "what is gained is more than noise";
    choosing.take(chosen);
    EXPECT_DOUBLE_EQ(choosing.us(), chosen.us) << "and is what the schedule is judged to take";
  } else {
    EXPECT_GE(least_us, 0.97 * derived_us);
  }
}

TEST_P(Templates, EachKeepsWhatItPromises) {
  Choosing choosing(GetParam());
  for (const KernelChoice& choice : enumerate(choosing.chooser)) {
    const StageSchedule& s = choosing.take(choice);
    EXPECT_TRUE(check_arrays(choosing.planned.graph, s));
    EXPECT_LE(s.threads, choice.templates[0].block_threads);
    EXPECT_LE(s.shared_bytes, s.device->shared_bytes_per_block);
    unsigned used_bits = 0, reduced_bits = 0;
    for (const MappedAxis& axis : s.axes) {
      const unsigned bits = axis.thread_bits();
      EXPECT_EQ(bits & used_bits, 0u) << to_string(s, choosing.planned.graph);
      used_bits |= bits;
      const RootSpace& space = s.spaces.roots[0];
      if (role_of(space, axis.axis) == Role::kReduced) reduced_bits |= bits;
      const Dim covered = axis.count(Level::kGrid) * axis.trips() * Dim(axis.step());
      EXPECT_GE(covered.value(), axis.axis.extent.value());
    }
    EXPECT_LT(used_bits, static_cast<unsigned>(s.threads));
    const ReductionLevel level = choice.templates[0].level;
    const unsigned most_bits = level == ReductionLevel::kThread ? 0u
                               : level == ReductionLevel::kWarp ? 31u
                                                                : 1023u;
    EXPECT_LE(reduced_bits, most_bits) << to_string(s, choosing.planned.graph);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Templates,
                         testing::Values(normed_rows("f32[4096,1024]"),
                                         normed_rows("bf16[1060,1024]"),
                                         normed_rows("f32[100000,17]"), normed_rows("f16[3,50257]"),
                                         costly_rows("bf16[100000,7]"),
                                         costly_rows("f32[100000,17]"), costly_rows("f64[2,131]"),
                                         column_sum("f32[16384,768]"), column_sum("bf16[20,20000]"),
                                         column_sum("f32[7,300]"), column_sum("f32[40,1000000]"),
                                         column_sum("f32[130,17]"), exponential("f32[1000003]"),
                                         exponential("bf16[1060,1024]")));

int threads_of_rows(const StageSchedule& s) { return s.axes.back().threads(); }

TEST(ChooseTemplate, FewLongRowsTakeABlockEach) {
  Choosing choosing(normed_rows("f32[132,65536]"));
  const StageSchedule& s = choosing.take(choosing.choose());
  EXPECT_EQ(s.grid, Dim(132));
  EXPECT_EQ(threads_of_rows(s), s.threads);
  EXPECT_GE(s.threads, 512);
}

TEST(ChooseTemplate, ManyShortRowsTakeAThreadOrAPartOfAWarp) {
  for (const auto& [text, most] :
       {std::pair(costly_rows("bf16[100000,7]"), 1), std::pair(costly_rows("f32[100000,17]"), 8),
        std::pair(normed_rows("f32[65536,64]"), 16)}) {
    Choosing choosing(text);
    EXPECT_LE(threads_of_rows(choosing.take(choosing.choose())), most) << text;
  }
}

// A third of the warps of a wave would stand idle.
TEST(ChooseTemplate, BlocksAreCutSoThatTheLastWaveIsFull) {
  Choosing choosing(normed_rows("bf16[1060,1024]"));
  const KernelChoice chosen = choosing.choose();
  ASSERT_FALSE(chosen.templates.empty());
  EXPECT_EQ(choosing.take(chosen).threads, 128);
}

TEST(ChooseTemplate, ColumnsOfFewRowsNeedNoBarrier) {
  Choosing choosing(column_sum("f32[8,1000000]"));
  const StageSchedule& s = choosing.take(choosing.choose());
  EXPECT_EQ(s.axes[0].threads(), 1) << "a thread adds up its own columns";
  EXPECT_EQ(s.shared_bytes, 0);
}

TEST(ChooseTemplate, FewColumnsOfManyRowsTakeTheLargestBlock) {
  Choosing choosing(column_sum("f32[1000,9]"));
  EXPECT_EQ(choosing.take(choosing.choose()).threads, 1024);
}

TEST(ChooseTemplate, WhatMemoryBoundsAtFullShareStaysAsDerived) {
  for (const std::string& text : {normed_rows("f32[65536,1024]"), exponential("f32[8192,8192]"),
                                  normed_rows("bf16[8192,4096]"), column_sum("f32[2048,65536]")}) {
    Choosing choosing(text);
    EXPECT_TRUE(choosing.choose().templates.empty()) << text;
  }
}

// What a kernel is now is none of its other choices, all else is: also where it is what nobody
// would choose, a thread with more elements than its registers hold.
TEST(ChooseTemplate, OtherChoicesAreAllButWhatTheKernelIs) {
  const auto text_of = [](Choosing& choosing, const KernelChoice& choice) {
    StageSchedule schedule = choosing.take(choice);
    schedule.bounds.chosen = {};
    return to_string(schedule, choosing.planned.graph);
  };
  const std::string crossed =
      "%x = input : f32[64,16384]\n%a = sum(%x){axes=[0]}\n%b = sum(%x){axes=[1]}\n"
      "outputs (%a, %b)\n";
  int unfit = 0;
  for (ReductionLevel level :
       {ReductionLevel::kDerived, ReductionLevel::kBlock, ReductionLevel::kThread}) {
    for (int threads : {32, 256, 1024}) {
      Choosing choosing(crossed);
      std::set<std::string> others = {text_of(choosing, {})};
      for (const KernelChoice& choice : enumerate(choosing.chooser))
        others.insert(text_of(choosing, choice));
      const std::string present = text_of(choosing, {.templates = {{level, threads}}});
      unfit += !check_arrays(choosing.planned.graph, choosing.planned.only());
      others.erase(present);
      choosing.chooser.kernel.templates = {{level, threads}};
      for (const KernelChoice& other : choosing.chooser.find_others().others) {
        const std::string text = text_of(choosing, other);
        EXPECT_TRUE(text != present || other.bounds.resident_threads < kResidentThreads) << text;
        others.erase(text);
      }
      EXPECT_TRUE(others.empty()) << *others.begin();
    }
  }
  EXPECT_GT(unfit, 0);
}

TEST(ChooseTemplate, TheHostHasNone) {
  Choosing choosing(costly_rows("f32[100000,17]"), "cpu");
  EXPECT_TRUE(choosing.choose().templates.empty());
}

TEST(ChooseTemplate, TheScheduleNamesIt) {
  Choosing choosing(column_sum("f32[8,1000000]"));
  const StageSchedule& derived = choosing.planned.only();
  EXPECT_EQ(to_string(derived, choosing.planned.graph).find("template"), std::string::npos);
  const StageSchedule& s = choosing.take(choosing.choose());
  EXPECT_NE(to_string(s, choosing.planned.graph).find("template thread threads"),
            std::string::npos);
}

// Blocks of one kernel have one size, whatever each stage would like.
TEST(ChooseTemplate, StagesOfOneKernelHaveOneBlockSize) {
  Planned planned = plan_graph(R"(
    %x = input : f32[300,33]
    %columns = sum(%x){axes=[0]}
    %y = mul(%x, %columns)
    outputs (%y)
  )",
                               "h200");
  for (const PlannedKernel& kernel : planned.plan.kernels) {
    PlannedKernel apart = kernel;
    apart.kept.clear();
    TemplateMemo memo;
    KernelChooser chooser{planned.graph, planned.plan.stages, apart, target_of("h200"), memo};
    for (const KernelChoice& choice : enumerate(chooser)) {
      const KernelSchedules schedules = chooser.schedule(choice);
      for (const auto& [s, own] : schedules)
        EXPECT_EQ(own.threads, schedules.begin()->second.threads);
    }
  }
}

// Whole numbers, which every order of adding adds up exactly: each template must give the fp64
// result to the last bit, under all orders of warps and blocks.
struct Exact {
  const char* name;
  const char* text;
  int64_t rows, columns;
  bool by_column;  // adds rows up, else columns
};
constexpr Exact kExact[] = {
    {"Rows", "%x = input : f32[37,300]\n%y = sub(%x, sum(%x){axes=[1], keepdim})\noutputs (%y)\n",
     37, 300, false},
    {"RaggedRows",
     "%x = input : f32[5,1031]\n%y = sub(%x, sum(%x){axes=[1], keepdim})\noutputs (%y)\n", 5, 1031,
     false},
    {"ShortRows",
     "%x = input : f32[515,7]\n%y = sub(%x, sum(%x){axes=[1], keepdim})\noutputs (%y)\n", 515, 7,
     false},
    {"OneRow", "%x = input : f32[1,64]\n%y = sub(%x, sum(%x){axes=[1], keepdim})\noutputs (%y)\n",
     1, 64, false},
    {"Columns", "%x = input : f32[65,68]\n%y = sub(%x, sum(%x){axes=[0], keepdim})\noutputs (%y)\n",
     65, 68, true},
    {"RaggedColumns",
     "%x = input : f32[131,19]\n%y = sub(%x, sum(%x){axes=[0], keepdim})\noutputs (%y)\n", 131, 19,
     true},
};

class TemplateKernels : public testing::TestWithParam<Exact> {
 protected:
  static float element(int64_t i) { return static_cast<float>(i * 7 % 41 - 20); }

  static std::vector<float> expect(const Exact& exact) {
    std::vector<double> sums(exact.by_column ? exact.columns : exact.rows);
    const auto sum_of = [&](int64_t i) -> double& {
      return sums[exact.by_column ? i % exact.columns : i / exact.columns];
    };
    const int64_t count = exact.rows * exact.columns;
    for (int64_t i = 0; i < count; ++i) sum_of(i) += element(i);
    std::vector<float> expected;
    for (int64_t i = 0; i < count; ++i)
      expected.push_back(static_cast<float>(element(i) - sum_of(i)));
    return expected;
  }

  static std::vector<float> simulate(const Planned& planned, const KernelSource& source,
                                     int64_t elements) {
    const ptxsim::SimulatedRun simulation(ptxsim::simulated_device("h200"));
    const Binary ptx =
        compile_own_text({source.name, source.text}, ptxsim::arch_of("h200"), CudaOutput::kPtx);
    const LoadedKernel kernel{load_function(ptx.bytes, source.name, source.shared_bytes)};
    Program program = build_program(planned.graph, planned.plan, {source}, /*on_cuda=*/true);
    program.kernels = {kernel};
    FakeFrame frame(program);
    std::vector<float> x(elements);
    for (size_t i = 0; i < x.size(); ++i) x[i] = element(static_cast<int64_t>(i));
    frame.set(0, x);
    stitch::run(program, frame, {});
    simulation.check();
    return frame.output(0);
  }

  // The text of every level at two launch sizes, and of what the evaluator likes best.
  template <typename Visit>
  static void visit_templates(Visit visit) {
    Choosing choosing(GetParam().text);
    const std::vector<KernelChoice> best = enumerate(choosing.chooser);
    ASSERT_FALSE(best.empty());
    std::set<std::string> known;
    for (ReductionLevel level : {ReductionLevel::kDerived, ReductionLevel::kThread,
                                 ReductionLevel::kWarp, ReductionLevel::kBlock}) {
      for (int block_threads : {128, 1024}) {
        // With all registers: what spills with fewer has remedies.
        choosing.take(
            KernelChoice{.bounds = {.resident_threads = 0}, .templates = {{level, block_threads}}});
        if (!check_arrays(choosing.planned.graph, choosing.planned.only())) continue;
        Planned planned = choosing.planned;
        planned.plan.steps = {PlanStep{0}};
        const KernelSource source = emit_planned(planned, 0);
        if (known.insert(source.text).second) visit(planned, source);
      }
    }
    EXPECT_GE(known.size(), 2u);
    for (const KernelChoice& choice : best) {
      choosing.take(choice);
      Planned planned = choosing.planned;
      planned.plan.steps = {PlanStep{0}};
      visit(planned, emit_planned(planned, 0));
    }
  }
};

TEST_P(TemplateKernels, ComputeTheSame) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::vector<float> expected = expect(GetParam());
  visit_templates([&](const Planned& planned, const KernelSource& source) {
    EXPECT_EQ(simulate(planned, source, GetParam().rows * GetParam().columns), expected)
        << to_string(planned.only(), planned.graph);
  });
}

TEST_P(TemplateKernels, CompileForEachGeneration) {
  STITCH_SKIP_WITHOUT_NVRTC();
  visit_templates([&](const Planned& planned, const KernelSource& source) {
    for (const char* arch : {"sm_80", "sm_90a", "sm_100a"}) {
      const Binary binary = run_nvrtc(source.name, std::string(device_text()) + source.text, arch);
      ASSERT_FALSE(binary.bytes.empty()) << binary.log;
      EXPECT_EQ(binary.spill_bytes, 0) << to_string(planned.only(), planned.graph);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, TemplateKernels, testing::ValuesIn(kExact),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace stitch
