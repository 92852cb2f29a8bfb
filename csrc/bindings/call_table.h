// CallTable: the library calls of one graph, as templates that are filled with a call's tensors.
//
// Rows are either an operator, run through the dispatcher without the GIL, or any Python callable
// (higher-order operators), run with it.  A table never changes once its graph is compiled.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <pybind11/pybind11.h>

#include "runtime/program.h"

namespace stitch {

namespace py = pybind11;

// How one argument of an operator is made.
struct CallArgument {
  enum class Kind {
    kConstant,  // `constant`
    kTensor,    // operand `index` of the step
    kInteger,   // `integer`, by the symbols of the call
    kObject,    // `CallTable::objects[index]`: an argument of the call that is no tensor; where
                // add_call is given one, `index` is still its position
    kList,      // `elements`, as a list of `type`
  };
  Kind kind = Kind::kConstant;
  c10::IValue constant = {};
  int index = -1;
  Dim integer = {};
  std::vector<CallArgument> elements = {};
  c10::TypePtr type = {};  // kInteger, kObject: of the parameter; kList: of its elements
};

struct OperatorCall {
  c10::OperatorHandle op;
  std::vector<CallArgument> arguments;
  // Takes the result too: used on the CPU, where memory from the pool costs no page faults.
  std::optional<c10::OperatorHandle> out_variant;
  bool detaches = false;  // its kernel takes no operand that requires gradients
};

// Arguments as Python objects, with CallArguments where the call's own values go.
struct PythonCall {
  py::object callable;
  py::tuple arguments;
  py::dict keywords;
};

struct CallRow {
  std::string name;  // "aten.mm.default"
  std::variant<OperatorCall, PythonCall> call;
};

struct CallTable {
  CallTable() = default;
  CallTable(const CallTable&) = delete;
  CallTable& operator=(const CallTable&) = delete;
  ~CallTable();  // takes the GIL

  std::vector<CallRow> rows;
  std::vector<int> objects;  // positions of the call's arguments that rows take as they are
  py::list given;            // what add_call was given for each row: the table's form when pickled

  // What stands beside arguments and results.  Appended to the arguments of a call: tensors that
  // the graph holds, what functions make of the arguments, of a position the number there as a
  // tensor, and of a device a word that its generator draws.
  py::list extras;
  py::list number_outputs;  // positions of results that are numbers, here tensors
  py::list views;           // (position, rank, dtype) of results whose place in what stands there
                            // follows all results
};

// The lists, tuples and dicts that `item` is made of anew, with what `replace` answers for it and
// for what they hold; null: it stays.
py::object map_nested(py::handle item, const std::function<py::object(py::handle)>& replace);

// Python's object for it; error_already_set where none can be made.
py::object wrap_tensor(const at::Tensor& tensor);

// The row of a call that the core makes, read off its operator's schema.
CallRow make_row(const Node& call);

// The `ints` of its library node (ops/ops.def), its effect as the operator's schema says: dropout
// that is off draws no random numbers, what has no schema may do anything, and one that is neither
// torch's nor ours is believed what it says of memory, but may communicate or print.
std::vector<int64_t> describe_call(const CallRow& row);

// What one call gives to a row.
struct CallValues {
  const std::vector<at::Tensor>& operands;
  const std::vector<int64_t>& symbols;
  const std::vector<py::object>& objects;
  at::Tensor out;  // defined: the result goes here
};

// Every leaf of the result counts, lists and tuples flattened; what is no tensor is undefined.
std::vector<at::Tensor> run_call(const CallRow& row, const CallValues& values);

}  // namespace stitch
