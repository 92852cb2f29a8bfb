#include "ptxsim/decode/decode_calls.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "base/words.h"
#include "ptxsim/decode/lex_ptx.h"

namespace stitch::ptxsim {
namespace {

using Kind = PtxOperand::Kind;

struct Binder {
  const PtxModule& module;
  const PtxFunction& function;
  FunctionOperands& operands;
  std::unordered_set<uint32_t> bound;

  void bind_list(const PtxOperand* list, const std::vector<uint32_t>& of, const char* what) {
    const size_t count = list ? list->count : 0;
    if (count != of.size())
      operands.fail(concat("the call has ", count, " ", what, ", the function ", of.size()));
    for (size_t i = 0; i < count; ++i) bind(module.operands[list->first + i], of[i]);
  }

  void bind(const PtxOperand& passed, uint32_t parameter) {
    if (passed.kind != Kind::name) operands.fail("a call passes variables of .param");
    const uint32_t variable =
        operands.symbol(passed.name, PtxSymbol::Kind::variable, "a variable of .param").index;
    const PtxVariable& own = module.variables[variable];
    if (own.space != Space::param || is_parameter(variable))
      operands.fail("a call passes variables of .param that are declared beside it");
    const uint64_t bytes = module.variables[parameter].bytes;
    if (own.bytes != bytes) {
      operands.fail(
          concat(quote_ptx(passed.name), " has ", own.bytes, " bytes, the function's has ", bytes));
    }
    if (!bound.insert(variable).second)
      operands.fail(quote_ptx(passed.name) + " is passed twice; declare one variable for each");
    operands.alias(variable, parameter);
  }

  bool is_parameter(uint32_t variable) const {
    return std::ranges::count(function.parameters, variable) > 0 ||
           std::ranges::count(function.results, variable) > 0;
  }
};

bool is_call(const PtxInstruction& text) {
  return text.words == "call" || text.words == "call.uni";
}

}  // namespace

CallText read_call(const PtxModule& module, FunctionOperands& operands,
                   const PtxInstruction& text) {
  CallText call;
  uint32_t next = 0;
  const auto given = [&]() -> const PtxOperand& { return module.operands[text.first + next]; };
  const auto is_list = [&] { return next < text.count && given().kind == Kind::list; };
  if (is_list()) call.results = &given(), ++next;
  if (next == text.count || given().kind != Kind::name) operands.fail("a call names a function");
  const std::string_view name = given().name;
  ++next;
  uint32_t number = 0;
  const PtxSymbol* const symbol = module.find(text.scope, name, number);
  if (symbol && symbol->kind == PtxSymbol::Kind::registers)
    operands.fail("indirect calls are not simulated; call a function by its name");
  call.callee = operands.symbol(name, PtxSymbol::Kind::function, "a function").index;
  if (is_list()) call.arguments = &given(), ++next;
  if (next != text.count) operands.fail("a call is written: call (result), name, (arguments)");
  const PtxFunction& callee = module.functions[call.callee];
  if (callee.is_entry) operands.fail(quote_ptx(name) + " is a kernel and cannot be called");
  if (!callee.has_body) operands.fail(quote_ptx(name) + " has no body");
  return call;
}

void bind_calls(const PtxModule& module, const PtxFunction& function, FunctionOperands& operands) {
  Binder binder{module, function, operands, {}};
  for (uint32_t i = function.first; i < function.end; ++i) {
    const PtxInstruction& text = module.instructions[i];
    if (!is_call(text)) continue;
    operands.start(text);
    const CallText call = read_call(module, operands, text);
    const PtxFunction& callee = module.functions[call.callee];
    binder.bind_list(call.results, callee.results, "results");
    binder.bind_list(call.arguments, callee.parameters, "arguments");
  }
}

}  // namespace stitch::ptxsim
