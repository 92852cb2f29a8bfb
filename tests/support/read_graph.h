// Graphs of tests: the text of ir/parse_graph.h, and short forms for single ops.
//
//   %m = sum(%f){axes=[1], keepdim}
//
//   reductions  axes=[..] keepdim           (no axes: all; sum and prod of integers give i64)
//   flip        axes=[..]
//   permute     order=[..]
//   reshape, expand, pad    shape=[..]      (pad also before=[..] value=..)
//   slice       dim= start= count= step=    (start 0, step 1)
//   slice_scatter dim= start= step=         cat, gather, segment_*  dim=   index  dims_of=[..]
//   iota        count= start= step=         full   value=..  size=..
//   layout      strides=[..]
#pragma once

#include "support/parse_graph.h"

namespace stitch {

// UserError as parse_graph has it.
Graph read_graph(std::string_view text);

}  // namespace stitch
