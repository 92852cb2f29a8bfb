// What the rooms of the module share: the entry points of each file, and the arguments of calls.
#pragma once

#include "bindings/call_table.h"
#include "config/settings.h"
#include "report.h"

namespace stitch {

// Adds `target`, an OpOverload or any callable, to the table; returns its row.  Among the
// arguments, nested in lists, tuples and dicts, CallArguments and Dims stand for the call's values.
int64_t add_call(CallTable& table, const std::string& name, py::object target,
                 const py::sequence& arguments, const py::dict& keywords);

// "aten.mm.default", the name that torch prints, is aten::mm of no overload.
std::optional<c10::OperatorHandle> find_operator(const std::string& name);

// Whether eager raises for operands of such types: no list of dtypes could follow its kernels.
// False where those of the plan's device are not here to be asked.
bool eager_refuses(bool on_host, py::handle op, const py::tuple& args, const py::dict& kwargs);
// What `form`, or none where the op stays whole, makes of them, laid as eager's result is;
// NotImplemented where eager refuses, or an op that stays whole is traced with its strides.
py::object decompose(bool on_host, const py::object& op, const py::object& form,
                     const py::args& args, const py::kwargs& kwargs);
// "add.Tensor" and all others of torch's that write nothing and go element by element.
py::list elementwise_ops();

// Defaults overlaid by a dict of options; UserError for one that does not exist.
Settings read_options(const py::dict& options);
void count_compilation(const Report& report);

void bind_builder(py::module_& module);
void bind_compile(py::module_& module);
void bind_clock(py::module_& module);
void bind_meanwhile(py::module_& module);
void bind_ptxsim(py::module_& module);

}  // namespace stitch
