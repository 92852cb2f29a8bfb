// One stage of the flow: timed, named in errors, dumped on request; none begins once the process
// ends.
//
//   Graph graph = run_stage("rewrite", log, [&] { return rewrite(imported); });
#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/stop.h"

namespace stitch {

struct StageTime {
  std::string name;
  double us = 0;
};

// What run_stage needs to know of one compilation.
struct StageLog {
  std::vector<StageTime> times;
  std::string subject;   // "graph3": starts the names of dump files
  std::string dump;      // stages to dump, "plan,schedule" or "all"; empty: none
  std::string dump_dir;  // where dumps go
};

// A stage that has run, and that `dump` names.
bool is_dumped(const StageLog& log, const std::string& stage);
// Writes `<dump_dir>/<subject>.<n>.<stage>.txt`, anew where it did so before; stage n.
void write_dump(const StageLog& log, const std::string& stage, const std::string& text);

template <class Noun>
concept Printable = requires(const Noun& noun) {
  { print(noun) } -> std::convertible_to<std::string>;
};

template <class Function>
std::invoke_result_t<Function> run_stage(const std::string& name, StageLog& log, Function&& fn) {
  using Noun = std::invoke_result_t<Function>;
  using Clock = std::chrono::steady_clock;
  check_stopping();
  ErrorContext context("while running stage " + name);
  const auto start = Clock::now();
  auto stop_clock = [&] {
    const std::chrono::duration<double, std::micro> elapsed = Clock::now() - start;
    log.times.push_back({name, elapsed.count()});
  };
  if constexpr (std::is_void_v<Noun>) {
    fn();
    stop_clock();
  } else {
    Noun noun = fn();
    stop_clock();
    if constexpr (Printable<Noun>) {
      if (is_dumped(log, name)) write_dump(log, name, print(noun));
    }
    return noun;
  }
}

}  // namespace stitch
