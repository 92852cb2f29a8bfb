#include "bindings/call_table.h"

#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include "host_ops/host_ops.h"

namespace stitch {
namespace {

c10::IValue make_value(const CallArgument& argument, const CallValues& values) {
  using enum CallArgument::Kind;
  if (argument.kind == kConstant) return argument.constant;
  if (argument.kind == kTensor) return values.operands[argument.index];
  if (argument.kind == kObject) {
    py::gil_scoped_acquire gil;
    return torch::jit::toIValue(values.objects[argument.index], argument.type);
  }
  if (argument.kind == kList) {
    c10::impl::GenericList list(argument.type);
    list.reserve(argument.elements.size());
    for (const CallArgument& one : argument.elements) list.push_back(make_value(one, values));
    return list;
  }
  const int64_t integer = evaluate(argument.integer, values.symbols);
  if (argument.type->kind() == c10::TypeKind::FloatType) return static_cast<double>(integer);
  if (argument.type->kind() == c10::TypeKind::BoolType) return integer != 0;
  return integer;
}

void flatten(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor())
    tensors.push_back(value.toTensor());
  else if (value.isScalar())
    tensors.push_back(at::scalar_tensor(value.toScalar(), value.toScalar().type()));
  else if (value.isList())
    for (const c10::IValue& element : value.toListRef()) flatten(element, tensors);
  else if (value.isTuple())
    for (const c10::IValue& element : value.toTupleRef().elements()) flatten(element, tensors);
  else
    tensors.emplace_back();
}

std::vector<at::Tensor> run(const OperatorCall& call, const CallValues& values) {
  // Gradients are the business of the graph, so results carry no history.
  at::AutoDispatchBelowADInplaceOrView guard;
  torch::jit::Stack stack;
  stack.reserve(call.arguments.size() + 1);
  for (const CallArgument& argument : call.arguments) stack.push_back(make_value(argument, values));
  if (call.detaches)
    for (c10::IValue& value : stack)
      if (value.isTensor()) value = value.toTensor().detach();
  if (values.out.defined()) {
    if (multiply_matrices(stack, values.out)) return {values.out};
    stack.emplace_back(values.out);
    call.out_variant->callBoxed(&stack);
  } else {
    call.op.callBoxed(&stack);
  }
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : stack) flatten(value, tensors);
  return tensors;
}

py::object fill(py::handle item, const CallValues& values) {
  return map_nested(item, [&](py::handle leaf) -> py::object {
    if (!py::isinstance<CallArgument>(leaf)) return {};
    const auto& placeholder = leaf.cast<const CallArgument&>();
    if (placeholder.kind == CallArgument::Kind::kTensor)
      return wrap_tensor(values.operands[placeholder.index]);
    if (placeholder.kind == CallArgument::Kind::kInteger)
      return py::int_(evaluate(placeholder.integer, values.symbols));
    return values.objects[placeholder.index];
  });
}

void flatten(py::handle value, std::vector<at::Tensor>& tensors) {
  if (THPVariable_Check(value.ptr()))
    tensors.push_back(THPVariable_Unpack(value.ptr()));
  else if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value))
    for (const py::handle element : value) flatten(element, tensors);
  else if (py::isinstance<py::dict>(value))
    for (const auto entry : py::reinterpret_borrow<py::dict>(value)) flatten(entry.second, tensors);
  else
    tensors.emplace_back();
}

std::vector<at::Tensor> run(const PythonCall& call, const CallValues& values) {
  py::gil_scoped_acquire gil;
  const py::object result = call.callable(*fill(call.arguments, values).cast<py::tuple>(),
                                          **fill(call.keywords, values).cast<py::dict>());
  std::vector<at::Tensor> tensors;
  flatten(result, tensors);
  return tensors;
}

}  // namespace

py::object map_nested(py::handle item, const std::function<py::object(py::handle)>& replace) {
  if (py::object replaced = replace(item)) return replaced;
  if (py::isinstance<py::list>(item) || PyTuple_CheckExact(item.ptr())) {
    py::list mapped;
    for (const py::handle element : item) mapped.append(map_nested(element, replace));
    return PyTuple_CheckExact(item.ptr()) ? py::object(py::tuple(mapped)) : mapped;
  }
  if (PyDict_CheckExact(item.ptr())) {
    py::dict mapped;
    for (const auto entry : py::reinterpret_borrow<py::dict>(item))
      mapped[entry.first] = map_nested(entry.second, replace);
    return mapped;
  }
  return py::reinterpret_borrow<py::object>(item);
}

py::object wrap_tensor(const at::Tensor& tensor) {
  PyObject* made = THPVariable_Wrap(tensor);
  if (!made) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

CallTable::~CallTable() {
  py::gil_scoped_acquire gil;
  rows.clear();
  for (py::list* list : {&given, &extras, &number_outputs, &views}) list->release().dec_ref();
}

std::vector<at::Tensor> run_call(const CallRow& row, const CallValues& values) {
  return std::visit([&](const auto& call) { return run(call, values); }, row.call);
}

}  // namespace stitch
