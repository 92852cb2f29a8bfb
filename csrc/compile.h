// The spine: Graph in, Program out.
#pragma once

#include "config/settings.h"
#include "report.h"
#include "runtime/program.h"

namespace stitch {

struct CompileRequest {
  Graph graph;
  Settings settings;
  std::string target;      // "cpu", "h200", ...: row of the DeviceSpec table
  bool load = true;        // false: plan and compile only (explain), there is no Program
  int worker_threads = 1;  // of the host's pool: blocks are cut for them
};

struct CompileResult {
  std::shared_ptr<const Program> program;
  Report report;
};

// Errors: UnsupportedError when no plan exists for a part of the graph, KernelError for a fault
// inside single kernels, InternalError for our other bugs; all carry the stage and the user's op.
CompileResult compile(const CompileRequest& request);

// The text of one stage: "graph", "rewrite", "plan", "schedule" or "emit"; UserError for another.
// "times": of each stage up to the text of kernels, in microseconds.
std::string show_stage(const CompileRequest& request, const std::string& stage);

}  // namespace stitch
