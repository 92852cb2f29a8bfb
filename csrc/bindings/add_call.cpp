#include <torch/csrc/jit/python/pybind_utils.h>

#include "bindings/python_types.h"

namespace stitch {
namespace {

using Kind = CallArgument::Kind;

// The placeholder for a value of the call; none for anything that stays as it is.
std::optional<CallArgument> find_placeholder(py::handle item, CallTable& table) {
  if (py::isinstance<Dim>(item))
    return CallArgument{.kind = Kind::kInteger, .integer = item.cast<Dim>()};
  if (!py::isinstance<CallArgument>(item)) return std::nullopt;
  auto placeholder = item.cast<CallArgument>();
  if (placeholder.kind != Kind::kObject) return placeholder;
  const auto place = std::ranges::find(table.objects, placeholder.index);
  const int position = static_cast<int>(place - table.objects.begin());
  if (place == table.objects.end()) table.objects.push_back(placeholder.index);
  placeholder.index = position;
  return placeholder;
}

bool has_placeholders(py::handle item) {
  const bool is_one = py::isinstance<CallArgument>(item) || py::isinstance<Dim>(item);
  const bool is_sequence = PyList_Check(item.ptr()) || PyTuple_Check(item.ptr());
  return is_one || (is_sequence && std::any_of(item.begin(), item.end(), has_placeholders));
}

c10::TypePtr without_optional(const c10::TypePtr& type) {
  const auto optional = type->cast<c10::OptionalType>();
  return optional ? optional->getElementType() : type;
}

CallArgument import_argument(py::handle item, const c10::TypePtr& type, std::optional<int> count,
                             CallTable& table) {
  if (!has_placeholders(item)) return {.constant = torch::jit::toIValue(item, type, count)};
  const c10::TypePtr taken = without_optional(type);
  const auto list = taken->cast<c10::ListType>();
  CallArgument whole{.kind = Kind::kList, .type = list ? list->getElementType() : taken};
  if (auto placeholder = find_placeholder(item, table)) {
    placeholder->type = whole.type;
    if (!list) return *std::move(placeholder);
    // One integer stands for a list of them: `int[2] stride` takes 1.
    whole.elements.assign(count.value_or(1), *placeholder);
    return whole;
  }
  if (!list) throw UnsupportedError("a list of tensors is given as " + type->str());
  for (const py::handle element : item)
    whole.elements.push_back(import_argument(element, whole.type, std::nullopt, table));
  return whole;
}

// Of operators whose out variant computes in place instead of copying a finished result.
std::optional<c10::OperatorHandle> find_out_variant(const std::string& name) {
  if (!is_blas_call(name)) return std::nullopt;
  return find_operator(name.substr(0, name.rfind('.')) + ".out");
}

OperatorCall import_operator(const std::string& name, const c10::OperatorHandle& op,
                             const py::tuple& arguments, const py::dict& keywords,
                             CallTable& table) {
  const c10::FunctionSchema& schema = op.schema();
  OperatorCall call{op, {}, find_out_variant(name), schema.name() == "aten::as_strided_scatter"};
  size_t keywords_used = 0;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& parameter = schema.arguments()[i];
    const char* keyword = parameter.name().c_str();
    const bool is_keyword = i >= arguments.size() && keywords.contains(keyword);
    keywords_used += is_keyword;
    if (i < arguments.size() || is_keyword) {
      const auto item = is_keyword ? py::object(keywords[keyword]) : py::object(arguments[i]);
      // Sizes are plain integers by the time of the call.
      call.arguments.push_back(import_argument(item, parameter.type(), parameter.N(), table));
    } else if (const auto otherwise = parameter.default_value()) {
      call.arguments.push_back({.constant = *otherwise});
    } else {
      throw UserError(schema.name() + " is called without its argument '" + parameter.name() + "'");
    }
  }
  if (arguments.size() > schema.arguments().size() || keywords_used != keywords.size())
    throw UserError(schema.name() + " is called with arguments that its schema does not have: " +
                    std::string(py::repr(arguments)) + " " + std::string(py::repr(keywords)));
  return call;
}

py::object replace_placeholders(py::handle item, CallTable& table) {
  return map_nested(item, [&](py::handle leaf) -> py::object {
    const auto placeholder = find_placeholder(leaf, table);
    return placeholder ? py::cast(*placeholder) : py::object();
  });
}

std::variant<OperatorCall, PythonCall> import_target(CallTable& table, const py::object& target,
                                                     const py::tuple& arguments,
                                                     const py::dict& keywords) {
  const std::string name = py::hasattr(target, "_schema") ? py::str(target) : py::str();
  if (const auto op = find_operator(name)) {
    try {
      return import_operator(name, *op, arguments, keywords, table);
    } catch (const py::cast_error&) {
      // An argument that only the framework's own Python call converts: script objects, SymBool.
    }
  }
  return PythonCall{target, replace_placeholders(arguments, table),
                    replace_placeholders(keywords, table)};
}

bool draws_random(const CallRow& row, const c10::OperatorHandle& op) {
  if (!op.hasTag(at::Tag::nondeterministic_seeded)) return false;
  const OperatorCall* call = std::get_if<OperatorCall>(&row.call);
  for (size_t i = 0; call && i < call->arguments.size(); ++i) {
    const c10::IValue& given = call->arguments[i].constant;
    const bool is_rate = call->op.schema().arguments()[i].name().starts_with("dropout");
    if (is_rate && given.isScalar() && given.toScalar().toDouble() == 0) return false;
  }
  return true;
}

}  // namespace

