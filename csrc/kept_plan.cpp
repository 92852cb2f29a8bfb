#include "base/archive.h"
#include "compilation.h"
#include "jit/generated.h"
#include "jit/kernel_cache.h"
#include "jit/nvrtc.h"

namespace stitch {

// Of what is loaded nothing is kept.
static auto serialize(auto& archive, LoadedKernel&) { return archive(); }
static auto serialize(auto& archive, SharedFlags&) { return archive(); }

// What a GPU's kernels spill is its compiler's, and decides schedules.
static CacheRequest request_of(const CompileRequest& request, const std::string& arch) {
  const bool compiles = !arch.empty() && nvrtc_available();
  const std::string compiler = source_hash() + (compiles ? " nvrtc " + nvrtc_version() : "");
  std::string options = to_bytes(request.worker_threads, request.graph.symbols.nearness);
  for (const SettingRow& row : settings_rows())
    if (row.plans) options += to_bytes(get_option(request.settings, row.name));
  return {"plan", request.target, compiler, options, "", to_string(request.graph)};
}

CompiledPlan find_plan(const CompileRequest& request, const std::string& arch,
                       const std::function<CompiledPlan()>& plan) {
  if (!request.load || !request.settings.dump.empty()) return plan();
  CompiledPlan made;
  const Binary kept =
      process_cache(request.settings).get_or_compile(request_of(request, arch), [&] {
        made = plan();
        for (ReportedKernel& kernel : made.report.kernels) kernel.text.clear();  // as in sources
        return Binary{.bytes = to_bytes(made.program, made.report)};
      });
  const bool is_read = from_bytes(kept.bytes, made.program, made.report);
  STITCH_CHECK(is_read, "a plan that is kept cannot be read");
  for (size_t k = 0; k < made.program.sources.size(); ++k)
    made.report.kernels[k].text = made.program.sources[k].text;
  if (!made.binaries.empty()) return made;
  try {
    made.binaries = compile_kernels(made.program.sources, arch, request.settings, true);
  } catch (const NotCompiledError&) {  // by another compiler: planned anew, it names the ops
    return plan();
  }
  return made;
}

}  // namespace stitch
