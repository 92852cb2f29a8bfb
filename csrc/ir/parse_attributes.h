// Attributes of a node in graph text, and their short forms (ir/parse_graph.h lists them).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/text_reader.h"

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

// {key=value, flag}, or nothing.
std::map<std::string, std::string> read_attributes(TextReader& reader);

// Fills node.ints, dims, number, integer, name and the declared type from what was written.
// UserError for an attribute that the op does not have.
void complete_draft(NodeDraft& draft, int& symbol_count);

}  // namespace stitch
