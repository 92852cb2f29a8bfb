#include "ptxsim/isa/module.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>

#include "base/round_up.h"
#include "base/words.h"
#include "ptxsim/decode/decode_function.h"
#include "ptxsim/decode/lex_ptx.h"
#include "ptxsim/decode/parse_variable.h"

namespace stitch::ptxsim {
namespace {

constexpr uint64_t kMostParameterBytes = 32764;
// Far beyond real modules; they bound what is kept for each line and for each kernel.
constexpr size_t kMostLines = 1 << 20;
constexpr size_t kMostFunctions = 4096;
constexpr size_t kMostConstants = 1 << 22;

// Offsets one behind another in a space.
struct Layout {
  uint64_t bytes = 0;

  uint64_t place(uint64_t size, uint32_t alignment) {
    const uint64_t offset = aligned(alignment);
    bytes = offset + size;
    return offset;
  }
  uint64_t aligned(uint32_t alignment) const { return round_up(bytes, alignment); }
};

void check_size(const PtxModule& text) {
  const auto lines = std::count(text.text.begin(), text.text.end(), '\n');
  if (lines > static_cast<std::ptrdiff_t>(kMostLines))
    fail_ptx(text.text, 1, concat("a text of ", lines, " lines; ", kMostLines, " at most"));
  if (text.functions.size() > kMostFunctions) {
    fail_ptx(text.text, text.functions.back().line,
             concat("more than ", kMostFunctions, " functions"));
  }
}

void relocate(Instruction& instruction, uint32_t base) {
  if (instruction.guard != kNoUnit) instruction.guard += base;
  for (size_t i = 0; i < instruction.operand_count; ++i)
    if (instruction.operands[i] != kNoUnit) instruction.operands[i] += base;
}

bool is_of_entry(const PtxVariable& variable) {
  return variable.space == Space::shared || variable.space == Space::local ||
         (variable.space == Space::param && !variable.is_entry_parameter);
}

class Linker {
 public:
  explicit Linker(const PtxModule& text) : text_(text), offsets_(text.variables.size(), 0) {}

  std::shared_ptr<const Module> link() {
    check_size(text_);
    place_module_variables();
    Dictionary dictionary;
    for (const PtxFunction& function : text_.functions) {
      codes_.push_back(function.has_body ? decode_function(text_, function, dictionary)
                                         : FunctionCode{});
    }
    refuse_recursion();
    place_functions();
    for (size_t i = 0; i < codes_.size(); ++i) finish_code(i);
    for (size_t i = 0; i < codes_.size(); ++i)
      if (text_.functions[i].is_entry) finish_entry(i);
    return module_;
  }

 private:
  [[noreturn]] void fail(int line, const std::string& what) const {
    fail_ptx(text_.text, line, what);
  }

  void place_variable(Layout& layout, size_t index, Space space) {
    const PtxVariable& variable = text_.variables[index];
    offsets_[index] = layout.place(variable.bytes, variable.alignment);
    if (layout.bytes > most_bytes(space))
      fail(variable.line, "the variables before this one fill the space");
  }

  // ---- variables of .global and .const

  void place_module_variables() {
    Layout globals, constants;
    for (size_t i = 0; i < text_.variables.size(); ++i) {
      const PtxVariable& variable = text_.variables[i];
      const bool is_global = variable.space == Space::global;
      if ((!is_global && variable.space != Space::const_) || variable.is_extern) continue;
      place_variable(is_global ? globals : constants, i, variable.space);
      module_->variables.push_back({.name = std::string(variable.name),
                                    .space = variable.space,
                                    .offset = offsets_[i],
                                    .bytes = variable.bytes,
                                    .initial = variable.initial,
                                    .addresses = {}});
      variables_.push_back(static_cast<uint32_t>(i));
    }
    module_->global_bytes = globals.bytes;
    module_->const_bytes = constants.bytes;
    for (size_t i = 0; i < variables_.size(); ++i)
      for (const PtxInitialAddress& initial : text_.variables[variables_[i]].addresses)
        module_->variables[i].addresses.push_back(initial_address(initial));
  }