std::optional<c10::OperatorHandle> find_operator(const std::string& name) {
  const size_t space = name.find('.') + 1, dot = name.rfind('.');
  if (dot == std::string::npos || space > dot) return std::nullopt;
  const std::string overload = name.substr(dot + 1);
  return c10::Dispatcher::singleton().findSchema(
      {name.substr(0, space - 1) + "::" + name.substr(space, dot - space),
       overload == "default" ? "" : overload});
}

std::vector<int64_t> describe_call(const CallRow& row) {
  const auto op = find_operator(row.name);
  if (!op || op->schema().is_mutable()) return {kWritesOperands};
  const std::string space = row.name.substr(0, row.name.find('.'));
  const bool is_known = space == "aten" || space == "prims" || space == "torch_stitch";
  if (!is_known || op->schema().returns().empty() || draws_random(row, *op)) return {kRunsInOrder};
  const OperatorCall* call = std::get_if<OperatorCall>(&row.call);
  if (!call || row.name != "aten.convolution.default") return {};
  if (call->arguments[6].constant.toBool()) return {};  // transposed
  std::vector<int64_t> ints;
  for (const size_t i : {3, 4}) {  // strides and paddings
    const c10::IValue& given = call->arguments[i].constant;
    if (!given.isIntList()) return {};  // a size of the call decides
    for (const int64_t number : given.toIntVector()) ints.push_back(number);
  }
  return ints;
}

CallRow make_row(const Node& call) {
  const auto made = std::ranges::find(kMadeCalls, call.name, &MadeCall::name);
  STITCH_CHECK(made != kMadeCalls.end(), call.name << " is no call that the core makes");
  const c10::OperatorHandle op = find_operator(call.name).value();
  OperatorCall result{op, {}, find_out_variant(call.name)};
  const int operands = static_cast<int>(call.inputs.size());
  int operand = 0;
  size_t dim = 0;
  const std::function<CallArgument(const c10::TypePtr&)> take_next = [&](const c10::TypePtr& type) {
    const auto list = type->cast<c10::ListType>();
    CallArgument next{.type = list ? list->getElementType() : type};
    const bool is_tensor = operand < operands;
    next.kind = list ? Kind::kList : is_tensor ? Kind::kTensor : Kind::kInteger;
    if (list)  // takes all that are left
      while (is_tensor ? operand < operands : dim < call.dims.size())
        next.elements.push_back(take_next(next.type));
    else if (is_tensor)
      next.index = operand++;
    else
      next.integer = call.dims[dim++];
    return next;
  };
  for (const c10::Argument& parameter : op.schema().arguments()) {
    CallArgument argument{.constant = parameter.default_value().value_or(c10::IValue())};
    if (operand < operands || dim < call.dims.size())
      argument = take_next(without_optional(parameter.type()));
    else if (parameter.name() == made->number)
      argument.constant = call.number;
    else if (!parameter.default_value() && parameter.type()->kind() == c10::TypeKind::BoolType)
      argument.constant = false;
    result.arguments.push_back(std::move(argument));
  }
  return {call.name, std::move(result)};
}

int64_t add_call(CallTable& table, const std::string& name, py::object target,
                 const py::sequence& arguments, const py::dict& keywords) {
  table.rows.push_back({name, import_target(table, target, py::tuple(arguments), keywords)});
  table.given.append(py::make_tuple(name, target, arguments, keywords));
  return std::ssize(table.rows) - 1;
}

}  // namespace stitch
