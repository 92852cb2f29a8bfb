// What a graph computes, element by element: the reference that rewrites must not change.
//
// Slow and plain.  Covers the ops that random graphs are made of; values are doubles, f32 results
// are rounded, 16-bit floats only by casts (ir/graph.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>
#include <vector>

#include "ir/graph.h"

namespace stitch {

struct ReferenceTensor {
  std::vector<int64_t> shape;
  std::vector<double> elements;  // row-major
};

namespace reference {

using Index = std::vector<int64_t>;

inline int64_t count(const Index& shape) {
  int64_t product = 1;
  for (int64_t extent : shape) product *= extent;
  return product;
}

inline int64_t flatten(const Index& index, const Index& shape) {
  int64_t flat = 0;
  for (size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + index[d];
  return flat;
}

inline Index unflatten(int64_t flat, const Index& shape) {
  Index index(shape.size());
  for (size_t d = shape.size(); d-- > 0; flat /= shape[d]) index[d] = flat % shape[d];
  return index;
}

inline double round_to_bf16(double x) {
  if (!std::isfinite(x) || x == 0) return x;
  const int unit = std::max(std::ilogb(x), -126) - 7;
  return std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
}

// The element of a broadcast operand that belongs to `index`, right aligned.
inline double broadcast_element(const ReferenceTensor& x, const Index& index) {
  Index own(x.shape.size());
  for (size_t d = 0; d < own.size(); ++d)
    own[d] = x.shape[d] == 1 ? 0 : index[index.size() - own.size() + d];
  return x.elements[flatten(own, x.shape)];
}

inline double apply_op(OpKind op, const std::vector<double>& x) {
  static const std::map<OpKind, std::function<double(const std::vector<double>&)>> functions = {
      {OpKind::k_neg, [](const auto& v) { return -v[0]; }},
      {OpKind::k_add, [](const auto& v) { return v[0] + v[1]; }},
      {OpKind::k_sub, [](const auto& v) { return v[0] - v[1]; }},
      {OpKind::k_mul, [](const auto& v) { return v[0] * v[1]; }},
      {OpKind::k_maximum,
       [](const auto& v) { return std::isnan(v[0]) ? v[0] : std::fmax(v[0], v[1]); }},
      {OpKind::k_div, [](const auto& v) { return v[0] / v[1]; }},
      {OpKind::k_pow, [](const auto& v) { return std::pow(v[0], v[1]); }},
      {OpKind::k_lt, [](const auto& v) { return static_cast<double>(v[0] < v[1]); }},
      {OpKind::k_ge, [](const auto& v) { return static_cast<double>(v[0] >= v[1]); }},
      {OpKind::k_eq, [](const auto& v) { return static_cast<double>(v[0] == v[1]); }},
      {OpKind::k_ne, [](const auto& v) { return static_cast<double>(v[0] != v[1]); }},
      {OpKind::k_logical_not, [](const auto& v) { return static_cast<double>(v[0] == 0); }},
      {OpKind::k_select, [](const auto& v) { return v[0] != 0 ? v[1] : v[2]; }},
      {OpKind::k_cast, [](const auto& v) { return v[0]; }},
  };
  return functions.at(op)(x);
}

inline double round_result(const Node& node, double x) {
  if (node.op == OpKind::k_cast && node.type.dtype == DType::kBF16)
    return round_to_bf16(static_cast<float>(x));
  return node.type.dtype == DType::kF64 ? x : static_cast<float>(x);
}

struct Interpreter {
  const Graph& graph;
  std::vector<int64_t> symbols;
  std::vector<ReferenceTensor> values;

  int64_t size(const Dim& dim) const { return evaluate(dim, symbols); }

  double read_pointwise(const Node& node, const Index& index) const {
    std::vector<double> x;
    for (NodeId input : node.inputs) x.push_back(broadcast_element(values[input.index()], index));
    return round_result(node, apply_op(node.op, x));
  }

  double read_reduction(const Node& node, const Index& kept) const {
    const ReferenceTensor& x = values[node.inputs[0].index()];
    double result = node.op == OpKind::k_sum ? 0 : -INFINITY;
    for (int64_t flat = 0; flat < count(x.shape); ++flat) {
      const Index index = unflatten(flat, x.shape);
      Index rest;
      for (size_t d = 0; d < index.size(); ++d)
        if (std::find(node.ints.begin(), node.ints.end(), static_cast<int64_t>(d)) ==
            node.ints.end())
          rest.push_back(index[d]);
      if (rest != kept) continue;
      const double element = x.elements[flat];
      result = node.op == OpKind::k_sum ? result + element : std::fmax(result, element);
    }
    return round_result(node, result);
  }

  double read_view(const Node& node, Index index, const Index& shape) const {
    const ReferenceTensor& x = values[node.inputs[0].index()];
    if (node.op == OpKind::k_reshape) return x.elements[flatten(index, shape)];
    if (node.op == OpKind::k_expand) return broadcast_element(x, index);
    Index source = index;
    if (node.op == OpKind::k_permute)
      for (size_t d = 0; d < index.size(); ++d) source[node.ints[d]] = index[d];
    if (node.op == OpKind::k_flip)
      for (int64_t axis : node.ints) source[axis] = shape[axis] - 1 - index[axis];
    if (node.op == OpKind::k_slice)
      source[node.ints[0]] = size(node.dims[0]) + size(node.dims[1]) * index[node.ints[0]];
    return x.elements[flatten(source, x.shape)];
  }

  double read_cat(const Node& node, Index index) const {
    int64_t& position = index[node.ints[0]];
    for (NodeId part : node.inputs) {
      const ReferenceTensor& x = values[part.index()];
      if (position < x.shape[node.ints[0]]) return x.elements[flatten(index, x.shape)];
      position -= x.shape[node.ints[0]];
    }
    throw std::logic_error("cat is shorter than its type");
  }

  double read(const Node& node, const Index& index, const Index& shape) const {
    if (node.op == OpKind::k_full)
      return node.dims.empty() ? node.number + static_cast<double>(node.integer)
                               : static_cast<double>(size(node.dims[0]));
    if (node.op == OpKind::k_cat) return read_cat(node, index);
    if (family(node) == Family::kReduce) return read_reduction(node, index);
    if (family(node) == Family::kView) return read_view(node, index, shape);
    return read_pointwise(node, index);
  }

  void run(const std::vector<ReferenceTensor>& inputs) {
    for (const Node& node : graph.nodes) {
      if (node.op == OpKind::k_input) {
        values.push_back(inputs[node.integer]);
        continue;
      }
      ReferenceTensor value;
      for (const Dim& extent : node.type.shape) value.shape.push_back(size(extent));
      for (int64_t flat = 0; flat < count(value.shape); ++flat)
        value.elements.push_back(read(node, unflatten(flat, value.shape), value.shape));
      values.push_back(std::move(value));
    }
  }
};

}  // namespace reference

// Values of all tensor outputs.
inline std::vector<ReferenceTensor> interpret(const Graph& graph,
                                              const std::vector<ReferenceTensor>& inputs,
                                              const std::vector<int64_t>& integers) {
  reference::Interpreter interpreter{graph, graph.symbols.evaluate(integers), {}};
  interpreter.run(inputs);
  std::vector<ReferenceTensor> outputs;
  for (const GraphOutput& output : graph.outputs)
    outputs.push_back(interpreter.values[output.node.index()]);
  return outputs;
}

}  // namespace stitch