  InitialAddress initial_address(const PtxInitialAddress& initial) const {
    uint32_t number = 0;
    const PtxSymbol* const symbol = text_.find(0, initial.name, number);
    if (!symbol || symbol->kind != PtxSymbol::Kind::variable)
      fail(initial.line, quote_ptx(initial.name) + " is not a variable");
    const PtxVariable& target = text_.variables[symbol->index];
    const bool stored = target.space == Space::global || target.space == Space::const_;
    if (!stored || target.is_extern)
      fail(initial.line, quote_ptx(initial.name) + " has no address before the launch");
    return {initial.at, target.space, offsets_[symbol->index] + initial.added, initial.generic};
  }

  // ---- functions

  // Functions in the order in which none calls a later one; what is left over is a circle.
  void refuse_recursion() {
    std::vector<size_t> open_calls(codes_.size(), 0);
    std::vector<std::vector<size_t>> callers(codes_.size());
    std::vector<size_t> ready;
    for (size_t i = 0; i < codes_.size(); ++i) {
      open_calls[i] = codes_[i].callees.size();
      for (const uint32_t callee : codes_[i].callees) callers[callee].push_back(i);
      if (open_calls[i] == 0) ready.push_back(i);
    }
    for (size_t done = 0; done < ready.size(); ++done) {
      for (const size_t caller : callers[ready[done]])
        if (--open_calls[caller] == 0) ready.push_back(caller);
    }
    for (size_t i = 0; i < codes_.size(); ++i) {
      if (open_calls[i] > 0) {
        fail(text_.functions[i].line,
             quote_ptx(text_.functions[i].name) +
                 " calls itself, directly or through others; recursion is not simulated");
      }
    }
  }

  // Device functions first, one behind another; an entry lies behind them if it calls any.
  void place_functions() {
    uint32_t units = 0;
    int first = 0;
    for (size_t i = 0; i < codes_.size(); ++i) {
      bases_.push_back(units);
      if (!text_.functions[i].is_entry) units += codes_[i].units;
      firsts_.push_back(first);
      first += static_cast<int>(codes_[i].code.size());
    }
    for (size_t i = 0; i < codes_.size(); ++i)
      if (text_.functions[i].is_entry) bases_[i] = codes_[i].callees.empty() ? 0 : units;
  }

  void finish_code(size_t index) {
    const PtxFunction& text = text_.functions[index];
    FunctionCode& code = codes_[index];
    Function function;
    function.name = text.name;
    function.is_entry = text.is_entry;
    function.first = firsts_[index];
    function.end = function.first + static_cast<int>(code.code.size());
    function.max_threads = text.max_threads;
    function.required_threads = text.required_threads;
    function.min_blocks = text.min_blocks;
    place_parameters(text, function);
    const auto first_table = static_cast<int64_t>(module_->branch_tables.size());
    for (std::vector<int>& table : code.tables) {
      for (int& target : table) target += function.first;
      module_->branch_tables.push_back(std::move(table));
    }
    for (Instruction& instruction : code.code) {
      relocate(instruction, bases_[index]);
      if (instruction.opcode == Opcode::bra) instruction.immediate += function.first;
      if (instruction.opcode == Opcode::brx_idx) instruction.immediate += first_table;
      if (instruction.opcode == Opcode::call)
        instruction.operands[0] = bases_[static_cast<size_t>(instruction.immediate)] + kReturnUnit;
      module_->code.push_back(instruction);
    }
    for (Constant& constant : code.constants) constant.unit += bases_[index];
    for (SpecialUnit& special : code.specials) special.unit += bases_[index];
    module_->functions.push_back(std::move(function));
  }

