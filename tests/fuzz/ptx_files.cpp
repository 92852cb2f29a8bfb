// Mutated PTX texts through load_module: it loads or throws UserError, whatever the text.  One of
// kLaunchEach seeds that load is launched, checked, with a small budget: it ends, with findings or
// without.
//
//     ptx_files [--runs 100000] [--first SEED] FILE.ptx ...
//
// Meant for builds with -fsanitize=address,undefined -fno-sanitize-recover=all.  A seed names one
// text: it is printed with what fails, and `--runs 1 --first SEED` gives it again.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "print_module.h"
#include "ptxsim/machine/simulate.h"

// Of the sanitizers; null without.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

using Random = std::mt19937_64;

// Longer texts lose lines of their middle: more runs find more than long texts do.
constexpr size_t kMostBytes = 10 << 10;
constexpr double kSlowSeconds = 5;
// What waits at barriers by itself, lane by lane, has a clock per lane: tens of us an instruction.
constexpr double kSlowLaunchSeconds = 60;
constexpr uint64_t kLaunchEach = 20;
constexpr uint64_t kBudget = 1 << 18;  // lane instructions of one order
constexpr uint64_t kBufferWords = 1 << 10;
constexpr size_t kMostBuffers = 12;

const char* const kTokens[] = {
    ";",
    ",",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "|",
    "!",
    "@",
    "<",
    ">",
    ":",
    "+",
    "-",
    "_",
    ".",
    "\"",
    "/*",
    "//",
    "\n",
    "0x",
    "0f",
    "0d7FF0",
    "4294967296",
    "-1",
    "99999999999999999999999",
    ".b8",
    ".f64",
    ".v4",
    ".align",
    ".param",
    ".reg",
    ".shared",
    ".extern",
    ".local",
    ".global",
    ".entry",
    ".func",
    ".loc",
    "call",
    "bra",
    "brx.idx",
    "ld.param.u64",
    "mov.b64",
    "%tid.x",
    "%r1",
    "%p1",
    "%rd1",
    ".branchtargets",
    "inlined_at",
    "generic",
    "[2147483647]",
    "<4294967295>",
};

size_t below(Random& random, size_t bound) { return bound == 0 ? 0 : random() % bound; }

// [start, end) of a random line, with its newline.
std::pair<size_t, size_t> random_line(Random& random, const std::string& text) {
  const size_t at = below(random, text.size());
  const size_t before = text.rfind('\n', at == 0 ? 0 : at - 1);
  const size_t start = before == text.npos ? 0 : before + 1;
  const size_t after = text.find('\n', start);
  return {start, after == text.npos ? text.size() : after + 1};
}

void flip_byte(Random& random, std::string& text) {
  if (!text.empty()) text[below(random, text.size())] ^= static_cast<char>(1u << below(random, 8));
}
void replace_byte(Random& random, std::string& text) {
  if (!text.empty()) text[below(random, text.size())] = static_cast<char>(random());
}
void delete_line(Random& random, std::string& text) {
  const auto [start, end] = random_line(random, text);
  text.erase(start, end - start);
}
void duplicate_line(Random& random, std::string& text) {
  const auto [start, end] = random_line(random, text);
  text.insert(start, text.substr(start, end - start));
}
void move_line(Random& random, std::string& text) {
  const auto [start, end] = random_line(random, text);
  const std::string line = text.substr(start, end - start);
  text.erase(start, end - start);
  text.insert(random_line(random, text).first, line);
}
void truncate(Random& random, std::string& text) { text.resize(below(random, text.size() + 1)); }
void insert_token(Random& random, std::string& text) {
  text.insert(below(random, text.size() + 1), kTokens[below(random, std::size(kTokens))]);
}
void delete_bytes(Random& random, std::string& text) {
  text.erase(below(random, text.size() + 1), 1 + below(random, 8));
}
// One word of the text takes the place of another.
void swap_words(Random& random, std::string& text) {
  const auto word = [&] {
    const char* const ends = " \t\n,;[]{}()";
    size_t start = text.find_first_of(ends, below(random, text.size()));
    if (start == text.npos) start = 0;
    start = std::min(text.find_first_not_of(ends, start), text.size());
    return std::pair(start, std::min(text.find_first_of(ends, start), text.size()));
  };
  const auto [from, from_end] = word();
  const std::string taken = text.substr(from, from_end - from);
  const auto [to, to_end] = word();
  text.replace(to, to_end - to, taken);
}

using Mutation = void (*)(Random&, std::string&);
constexpr Mutation kMutations[] = {flip_byte,    replace_byte, delete_line, duplicate_line,
                                   move_line,    swap_words,   swap_words,  insert_token,
                                   delete_bytes, truncate};

std::string read_file(const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "ptx_files: cannot read %s\n", path);
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

// A long text without a run of lines in its middle.
void shorten(Random& random, std::string& text) {
  if (text.size() <= kMostBytes) return;
  const size_t spare = text.size() - kMostBytes;
  const size_t start = text.find('\n', 512 + below(random, kMostBytes / 2));
  const size_t end = text.find('\n', std::min(start + spare, text.size() - 1));
  if (start != text.npos && end != text.npos) text.erase(start, end - start);
}

