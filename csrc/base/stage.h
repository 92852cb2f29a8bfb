// One stage of the flow: timed, named in errors, dumped if wanted; none begins as the process ends.
//
//   run_stage("rewrite", log, [&] { graph = rewrite(imported); });
#pragma once

#include <functional>
#include <string>
#include <vector>

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

// Runs one stage.  StoppedError once the process ends.
void run_stage(const std::string& name, StageLog& log, const std::function<void()>& work);

// Of a stage that has run and that `dump` names: writes `<dump_dir>/<subject>.<n>.<stage>.txt`,
// anew where it did so before; stage n.
void write_dump(const StageLog& log, const std::string& stage,
                const std::function<std::string()>& print);

}  // namespace stitch
