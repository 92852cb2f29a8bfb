#include "jit/compiler.h"

#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "jit/device_text.h"
#include "jit/host_compiler.h"
#include "jit/kernel_cache.h"
#include "jit/nvrtc.h"

namespace stitch {
namespace {

const std::string& prelude_hash() {
  static const std::string hash = sha256_hex(device_text());
  return hash;
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word + " ";
  return text;
}

std::string with_prelude(const std::string& text) { return std::string(device_text()) + text; }

// Where the source of a kernel that does not compile is kept for a report.
std::string keep_source(const std::string& name, const std::string& source,
                        const Settings& settings) {
  std::string why;
  if (!settings.cache.empty() && settings.cache != "off") {
    const auto directory = PrivateDirectory::open(settings.cache, why);
    if (directory && directory->write_entry(name, source).empty()) {
      return directory->path() + "/" + name;
    }
  }
  return write_text_file(settings.dump_dir, name, source);
}

[[noreturn]] void throw_not_compiled(const std::string& what, const std::string& source_path,
                                     const CompileOutcome& outcome) {
  const std::string place =
      source_path.empty() ? "not kept: no writable directory" : "in " + source_path;
  throw InternalError(what + " does not compile; its source is " + place +
                      ", please attach it to a report\n" + outcome.binary.log);
}

CacheRequest cuda_request(const KernelText& kernel, const std::string& arch) {
  return {"cuda",
          arch,
          "nvrtc " + nvrtc_version(),
          join(nvrtc_options(arch)),
          prelude_hash(),
          kernel.name + "\n" + kernel.text};
}

}  // namespace

Binary compile_cuda(const KernelText& kernel, const std::string& arch, const Settings& settings) {
  ErrorContext context("while compiling kernel " + kernel.name + " for " + arch);
  return process_cache(settings).get_or_compile(cuda_request(kernel, arch), [&] {
    const std::string source = with_prelude(kernel.text);
    CompileOutcome outcome = run_nvrtc(kernel.name, source, arch);
    if (!outcome.ok) {
      const std::string path = keep_source("failed-" + kernel.name + ".cu", source, settings);
      throw_not_compiled("a CUDA kernel", path, outcome);
    }
    return std::move(outcome.binary);
  });
}

void discard_cuda(const KernelText& kernel, const std::string& arch, const Settings& settings) {
  process_cache(settings).discard(cuda_request(kernel, arch));
}

Binary compile_host(const std::vector<KernelText>& kernels, const Settings& settings) {
  ErrorContext context("while compiling " + std::to_string(kernels.size()) + " CPU kernels");
  std::string texts;
  std::set<std::string> names;
  for (const KernelText& kernel : kernels) {
    if (names.insert(kernel.name).second) texts += kernel.text + "\n";
  }
  const HostCompiler& compiler = find_host_compiler(settings.cxx);
  const std::string options = settings.cxx + " " + std::string(kHostFlags);
  const CacheRequest request = {"host",  compiler.features, compiler.version,
                                options, prelude_hash(),    texts};
  return process_cache(settings).get_or_compile(request, [&] {
    const std::string source = with_prelude(texts);
    CompileOutcome outcome = run_host_compiler(settings.cxx, source);
    if (!outcome.ok) {
      const std::string name = "failed-" + cache_key(request).substr(0, 16) + ".cpp";
      throw_not_compiled("the CPU kernels of a graph", keep_source(name, source, settings),
                         outcome);
    }
    return std::move(outcome.binary);
  });
}

}  // namespace stitch
