// Report: what the compiler did to one graph, for explain, counters and the yardstick.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stitch {

struct ReportedOp {
  std::string op, location;  // "aten.add.Tensor", "model.py:31"
  friend bool operator==(const ReportedOp&, const ReportedOp&) = default;
};

// A value that is read once and stays on chip until the last phase that uses it.
struct ReportedPersistent {
  std::string value, home;  // "input %0", "registers across the grid barrier"
  int64_t bytes = 0;        // that are not read again: at least, those of one pass
  int registers = 0;        // of each thread
  int shared_bytes = 0;     // of each block
};

// A load that goes through a tile on chip, to be read across.
struct ReportedTile {
  std::string value;
  int64_t rows = 0, bytes = 0;  // of each block's tile
};

// What the clock says of a kernel.
struct ReportedTime {
  double us = -1;                        // without launches; negative: nobody asked
  std::string bound;                     // "memory", "issue", a pipe, "latency" ... (docs/clock.md)
  double instructions_per_16_bytes = 0;  // of threads, by what they ask for
  double instructions = 0;               // of all threads and launches
  int64_t resident_threads = 0;          // of a multiprocessor
  std::string limited_by;  // why no more are: "registers", "shared memory", "the grid"
  int launches = 0;
  std::vector<std::string> assumptions = {};
};

struct ReportedKernel {
  std::string name, text;
  std::string policy;  // whose plan it is part of (plan/policies.cpp)
  std::vector<ReportedOp> ops = {};
  std::vector<std::pair<std::string, std::string>> schemes = {};  // "exp %3", "local"
  std::vector<ReportedPersistent> persistent = {};
  std::vector<ReportedTile> tiles = {};
  int64_t bytes_read = 0, bytes_written = 0;  // each distinct buffer once
  int64_t bytes_planned = 0;                  // elements accessed, once per buffer and pass
  int64_t grid = 0;
  int block = 1, shared_bytes = 0, registers = -1, spill_bytes = 0, stack_bytes = 0;
  double predicted_us = 0, compile_ms = 0;
  bool from_cache = false;
  ReportedTime time = {};
};

struct ReportedCall {
  std::string name;  // "aten.mm.default"
  std::string location;
  int64_t bytes_read = 0, bytes_written = 0;
};

struct ReportedCut {
  std::string edge, words, remedy;
  int rule = 0;
};

struct StageTime {
  std::string name;
  double us = 0;
};

struct Report {
  std::string target, device = {};  // device: what a spec that nobody measured is derived from
  std::vector<ReportedKernel> kernels = {};
  std::vector<ReportedCall> library_calls = {};
  std::vector<ReportedCut> cuts = {};
  std::vector<StageTime> stages = {};
  std::vector<std::string> assumed_sizes = {};  // of calls: "s0 <= 3072", "s1 = s2*8"
  int64_t bytes_touched = 0, bytes_planned = 0, bytes_unfused = 0, bytes_compulsory = 0;
  int stitched_ops = 0;
  int graphs = 0;  // that were added

  int graph_breaks() const { return graphs > 0 ? graphs - 1 : 0; }
  void add(const Report& graph);
};

std::string to_string(const Report& report);  // explain's table

}  // namespace stitch
