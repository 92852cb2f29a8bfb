#include "jit/compiler.h"

#include <future>

#include "base/hash.h"
#include "base/log.h"
#include "base/words.h"
#include "jit/generated.h"
#include "jit/host_compiler.h"
#include "jit/kernel_cache.h"
#include "jit/nvrtc.h"

namespace stitch {
namespace {

const std::string& prelude_hash() {
  static const std::string hash = sha256_hex(device_text());
  return hash;
}

std::string with_prelude(const std::string& text) { return std::string(device_text()) + text; }

// Where the source of a kernel that does not compile is kept for a report.
std::string keep_source(const std::string& name, const std::string& source,
                        const Settings& settings) {
  std::string why;
  if (!settings.cache.empty() && settings.cache != "off") {
    const auto directory = PrivateDirectory::open(settings.cache, why);
    if (directory && directory->write_entry(name, source).empty())
      return directory->path() + "/" + name;
  }
  return write_text_file(settings.dump_dir, name, source);
}

std::string describe_failure(const std::string& what, const std::string& file,
                             const std::string& source, const std::string& log,
                             const Settings& settings) {
  const std::string path = keep_source(file, source, settings);
  const std::string place = path.empty() ? "not kept: no writable directory" : "in " + path;
  return what + " does not compile; its source is " + place + ", please attach it to a report\n" +
         log;
}

std::string join_texts(const std::vector<KernelText>& kernels) {
  return join(kernels, "", [](const KernelText& kernel) { return kernel.text + "\n"; });
}

Binary compile_texts(const std::vector<KernelText>& kernels, const Settings& settings) {
  return run_host_compiler(settings.cxx, with_prelude(join_texts(kernels)));
}

using FailedKernel = std::pair<KernelText, std::string>;  // with the compiler's log

// The kernels at fault in what did not compile as a whole, by halving.
std::vector<FailedKernel> find_failed(const std::vector<KernelText>& kernels,
                                      const std::string& log, const Settings& settings) {
  if (kernels.size() == 1) return {{kernels[0], log}};
  const auto middle = kernels.begin() + static_cast<std::ptrdiff_t>(kernels.size() / 2);
  std::vector<FailedKernel> failed;
  for (const auto& half : {std::vector<KernelText>(kernels.begin(), middle),
                           std::vector<KernelText>(middle, kernels.end())}) {
    const Binary binary = compile_texts(half, settings);
    if (!binary.bytes.empty()) continue;
    std::ranges::move(find_failed(half, binary.log, settings), std::back_inserter(failed));
  }
  return failed;
}

// A compiler that refuses the prelude alone says nothing about kernels.
[[noreturn]] void throw_not_compiled(const std::vector<KernelText>& kernels, const std::string& log,
                                     const Settings& settings) {
  const Binary prelude = compile_texts({}, settings);
  if (prelude.bytes.empty())
    throw InternalError(describe_failure("an empty file of CPU kernels", "failed-prelude.cpp",
                                         with_prelude(""), prelude.log, settings));
  const std::vector<FailedKernel> failed = find_failed(kernels, log, settings);
  STITCH_CHECK(!failed.empty(), "CPU kernels compile in parts but not together: " << log);
  std::string message;
  std::vector<std::string> names;
  for (const auto& [kernel, own_log] : failed) {
    message += describe_failure("the CPU kernel " + kernel.name, "failed-" + kernel.name + ".cpp",
                                with_prelude(kernel.text), own_log, settings);
    names.push_back(kernel.name);
  }
  throw NotCompiledError(message, std::move(names));
}

CacheRequest cuda_request(const KernelText& kernel, const std::string& arch, CudaOutput output,
                          const std::string& prelude) {
  return {output == CudaOutput::kPtx ? "ptx" : "cuda", arch,    "nvrtc " + nvrtc_version(),
          join(nvrtc_options(arch, output), " "),      prelude, kernel.name + "\n" + kernel.text};
}

// What NVRTC reads; lines of PTX count from where the kernel's own text begins.
std::string cuda_source(const KernelText& kernel, CudaOutput output) {
  return with_prelude((output == CudaOutput::kPtx ? "\n#line 1\n" : "") + kernel.text);
}

// All failures as one error, so that the caller hears of every kernel at once.
void throw_failures(const std::vector<std::optional<NotCompiledError>>& failures) {
  std::string message;
  std::vector<std::string> names;
  for (const std::optional<NotCompiledError>& failure : failures) {
    if (!failure) continue;
    message += (names.empty() ? "" : "\n") + std::string(failure->what());
    names.insert(names.end(), failure->kernels.begin(), failure->kernels.end());
  }
  if (!names.empty()) throw NotCompiledError(message, std::move(names));
}

}  // namespace

Binary compile_cuda(const KernelText& kernel, const std::string& arch, const Settings& settings) {
  ErrorContext context("while compiling kernel " + kernel.name + " for " + arch);
  const CudaOutput output = is_simulated(settings) ? CudaOutput::kPtx : CudaOutput::kCubin;
  const CacheRequest request = cuda_request(kernel, arch, output, prelude_hash());
  return process_cache(settings).get_or_compile(request, [&] {
    const std::string source = cuda_source(kernel, output);
    Binary binary = run_nvrtc(kernel.name, source, arch, output);
    if (!binary.bytes.empty()) return binary;
    throw NotCompiledError(
        describe_failure("the CUDA kernel " + kernel.name, "failed-" + kernel.name + ".cu", source,
                         binary.log, settings),
        {kernel.name});
  });
}

Binary compile_own_text(const KernelText& kernel, const std::string& arch, CudaOutput output) {
  const bool is_ours = kernel.text.find("STITCH_KERNEL(") != std::string::npos;
  const CacheRequest request = cuda_request(kernel, arch, output, is_ours ? prelude_hash() : "");
  return process_cache(default_settings()).get_or_compile(request, [&] {
    const std::string source = is_ours ? cuda_source(kernel, output) : kernel.text;
    Binary binary = run_nvrtc(kernel.name, source, arch, output);
    if (!binary.bytes.empty()) return binary;
    throw UserError("the CUDA text of " + kernel.name + " does not compile for " + arch + "\n" +
                    binary.log);
  });
}

Binary compile_host(const std::vector<KernelText>& given, const Settings& settings) {
  std::vector<KernelText> kernels;  // each once
  std::set<std::string> names;
  for (const KernelText& kernel : given)
    if (names.insert(kernel.name).second) kernels.push_back(kernel);
  ErrorContext context("while compiling " + std::to_string(kernels.size()) + " CPU kernels");
  const HostCompiler& compiler = find_host_compiler(settings.cxx);
  const std::string options = settings.cxx + " " + std::string(kHostFlags);
  const CacheRequest request = {"host",  compiler.features, compiler.version,
                                options, prelude_hash(),    join_texts(kernels)};
  return process_cache(settings).get_or_compile(request, [&] {
    Binary binary = compile_texts(kernels, settings);
    if (binary.bytes.empty()) throw_not_compiled(kernels, binary.log, settings);
    return binary;
  });
}

std::vector<Binary> compile_kernels(const std::vector<KernelSource>& sources,
                                    const std::string& arch, const Settings& settings, bool load) {
  if (sources.empty()) return {};
  if (!arch.empty()) {
    const Verdict available = nvrtc_available();
    if (!available && !load) {
      warn_once("nvrtc",
                "kernels are planned but not compiled: " + available.why + " " + available.remedy);
      return {};
    }
    return try_kernels(sources, arch, settings, /*needs_all=*/true);
  }
  if (!load) return {};
  std::vector<KernelText> texts;
  for (const KernelSource& source : sources) texts.push_back({source.name, source.text});
  return {compile_host(texts, settings)};
}

std::vector<Binary> try_kernels(const std::vector<KernelSource>& sources, const std::string& arch,
                                const Settings& settings, bool needs_all) {
  std::map<std::string, size_t> first;  // by text
  std::vector<size_t> distinct;
  for (size_t i = 0; i < sources.size(); ++i)
    if (first.emplace(sources[i].text, i).second) distinct.push_back(i);
  std::vector<Binary> binaries(sources.size());
  std::vector<std::optional<NotCompiledError>> failures(sources.size());
  std::atomic<size_t> next{0};
  std::vector<std::future<void>> workers;
  const size_t most = std::max(1u, std::thread::hardware_concurrency());
  const size_t threads = std::min(distinct.size(), most);
  for (size_t t = 0; t < threads; ++t) {
    workers.push_back(std::async(std::launch::async, [&] {
      for (size_t i = next++; i < distinct.size(); i = next++) {
        const KernelSource& source = sources[distinct[i]];
        check_stopping();
        try {
          binaries[distinct[i]] = compile_cuda({source.name, source.text}, arch, settings);
        } catch (const NotCompiledError& error) {
          failures[distinct[i]] = error;
        }
      }
    }));
  }
  for (std::future<void>& worker : workers) worker.get();
  if (needs_all) throw_failures(failures);
  for (size_t i = 0; i < sources.size(); ++i) binaries[i] = binaries[first[sources[i].text]];
  return binaries;
}

}  // namespace stitch