std::string mutate(uint64_t seed, const std::vector<std::string>& corpus) {
  Random random(seed);
  std::string text = corpus[below(random, corpus.size())];
  shorten(random, text);
  const size_t count = below(random, 4) == 0 ? 1 + below(random, 30) : 1 + below(random, 2);
  for (size_t i = 0; i < count; ++i) {
    kMutations[below(random, std::size(kMutations))](random, text);
  }
  return text;
}

uint64_t current_seed = 0;
void print_seed() { std::fprintf(stderr, "ptx_files: seed %lu\n", current_seed); }

struct Counts {
  uint64_t loaded = 0;
  uint64_t refused = 0;
  uint64_t launched = 0;
  uint64_t accused = 0;
  uint64_t failed = 0;
};

using namespace stitch;
using namespace stitch::ptxsim;

// Parameters of eight bytes are pointers to buffers of random roles while there are buffers, all
// else is small numbers.
void fill_parameters(Random& random, std::vector<std::vector<uint64_t>>& buffers, Launch& launch) {
  launch.parameters.assign(launch.kernel->parameter_bytes, '\0');
  for (const Parameter& parameter : launch.kernel->parameters) {
    uint64_t value = below(random, 300);
    if (parameter.bytes == sizeof(value) && buffers.size() < kMostBuffers) {
      auto& words = buffers.emplace_back(kBufferWords, random());
      value = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(words.data()));
      launch.views.push_back({.name = parameter.name,
                              .address = value,
                              .bytes = kBufferWords * sizeof(uint64_t),
                              .element_bytes = 1u << below(random, 4),
                              .role = static_cast<View::Role>(below(random, 4))});
    }
    std::memcpy(launch.parameters.data() + parameter.offset, &value,
                std::min<size_t>(parameter.bytes, sizeof(value)));
  }
}

void launch(uint64_t seed, std::shared_ptr<const Module> decoded, Counts& counts) {
  Random random(seed);
  LoadedModule module = instantiate(std::move(decoded));
  for (const Function& kernel : module.module->functions) {
    if (!kernel.is_entry) continue;
    std::vector<std::vector<uint64_t>> buffers;
    Launch launch;
    launch.module = &module;
    launch.kernel = &kernel;
    launch.grid = {1 + static_cast<uint32_t>(below(random, 3)), 1, 1};
    launch.block = {1 + static_cast<uint32_t>(below(random, 300)), 1, 1};
    launch.dynamic_shared_bytes = static_cast<uint32_t>(below(random, 3)) << 11;
    launch.cooperative = below(random, 4) == 0;
    fill_parameters(random, buffers, launch);
    SimulationOptions options;
    options.orders = 2;
    options.seed = seed;
    options.budget = kBudget;
    const SimulationResult result = simulate(launch, Machine{}, options);
    ++counts.launched;
    if (!result.findings.all.empty()) ++counts.accused;
  }
}

// What a kernel that loads may still be refused for: an operation that the machine does not know,
// a launch that does not suit the kernel, a trap.
void launch_or_refuse(uint64_t seed, std::shared_ptr<const Module> module, Counts& counts) {
  try {
    launch(seed, std::move(module), counts);
  } catch (const UserError&) {
  }
}

void run(uint64_t seed, const std::string& text, Counts& counts) {
  try {
    const auto module = load_module(text);
    if (print_module(*module).empty()) throw InternalError("an empty print");
    ++counts.loaded;
    if (seed % kLaunchEach == 0) launch_or_refuse(seed, module, counts);
  } catch (const UserError& error) {
    ++counts.refused;
    if (std::strncmp(error.what(), "PTX ", 4) != 0) {
      std::fprintf(stderr, "seed %lu: no line: %s\n", seed, error.what());
      ++counts.failed;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "seed %lu: %s\n", seed, error.what());
    ++counts.failed;
  }
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t runs = 100'000;
  uint64_t first = 0;
  std::vector<std::string> corpus;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if ((argument == "--runs" || argument == "--first") && i + 1 < argc) {
      (argument == "--runs" ? runs : first) = std::strtoull(argv[++i], nullptr, 10);
    } else {
      corpus.push_back(read_file(argv[i]));
    }
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "usage: ptx_files [--runs N] [--first SEED] FILE.ptx ...\n");
    return 2;
  }
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(print_seed);
  Counts counts;
  for (uint64_t seed = first; seed < first + runs; ++seed) {
    current_seed = seed;
    const uint64_t launched = counts.launched;
    const auto start = std::chrono::steady_clock::now();
    run(seed, mutate(seed, corpus), counts);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (seconds.count() > (counts.launched > launched ? kSlowLaunchSeconds : kSlowSeconds)) {
      std::fprintf(stderr, "seed %lu: %.1f s\n", seed, seconds.count());
      ++counts.failed;
    }
  }
  std::printf(
      "{\"texts\": %lu, \"loaded\": %lu, \"refused\": %lu, \"launched\": %lu, "
      "\"accused\": %lu, \"failed\": %lu}\n",
      runs, counts.loaded, counts.refused, counts.launched, counts.accused, counts.failed);
  return counts.failed == 0 ? 0 : 1;
}
