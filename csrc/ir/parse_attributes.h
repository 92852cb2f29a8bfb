// Attributes of a node in graph text.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/parse_graph.h"
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

// Reads attributes by name and forgets them; what is left at the end is an error.
struct AttributeSource {
  NodeDraft& draft;
  int& symbol_count;
  std::vector<std::string> known;  // names that were asked for

  std::optional<std::string> take(const std::string& name);
  std::optional<std::vector<Dim>> take_dims(const std::string& name);
  std::optional<std::vector<int64_t>> take_ints(const std::string& name);
};

// {key=value, flag}, or nothing.
std::map<std::string, std::string> read_attributes(TextReader& reader);

// Fills node.ints, dims, number, integer, name and the declared type from what was written, then
// what `shorthand` reads.  UserError for an attribute that the op does not have.
void complete_draft(NodeDraft& draft, int& symbol_count, Shorthand shorthand);

}  // namespace stitch