  void place_parameters(const PtxFunction& text, Function& function) {
    Layout layout;
    for (const uint32_t index : text.parameters) {
      const PtxVariable& variable = text_.variables[index];
      const uint64_t offset = layout.place(variable.bytes, variable.alignment);
      if (layout.bytes > kMostParameterBytes) fail(variable.line, "too many bytes of parameters");
      const bool is_array = variable.bytes != static_cast<uint64_t>(type_bytes(variable.type));
      function.parameters.push_back(
          {std::string(variable.name), is_array ? Type::b8 : variable.type,
           static_cast<uint32_t>(offset), static_cast<uint32_t>(variable.bytes)});
      if (text.is_entry) offsets_[index] = offset;
    }
    function.parameter_bytes = layout.bytes;
  }

  // ---- entries

  std::vector<size_t> reachable(size_t entry) const {
    std::vector<size_t> found = {entry};
    std::vector<bool> seen(codes_.size(), false);
    for (size_t done = 0; done < found.size(); ++done) {
      for (const uint32_t callee : codes_[found[done]].callees) {
        if (!seen[callee]) found.push_back(callee);
        seen[callee] = true;
      }
    }
    return found;
  }

  void finish_entry(size_t index) {
    Function& function = module_->functions[index];
    const std::vector<size_t> parts = reachable(index);
    place_variables(parts, function);
    for (const size_t part : parts) {
      const FunctionCode& code = codes_[part];
      const size_t first = function.constants.size();
      function.constants.insert(function.constants.end(), code.constants.begin(),
                                code.constants.end());
      function.specials.insert(function.specials.end(), code.specials.begin(), code.specials.end());
      for (const AddressUse& use : code.addresses) {
        Constant& constant = function.constants[first + use.constant];
        constant.bits = offsets_[use.variable] + use.added;
        constant.is_global_address = text_.variables[use.variable].space == Space::global;
      }
      function.registers += code.registers;
      function.units = std::max(function.units, bases_[part] + code.units);
    }
    constants_ += function.constants.size();
    if (constants_ > kMostConstants)
      fail(text_.functions[index].line, "the kernels of the module use too many constants");
  }

  // Shared and local variables that the entry or what it calls names.  What the launch adds to
  // shared memory lies behind them.
  void place_variables(const std::vector<size_t>& parts, Function& function) {
    std::set<uint32_t> used;
    for (const size_t part : parts)
      for (const AddressUse& use : codes_[part].addresses) used.insert(use.variable);
    Layout shared, local;
    uint32_t dynamic_alignment = 0;
    for (const uint32_t index : used) {
      const PtxVariable& variable = text_.variables[index];
      if (variable.is_extern && variable.space != Space::shared)
        fail(variable.line, quote_ptx(variable.name) + " is defined in no module");
      if (variable.is_extern) dynamic_alignment = std::max(dynamic_alignment, variable.alignment);
      if (variable.is_extern || !is_of_entry(variable)) continue;
      if (variable.space == Space::shared)
        place_variable(shared, index, Space::shared);
      else
        place_variable(local, index, Space::local);
    }
    if (dynamic_alignment > 0) shared.bytes = shared.aligned(dynamic_alignment);
    for (const uint32_t index : used)
      if (text_.variables[index].is_extern) offsets_[index] = shared.bytes;
    function.shared_bytes = shared.bytes;
    function.local_bytes = local.bytes;
  }

  const PtxModule& text_;
  std::shared_ptr<Module> module_ = std::make_shared<Module>();
  std::vector<uint64_t> offsets_;    // of PtxModule::variables; shared and local: of one entry
  std::vector<uint32_t> variables_;  // of Module::variables, in PtxModule
  std::vector<FunctionCode> codes_;
  std::vector<uint32_t> bases_;  // first units
  size_t constants_ = 0;         // of all entries
  std::vector<int> firsts_;      // in Module::code
};

}  // namespace

const Function* Module::find_entry(std::string_view name) const {
  for (const Function& function : functions)
    if (function.is_entry && function.name == name) return &function;
  return nullptr;
}

std::shared_ptr<const Module> load_module(std::string_view ptx) {
  const PtxModule text = parse_ptx(ptx);
  return Linker(text).link();
}

}  // namespace stitch::ptxsim
