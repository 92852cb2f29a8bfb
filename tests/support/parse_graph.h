// Graph from text: the inverse of ir/print_graph.cpp, and a comfortable form for tests.
//
//   symbols s0 = input(0) hint 8, s1 = floordiv(s0,2) hint 4
//   arguments 3 tensors [0,2] integers [1]
//   %x = input : bf16[s0,768]                  # a node; what follows '#' is its origin
//   %f = cast(%x) : f32
//   %m = sum(%f){ints=[1]} : f32[s0]
//   %d = mul(%m, div(%m, 768))                 # calls nest, numbers are `full` constants
//   mutate %x <- %y
//   outputs (%d, int s0*2, none, final %x)     # final: an input as the call leaves it
//
// Optional: the `symbols` line (symbols in use are then input(i) hint 64), the `arguments` line
// (tensors first, then integers), types of what the operands determine (`: f32` gives the dtype
// alone, a full type is checked), strides that are contiguous.  Lines that begin with '#' are
// comments.  A number takes the dtype of the first tensor beside it.
//
// Attributes: ints dims number integer name, as in Node, and what a shorthand adds.
// Nodes stay as written: equal ones are not merged, dead ones not removed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "support/text_reader.h"

namespace stitch {

// A node while its line is being read.
struct NodeDraft {
  Node node;
  std::vector<TensorType> operands;
  std::map<std::string, std::string> attributes;  // values as text; "" for a flag
  std::optional<WrittenType> written;
  bool keepdim = false;  // a reduction is followed by a reshape to kept_shape
  std::vector<Dim> kept_shape;
};

// Reads attributes by name and forgets them; what is left at the end is an error.
struct AttributeSource {
  NodeDraft& draft;
  int& symbol_count;
  std::vector<std::string> known;  // names that were asked for

  std::optional<std::string> take(const std::string& name);
  std::optional<std::vector<Dim>> take_dims(const std::string& name);
  std::optional<std::vector<int64_t>> take_ints(const std::string& name);
};

// Reads attributes of its own, behind those of Node; tests have one.
using Shorthand = void (*)(AttributeSource& source);

// Positions of the arguments where nothing says otherwise: tensors first, then integers.
void number_arguments(Graph& graph);

// UserError with the line's number for text that is no graph.
Graph parse_graph(std::string_view text, Shorthand shorthand = nullptr);

}  // namespace stitch
