#include "jit/compile_kernels.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/stop.h"
#include "jit/nvrtc.h"

namespace stitch {
namespace {

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

std::vector<Binary> compile_each(const std::vector<KernelSource>& sources, const std::string& arch,
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

}  // namespace

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
    return compile_each(sources, arch, settings, true);
  }
  if (!load) return {};
  std::vector<KernelText> texts;
  for (const KernelSource& source : sources) texts.push_back({source.name, source.text});
  return {compile_host(texts, settings)};
}

std::vector<Binary> try_kernels(const std::vector<KernelSource>& sources, const std::string& arch,
                                const Settings& settings) {
  return compile_each(sources, arch, settings, false);
}

}  // namespace stitch
