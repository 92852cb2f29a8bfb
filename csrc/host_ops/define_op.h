// Decompositions in C++: ops of torch_stitch with the names and schemas of the aten ops that they
// take apart.  Tracing goes through them to the ops that they call.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <string>

namespace stitch {

template <class Function>
void define_op(torch::Library& library, std::string name, const std::string& overload,
               Function* function) {
  const auto aten =
      c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + name).c_str(), overload.c_str());
  library.def(aten.schema().cloneWithName("torch_stitch::" + name, overload));
  if (!overload.empty()) name += "." + overload;
  library.impl(name.c_str(), function);
}

}  // namespace stitch
