// Kernel texts with one fault each: what the launch would pass or find otherwise than the text.
#include "plan/plan_graph.h"
#include "support/faults.h"

namespace stitch {
namespace {

using SourceFaults = std::vector<Fault<KernelSource>>;

void expect_source_faults(const std::string& text, const char* target, const SourceFaults& faults) {
  const Planned planned = plan_graph(text, target);
  expect_refused(
      faults, [&] { return emit_planned(planned, 0); },
      [&](const KernelSource& source) { verify_source(source, device_spec(target)); });
}

// Replaces `part` in the text and names the kernel as it then should be.
void edit(KernelSource& source, const std::string& part, const std::string& by) {
  std::string& text = source.text;
  ASSERT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  text.replace(text.find(part), part.size(), by);
  const std::string name = source.name;
  source.name.replace(name.size() - 10, 10, hash_of(text));
  text.replace(text.find(name), name.size(), source.name);
}

const char* const kPhases = R"(
  %x = input : f32[4096,4096]
  %parts = amax(abs(%x)){axes=[1]}
  %y = div(%x, amax(%parts))
  outputs (%y)
)";

TEST(VerifySource, OfSeveralPhases) {
  expect_source_faults(
      kPhases, "h200",
      {{"another text", [](KernelSource& s) { s.text.insert(s.text.find("tid()"), " "); },
        "name-has-hash"},
       {"another name", [](KernelSource& s) { s.name += "0"; }, "kernel-is-named"},
       {"other threads", [](KernelSource& s) { s.threads *= 2; }, "kernel-is-named"},
       {"an open bracket", [](KernelSource& s) { edit(s, "tid()", "(tid()"); }, "brackets-match"},
       {"a bracket too many", [](KernelSource& s) { edit(s, "tid()", "tid())"); },
        "brackets-match"},
       {"an alignment of 12", [](KernelSource& s) { s.pointers[0].alignment_bytes = 12; },
        "alignment-power-of-two"},
       {"a pointer that the text has not", [](KernelSource& s) { s.pointers.push_back({}); },
        "pointer-is-parameter"},
       {"a parameter that nothing is passed for", [](KernelSource& s) { s.pointers.pop_back(); },
        "pointer-is-parameter"},
       {"a tabled pointer in no table", [](KernelSource& s) { s.pointers[0].is_tabled = true; },
        "pointer-is-parameter"},
       {"a size that the text has not", [](KernelSource& s) { s.sizes.push_back(4); },
        "size-is-parameter"},
       {"one phase of two", [](KernelSource& s) { s.phases.resize(1); }, "phases-are-parameters"},
       {"a barrier that is not passed",
        [](KernelSource& s) { edit(s, "u32* barrier, i32* error", "i32* error"); },
        "barrier-is-parameter"},
       {"turns of a tenth phase", [](KernelSource& s) { s.in_turns.push_back(9); },
        "turns-of-phase"},
       {"more shared memory than a block has", [](KernelSource& s) { s.shared_bytes = 1 << 20; },
        "shared-within-device"}});
}

TEST(VerifySource, WithATable) {
  std::string text, outputs;
  for (int i = 0; i < 2 * kFewestRecords; ++i) {
    const std::string n = std::to_string(i);
    text += "%a" + n + " = input : f32[64,64]\n%y" + n + " = exp(%a" + n + ")\n";
    outputs += (i > 0 ? ", %y" : "%y") + n;
  }
  text += "outputs (" + outputs + ")\n";
  expect_source_faults(
      text, "h200",
      {{"a tensor that is no pointer", [](KernelSource& s) { s.tensors[0] = 1000; },
        "tensor-is-pointer"},
       {"a tabled pointer that the table has not",
        [](KernelSource& s) { s.tensors[0] = s.tensors[1]; }, "tabled-is-in-table"},
       {"a pointer that is no parameter",
        [](KernelSource& s) { s.pointers[s.tensors[0]].is_tabled = false; },
        "pointer-is-parameter"},
       {"a table of another length", [](KernelSource& s) { s.tensors.push_back(s.tensors[0]); },
        "table-is-parameter"}});
}

TEST(VerifySource, OfTheHost) {
  const char* softmax = R"(
    symbols s0 = input(0) hint 4096
    %x = input : f32[s0,1000]
    %e = exp(%x)
    %y = div(%e, sum(%e){axes=[1], keepdim})
    outputs (%y)
  )";
  expect_source_faults(
      softmax, "cpu",
      {{"two threads of a block",
        [](KernelSource& s) {
          s.threads = 2;
          edit(s, ", 1, 1)(", ", 2, 1)(");
        },
        "threads-of-block"},
       {"a pointer that the text has not", [](KernelSource& s) { s.pointers.push_back({}); },
        "pointer-is-parameter"},
       {"a size too few", [](KernelSource& s) { s.sizes.clear(); }, "size-is-parameter"}});
}

}  // namespace
}  // namespace stitch
