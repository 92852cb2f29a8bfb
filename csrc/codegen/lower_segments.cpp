// ValueLowering's loops over segments: rows that combine the elements which an order puts there.
#include <algorithm>

#include "codegen/lower_values.h"

namespace stitch {

// The outermost scope in which all that a segment depends on is known.
int ValueLowering::depth_of(const Segment& segment) {
  int depth = values[segment.guard].depth;
  for (Handle known : {segment.initial, segment.first, segment.last})
    depth = std::max(depth, values[known].depth);
  for (VarId var : vars.leaves_of(segment.index)) {
    const IndexVar& leaf = vars[var];
    const bool is_value = leaf.kind == IndexVar::Kind::kValue;
    depth = std::max(depth, is_value ? values[leaf.payload].depth
                                     : scopes_.axis_depth(scopes_.axis_of_atom(leaf.payload)));
  }
  return depth;
}

Handle ValueLowering::check_end(const Segment& segment, int depth) {
  lowered_.may_fail = true;
  std::string end = "check_segment(" + values[segment.last].text + ", error)";
  if (segment.guard != 0)
    end = "(" + values[segment.guard].text + " ? " + end + " : " + values[segment.first].text + ")";
  return let("i64", end, depth);
}

Handle ValueLowering::open_segment(Handle first, Handle end, int depth) {
  const std::string position = scopes_.fresh();
  Statement loop{Statement::Kind::kLoop, "i64", position, values[first].text};
  loop.bound = values[end].text;
  segments_.push_back({std::move(loop), depth});
  scopes_.open.push_back({kSegmentBlock, {}, {}});
  return add({position, scopes_.depth()});
}

void ValueLowering::close_segment() {
  OpenSegment segment = std::move(segments_.back());
  segments_.pop_back();
  close_scope();
  segment.loop.body = std::move(scopes_.open.back().statements);
  scopes_.open.pop_back();
  scopes_.append(segment.depth, std::move(segment.loop));
}

IndexExpr ValueLowering::begin_segment(const Segment& segment) {
  const int depth = depth_of(segment);
  const Handle end = check_end(segment, depth);
  results_.push_back(scopes_.fresh());
  scopes_.append(depth, Statement::var(register_type(segment.node), results_.back(),
                                       values[segment.initial].text));
  const Handle position = open_segment(segment.first, end, depth);
  const NodeId order = graph_[segment.node].inputs[2];
  return index_of(vars.value(position, graph_[order].type.shape[0]));
}

Handle ValueLowering::end_segment(const Segment& segment, Handle element) {
  const std::string result = std::move(results_.back());
  results_.pop_back();
  const std::string combined_text = std::string(info(graph_[segment.node]).function) + "::apply(" +
                                    result + ", " + values[element].text + ")";
  scopes_.append(scopes_.depth(), Statement::assign(result, combined_text));
  const int depth = segments_.back().depth;
  close_segment();
  return add({result, depth});
}

}  // namespace stitch
