// Dim, TensorType, NodeId, Graph, CallTable and Builder as Python sees them.
#include <pybind11/operators.h>
#include <torch/csrc/utils/pybind.h>

#include "base/archive.h"
#include "bindings/python_types.h"
#include "bindings/tensors.h"
#include "ir/builder.h"

namespace stitch {
namespace {

using namespace py::literals;

template <class T>
auto kept_as_bytes() {
  return py::pickle([](const T& value) { return py::bytes(to_bytes(value)); },
                    [](const py::bytes& kept) {
                      T value;
                      if (!from_bytes(std::string_view(kept), value))
                        throw UserError("found a pickle that is not of this build");
                      return value;
                    });
}

void bind_dim(py::module_& module) {
  py::class_<Dim>(module, "Dim", "A size: an integer polynomial over the graph's symbols.")
      .def(py::init<int64_t>())
      .def(py::self + py::self)
      .def(py::self - py::self)
      .def(py::self * py::self)
      .def(py::self == py::self)
      .def("__radd__", [](const Dim& a, int64_t b) { return b + a; })
      .def("__rsub__", [](const Dim& a, int64_t b) { return b - a; })
      .def("__rmul__", [](const Dim& a, int64_t b) { return b * a; })
      .def("__hash__", [](const Dim& dim) { return py::hash(py::str(to_string(dim))); })
      .def("__repr__", [](const Dim& dim) { return to_string(dim); })
      .def(kept_as_bytes<Dim>())
      .def("value", &Dim::value);
  py::implicitly_convertible<py::int_, Dim>();
}

void bind_names(py::module_& module) {  // which stand for these in Python
  py::class_<DType>(module, "DType").def(py::init(&dtype_from_name));
  py::dict dtypes;  // of torch: the name of each that kernels have
  for (int i = 0; i < static_cast<int>(DType::kOpaque); ++i) {
    const auto dtype = static_cast<DType>(i);
    dtypes[py::cast(to_scalar_type(dtype))] = info(dtype).name;
  }
  module.attr("dtypes") = dtypes;
  py::implicitly_convertible<py::str, DType>();
  py::class_<OpKind>(module, "OpKind").def(py::init(&op_from_name));
  py::implicitly_convertible<py::str, OpKind>();
}

void bind_nouns(py::module_& module) {
  py::class_<TensorType>(module, "TensorType")
      .def(py::init<DType, DimList, DimList>())
      .def_property_readonly("dtype", [](const TensorType& type) { return info(type.dtype).name; })
      .def_readonly("shape", &TensorType::shape)
      .def_readonly("strides", &TensorType::strides)
      .def("__repr__", [](const TensorType& type) { return to_string(type); });
  py::class_<NodeId>(module, "NodeId")
      .def("__hash__", &NodeId::value)
      .def("__eq__", [](NodeId a, NodeId b) { return a == b; })
      .def("__repr__", [](NodeId id) { return "%" + std::to_string(id.value()); });
  py::class_<Graph>(module, "Graph")
      .def("__str__", [](const Graph& graph) { return to_string(graph); })
      .def(kept_as_bytes<Graph>())
      .def("__len__", &Graph::size);
}

// Those that Python gives to add_call.
void bind_placeholders(py::module_& module) {
  using Kind = CallArgument::Kind;
  const auto make = [](Kind kind, int index) { return CallArgument{.kind = kind, .index = index}; };
  module.def("Operand", [make](int position) { return make(Kind::kTensor, position); });
  module.def("Argument", [make](int position) { return make(Kind::kObject, position); });
  py::class_<CallArgument>(module, "CallPlaceholder")
      .def(py::pickle(
          [](const CallArgument& given) { return std::pair(int(given.kind), given.index); },
          [make](std::pair<int, int> kept) { return make(Kind(kept.first), kept.second); }));
}

void bind_calls(py::module_& module) {
  bind_placeholders(module);
  module.def("eager_refuses", &eager_refuses);
  module.def("decompose", &decompose);
  module.def("elementwise_ops", &elementwise_ops);
  module.def("part_of", &part_of);
  py::class_<CallTable, std::shared_ptr<CallTable>>(module, "CallTable")
      .def(py::init<>())
      .def("add_call", &add_call, "name"_a, "function"_a, "args"_a, "kwargs"_a)
      .def(py::pickle(
          [](const CallTable& table) {
            return py::make_tuple(table.given, table.extras, table.number_outputs, table.views);
          },
          [](const py::tuple& kept) {
            auto table = std::make_shared<CallTable>();
            for (const py::handle row : kept[0]) py::cast(table).attr("add_call")(*row);
            table->extras = kept[1];
            table->number_outputs = kept[2];
            table->views = kept[3];
            return table;
          }))
      .def_readonly("given", &CallTable::given)
      .def_readonly("extras", &CallTable::extras)
      .def_readonly("number_outputs", &CallTable::number_outputs)
      .def_readonly("views", &CallTable::views)
      .def("__len__", [](const CallTable& table) { return table.rows.size(); });
}

using BuilderClass = py::class_<Builder>;
using OutputKind = GraphOutput::Kind;

void bind_graph_ends(BuilderClass& builder) {
  builder.def(py::init<>())
      .def("set_origin",
           [](Builder& b, std::string op, std::string location, int position) {
             b.set_origin({std::move(op), std::move(location), position});
           })
      .def(
          "symbol",
          [](Builder& b, int position, int64_t hint, bool is_positive, int64_t divisor) {
            std::vector<int>& positions = b.graph().integer_positions;
            positions.push_back(position);
            const int input = static_cast<int>(positions.size()) - 1;
            SymbolTable& symbols = b.graph().symbols;
            return symbols.as_multiple(symbols.add_input(input, hint, is_positive), divisor);
          },
          "position"_a, "hint"_a, "is_positive"_a, "divisor"_a = 1)
      .def("late_symbol",
           [](Builder& b, int row, int result, int dimension, int64_t hint) {
             return add_late(b.graph().symbols, row, result, dimension, hint);
           })
      .def("opaque",
           [](Builder& b, const std::string& kind, const Dim& left, const Dim& right) {
             return b.graph().symbols.add_opaque(symbol_kind(kind), left, right);
           })
      .def("may_be_empty",
           [](Builder& b, const Dim& dim) { return may_be_empty(dim, b.graph().symbols); })
      .def("hint", [](Builder& b, const Dim& dim) { return b.graph().symbols.hint(dim); })
      .def("input",
           [](Builder& b, std::string name, TensorType type, int position) {
             b.graph().input_positions.push_back(position);
             return b.input(std::move(name), std::move(type));
           })
      .def("output_tensor",
           [](Builder& b, NodeId node) { b.output({OutputKind::kTensor, node, 0}); })
      .def("output_final",
           [](Builder& b, NodeId input) { b.output({OutputKind::kTensor, input, 0, true}); })
      .def("output_integer",
           [](Builder& b, const Dim& integer) { b.output({OutputKind::kInteger, {}, integer}); })
      .def("output_none", [](Builder& b) { b.output({OutputKind::kNone, {}, 0}); })
      .def("mutate", &Builder::mutate)
      .def("type", [](const Builder& b, NodeId node) { return b[node].type; })
      .def("base", [](Builder& b, NodeId node) { return storage_base(b.graph(), node); })
      .def("finish", [](Builder& b, int argument_count) {
        b.graph().argument_count = argument_count;
        return b.finish();
      });
}

void bind_ops(BuilderClass& builder) {
  builder.def("full", &Builder::full)
      .def("size_value", &Builder::size_value)
      .def("iota", &Builder::iota)
      .def("random", &Builder::random, "seed"_a, "stream"_a, "shape"_a, "coarse"_a = false)
      .def("assert_true", &Builder::assert_true)
      .def("pointwise",
           [](Builder& b, OpKind op, const NodeList& inputs) { return b.pointwise(op, inputs); })
      .def("cast", &Builder::cast, "x"_a, "dtype"_a, "rounds"_a = true)
      .def("reduce", &Builder::reduce)
      .def("reshape", &Builder::reshape)
      .def("permute", &Builder::permute)
      .def("expand",
           [](Builder& b, NodeId x, DimList shape) {
             const DimList& given = b[x].type.shape;
             if (!broadcasts_to(given, shape))  // as eager says
               throw UnsupportedError(to_string(given) + " may not be " + to_string(shape));
             return given == shape ? x : b.expand(x, std::move(shape));
           })
      .def("slice", &Builder::slice)
      .def("flip", &Builder::flip)
      .def("cat", &Builder::cat)
      .def("pad", &Builder::pad)
      .def("index", &Builder::index, "x"_a, "indices"_a, "dims"_a, "from_end"_a = true)
      .def("gather", &Builder::gather, "x"_a, "index"_a, "dim"_a, "from_end"_a = true)
      .def("slice_scatter", py::overload_cast<NodeId, NodeId, int64_t, const Dim&, const Dim&>(
                                &Builder::slice_scatter))
      .def("put",
           [](Builder& b, OpKind op, const NodeList& inputs, std::vector<int64_t> ints,
              const CallTable& calls, int64_t call, TensorType type) {
             const CallRow& row = calls.rows.at(static_cast<size_t>(call));
             std::ranges::copy(describe_call(row), std::back_inserter(ints));
             return b.put(op, inputs, std::move(ints), row.name, call, std::move(type));
           })
      .def("put_masked", &Builder::put_masked)
      .def("max_of_windows", &Builder::max_of_windows)
      .def("with_strides", &Builder::with_strides)
      .def("with_layout", &Builder::with_layout)
      .def("library", [](Builder& b, const CallTable& calls, int64_t call, const NodeList& inputs,
                         const std::vector<TensorType>& results, bool several, DimList sizes) {
        const CallRow& row = calls.rows.at(static_cast<size_t>(call));
        Node node{.inputs = inputs, .ints = describe_call(row), .dims = std::move(sizes)};
        node.integer = call;
        node.name = row.name;
        return b.library(std::move(node), results, several);
      });
}

}  // namespace

void bind_builder(py::module_& module) {
  bind_dim(module);
  bind_names(module);
  bind_nouns(module);
  bind_calls(module);
  BuilderClass builder(module, "Builder");
  bind_graph_ends(builder);
  bind_ops(builder);
}

}  // namespace stitch
