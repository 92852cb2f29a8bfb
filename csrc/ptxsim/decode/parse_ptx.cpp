#include "ptxsim/decode/parse_ptx.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/error.h"
#include "base/words.h"
#include "ptxsim/decode/lex_ptx.h"
#include "ptxsim/decode/parse_variable.h"

namespace stitch::ptxsim {
namespace {

using Kind = Token::Kind;

constexpr int kOldestVersion = 78;
constexpr size_t kMostText = size_t{16} << 20;
constexpr size_t kDeepestScope = 256;

const std::vector<std::string> kTargets = {
    "sm_50",   "sm_52",  "sm_53",   "sm_60",   "sm_61",  "sm_62",   "sm_70",   "sm_72",  "sm_75",
    "sm_80",   "sm_86",  "sm_87",   "sm_88",   "sm_89",  "sm_90",   "sm_90a",  "sm_100", "sm_100a",
    "sm_100f", "sm_101", "sm_101a", "sm_101f", "sm_103", "sm_103a", "sm_103f", "sm_110", "sm_110a",
    "sm_110f", "sm_120", "sm_120a", "sm_120f", "sm_121", "sm_121a", "sm_121f",
};

const std::vector<std::string> kModuleDirectives = {
    ".version", ".target", ".address_size", ".file",  ".section", ".pragma", ".visible", ".extern",
    ".weak",    ".common", ".global",       ".const", ".shared",  ".func",   ".entry",
};
const std::vector<std::string> kFunctionDirectives = {
    ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".noreturn", ".pragma",
};
const std::vector<std::string> kBodyDirectives = {
    ".reg", ".local",  ".shared", ".param",         ".global",      ".const",
    ".loc", ".pragma", ".file",   ".branchtargets", ".calltargets", ".callprototype",
};

// What statements of a module and of bodies have in common.
struct TextParser {
  Lexer& lexer;
  PtxModule& module;

  [[noreturn]] void unknown_directive(const std::vector<std::string>& known) const {
    const Token& token = lexer.peek();
    if (token.kind != Kind::directive) lexer.fail_found("a directive");
    const std::string nearest = suggest_name(token.text, known);
    lexer.fail("unknown directive " + quote_ptx(token.text) +
               (nearest.empty() ? "" : "; nearest: `" + nearest + "`"));
  }

  void skip_file() const {
    lexer.expect(Kind::integer, "the number of a file");
    lexer.expect(Kind::text, "the name of a file");
    while (lexer.take(',')) lexer.expect(Kind::integer, "a number");
  }

  void skip_pragma() const {
    do {
      lexer.expect(Kind::text, "a string");
    } while (lexer.take(','));
    lexer.expect(';');
  }

  void declare(uint32_t scope, std::string_view name, PtxSymbol symbol, int line) const {
    if (!module.scopes[scope].names.emplace(name, symbol).second)
      fail_ptx(module.text, line, quote_ptx(name) + " is declared twice");
  }

  uint32_t add_variable(uint32_t scope, PtxVariable variable) const {
    const auto index = static_cast<uint32_t>(module.variables.size());
    declare(scope, variable.name, {PtxSymbol::Kind::variable, index}, variable.line);
    module.variables.push_back(std::move(variable));
    return index;
  }

  // `.shared .align 16 .b8 a[4], b[8];` for any space that variables are declared in.
  bool read_variables(uint32_t scope, bool is_extern) const {
    const Space space = take_variable_space(lexer);
    if (space == Space::none) return false;
    for (PtxVariable& variable : read_declarations(lexer, space, is_extern))
      add_variable(scope, std::move(variable));
    lexer.expect(';');
    return true;
  }

  uint32_t open_scope(uint32_t parent) const {
    module.scopes.push_back({parent, {}});
    return static_cast<uint32_t>(module.scopes.size() - 1);
  }
};

// The statements between a function's braces.
class BodyParser : TextParser {
 public:
  BodyParser(const TextParser& text, uint32_t scope) : TextParser(text), scope_(scope) {}

  void parse() {
    lexer.expect('{');
    while (depth_ > 0) statement();
  }

 private:
  void statement() {
    const Token& token = lexer.peek();
    if (lexer.take(';')) return;
    if (lexer.take('{')) {
      if (++depth_ > kDeepestScope) lexer.fail_last("braces are nested too deep");
      scope_ = open_scope(scope_);
    } else if (lexer.take('}')) {
      --depth_;
      scope_ = module.scopes[scope_].parent;
    } else if (token.kind == Kind::directive) {
      directive();
    } else if (token.kind == Kind::word || token.is('@')) {
      label_or_instruction();
    } else {
      lexer.fail_found("an instruction");
    }
  }

  void directive() {
    if (lexer.take_directive(".loc")) return read_location();
    if (lexer.take_directive(".reg")) return read_registers();
    if (lexer.take_directive(".pragma")) return skip_pragma();
    if (lexer.take_directive(".file")) return skip_file();
    const bool is_extern = lexer.take_directive(".extern");
    if (!read_variables(scope_, is_extern)) unknown_directive(kBodyDirectives);
  }

  void read_registers() {
    const Token word = lexer.expect(Kind::directive, "a type");
    const Type type = find_type(word.text.substr(1));
    if (type == Type::none)
      fail_ptx(module.text, word.line, "unknown type " + quote_ptx(word.text) + " of registers");
    do {
      const Token name = lexer.expect(Kind::word, "the name of a register");
      uint32_t count = 0;
      if (lexer.take('<')) {
        const Token number = lexer.expect(Kind::integer, "a number of registers");
        count = static_cast<uint32_t>(std::clamp<uint64_t>(number.bits, 1, uint64_t{1} << 31));
        lexer.expect('>');
      }
      const auto index = static_cast<uint32_t>(module.registers.size());
      declare(scope_, name.text, {PtxSymbol::Kind::registers, index}, name.line);
      module.registers.push_back({type, count});
    } while (lexer.take(','));
    lexer.expect(';');
  }

  // Three numbers; the key to outermost_, and the line.
  std::pair<std::string, int> read_place() {
    std::array<uint64_t, 3> numbers;
    for (uint64_t& number : numbers) number = lexer.expect(Kind::integer, "a number").bits;
    return {join(numbers, ":"), static_cast<int>(std::min<uint64_t>(numbers[1], INT32_MAX))};
  }

  // .loc 1 203 3, function_name $L__info_string3+0, inlined_at 1 1320 7
  void read_location() {
    const auto [key, line] = read_place();
    source_line_ = line;
    while (lexer.take(',')) {
      const Token word = lexer.expect(Kind::word, "function_name or inlined_at");
      if (word.text == "function_name") {
        lexer.expect(Kind::word, "a label");
        if (lexer.take('+')) lexer.expect(Kind::integer, "a number");
      } else if (word.text == "inlined_at") {
        const auto [caller, caller_line] = read_place();
        const auto known = outermost_.find(caller);
        source_line_ = known == outermost_.end() ? caller_line : known->second;
      } else {
        lexer.fail_last("unknown word " + quote_ptx(word.text) + " of .loc");
      }
    }
    outermost_[key] = source_line_;
  }

  void label_or_instruction() {
    PtxInstruction instruction;
    instruction.line = lexer.peek().line;
    instruction.scope = scope_;
    instruction.source_line = source_line_;
    if (lexer.take('@')) {
      instruction.guard_negated = lexer.take('!');
      instruction.guard = lexer.expect(Kind::word, "a predicate").text;
    }
    const Token word = lexer.expect(Kind::word, "an instruction");
    if (instruction.guard.empty() && lexer.take(':')) return read_label(word);
    instruction.words = word.text;
    read_operands(instruction);
    lexer.expect(';');
    module.instructions.push_back(instruction);
  }

  void read_label(const Token& name) {
    if (lexer.take_directive(".branchtargets")) {
      const auto index = static_cast<uint32_t>(module.tables.size());
      declare(scope_, name.text, {PtxSymbol::Kind::table, index}, name.line);
      PtxTable table{.labels = {}, .scope = scope_};
      do {
        table.labels.push_back(lexer.expect(Kind::word, "a label").text);
      } while (lexer.take(','));
      module.tables.push_back(std::move(table));
      lexer.expect(';');
      return;
    }
    if (lexer.take_directive(".callprototype") || lexer.take_directive(".calltargets")) {
      declare(scope_, name.text, {PtxSymbol::Kind::prototype, 0}, name.line);
      while (!lexer.take(';'))
        if (lexer.next().kind == Kind::end) lexer.fail("found the end of the text");
      return;
    }
    const auto index = static_cast<uint32_t>(module.instructions.size());
    declare(scope_, name.text, {PtxSymbol::Kind::label, index}, name.line);
  }

  void read_operands(PtxInstruction& instruction) {
    std::vector<PtxOperand> operands;
    if (!lexer.peek().is(';')) {
      do {
        operands.push_back(read_operand());
      } while (lexer.take(','));
    }
    instruction.first = static_cast<uint32_t>(module.operands.size());
    instruction.count = static_cast<uint32_t>(operands.size());
    module.operands.insert(module.operands.end(), operands.begin(), operands.end());
  }

  PtxOperand read_operand() {
    if (lexer.take('{')) return read_elements(PtxOperand::Kind::vector, '}');
    if (lexer.take('(')) return read_elements(PtxOperand::Kind::list, ')');
    if (!lexer.take('[')) return read_scalar();
    PtxOperand operand = read_scalar();
    const bool absolute = operand.kind == PtxOperand::Kind::integer;
    if (operand.negated || !operand.second.empty() ||
        (!absolute && operand.kind != PtxOperand::Kind::name)) {
      lexer.fail_last("an address is a register, variable or number, with an offset");
    }
    operand.kind = PtxOperand::Kind::address;
    lexer.expect(']');
    return operand;
  }

  PtxOperand read_elements(PtxOperand::Kind kind, char close) {
    PtxOperand operand;
    operand.kind = kind;
    operand.first = static_cast<uint32_t>(module.operands.size());
    if (!lexer.take(close)) {
      do {
        module.operands.push_back(read_scalar());
      } while (lexer.take(','));
      lexer.expect(close);
    }
    operand.count = static_cast<uint32_t>(module.operands.size()) - operand.first;
    return operand;
  }

  PtxOperand read_scalar() {
    PtxOperand operand;
    operand.negated = lexer.take('!');
    if (lexer.peek().kind != Kind::word) {
      const PtxNumber number = read_number(lexer);
      operand.bits = number.bits;
      operand.kind = number.type == Type::f32   ? PtxOperand::Kind::real32
                     : number.type == Type::f64 ? PtxOperand::Kind::real64
                                                : PtxOperand::Kind::integer;
      return operand;
    }
    operand.name = lexer.next().text;
    operand.kind = operand.name == "_" ? PtxOperand::Kind::sink : PtxOperand::Kind::name;
    if (lexer.take('|')) operand.second = lexer.expect(Kind::word, "a predicate").text;
    if (lexer.take('+') || lexer.peek().is('-')) operand.bits = read_number(lexer).bits;
    return operand;
  }

  uint32_t scope_;
  size_t depth_ = 1;
  int source_line_ = 0;
  // Lines of the outermost call by the place that a .loc names; key: file, line, column.
  std::unordered_map<std::string, int> outermost_;
};

class ModuleParser : TextParser {
 public:
  explicit ModuleParser(const TextParser& text) : TextParser(text) {}

  void parse() {
    if (!lexer.take_directive(".version")) lexer.fail("PTX begins with .version");
    read_version();
    while (lexer.peek().kind != Kind::end) statement();
    if (module.target.empty()) lexer.fail("PTX has no .target");
  }

 private:
  void read_version() {
    const Token token = lexer.expect(Kind::real64, "a version, such as 7.8");
    const size_t dot = token.text.find('.');
    if (dot > 2 || token.text.size() != dot + 2) lexer.fail_last("a version is written 7.8");
    for (const char c : token.text)
      if (c != '.') module.version = module.version * 10 + (c - '0');
    if (module.version < kOldestVersion) {
      fail_ptx(module.text, token.line,
               concat("PTX ", token.text, " is too old; 7.8 and later are understood"));
    }
  }

  void read_target() {
    const Token token = lexer.expect(Kind::word, "a target, such as sm_90a");
    if (std::find(kTargets.begin(), kTargets.end(), token.text) == kTargets.end()) {
      fail_ptx(module.text, token.line,
               concat("unknown target ", quote_ptx(token.text), "; nearest: `",
                      suggest_name(token.text, kTargets), "`"));
    }
    module.target = token.text;
    while (lexer.take(',')) lexer.expect(Kind::word, "texmode_independent or debug");
  }

  void read_address_size() {
    const Token token = lexer.expect(Kind::integer, "64");
    if (token.bits != 64) fail_ptx(module.text, token.line, "only .address_size 64 is simulated");
  }

  void skip_section() {
    lexer.next();
    lexer.expect('{');
    for (size_t depth = 1; depth > 0;) {
      const Token token = lexer.next();
      if (token.kind == Kind::end) lexer.fail("section without end");
      depth += token.is('{');
      depth -= token.is('}');
    }
  }

  void statement() {
    if (lexer.take(';')) return;
    if (lexer.take_directive(".target")) return read_target();
    if (lexer.take_directive(".address_size")) return read_address_size();
    if (lexer.take_directive(".file")) return skip_file();
    if (lexer.take_directive(".section")) return skip_section();
    if (lexer.take_directive(".pragma")) return skip_pragma();
    bool is_extern = false;
    for (bool is_linkage = true; is_linkage;) {
      const bool extern_next = lexer.take_directive(".extern");
      is_extern |= extern_next;
      is_linkage = extern_next || lexer.take_directive(".visible") ||
                   lexer.take_directive(".weak") || lexer.take_directive(".common");
    }
    if (lexer.take_directive(".func")) return read_function(false);
    if (lexer.take_directive(".entry")) return read_function(true);
    if (!read_variables(0, is_extern)) unknown_directive(kModuleDirectives);
  }

  std::vector<uint32_t> read_parameters(const PtxFunction& function) {
    std::vector<uint32_t> made;
    lexer.expect('(');
    if (lexer.take(')')) return made;
    do {
      if (!lexer.take_directive(".param")) lexer.fail("parameters of functions are of .param here");
      PtxVariable variable = read_parameter(lexer);
      variable.is_entry_parameter = function.is_entry;
      made.push_back(add_variable(function.scope, std::move(variable)));
    } while (lexer.take(','));
    lexer.expect(')');
    return made;
  }

  void read_function(bool is_entry) {
    PtxFunction function;
    function.is_entry = is_entry;
    function.scope = open_scope(0);
    if (lexer.peek().is('(')) function.results = read_parameters(function);
    const Token name = lexer.expect(Kind::word, "the name of a function");
    function.name = name.text;
    function.line = name.line;
    if (lexer.peek().is('(')) function.parameters = read_parameters(function);
    while (!lexer.peek().is('{') && !lexer.peek().is(';')) read_function_directive(function);
    if (!lexer.take(';')) {
      function.has_body = true;
      function.first = static_cast<uint32_t>(module.instructions.size());
      add_function(function);  // before the body: it may name itself, which decode refuses
      BodyParser(*this, function.scope).parse();
      function.end = static_cast<uint32_t>(module.instructions.size());
    }
    add_function(std::move(function));
  }

  void add_function(PtxFunction function) {
    const auto index = static_cast<uint32_t>(module.functions.size());
    const auto [entry, is_new] = module.scopes[0].names.try_emplace(
        function.name, PtxSymbol{PtxSymbol::Kind::function, index});
    if (is_new) {
      module.functions.push_back(std::move(function));
      return;
    }
    const bool is_function = entry->second.kind == PtxSymbol::Kind::function;
    PtxFunction* const known = is_function ? &module.functions[entry->second.index] : nullptr;
    if (!known || (known->has_body && function.scope != known->scope && function.has_body))
      fail_ptx(module.text, function.line, quote_ptx(function.name) + " is declared twice");
    if (function.has_body) *known = std::move(function);
  }

  std::array<uint32_t, 3> read_extents() {
    std::array<uint32_t, 3> extents = {1, 1, 1};
    size_t count = 0;
    do {
      const Token token = lexer.expect(Kind::integer, "a number of threads");
      if (count == 3 || token.bits == 0 || token.bits > 1024)
        lexer.fail_last("one to three numbers of 1 to 1024 are wanted");
      extents[count++] = static_cast<uint32_t>(token.bits);
    } while (lexer.take(','));
    return extents;
  }

  void read_function_directive(PtxFunction& function) {
    if (lexer.take_directive(".maxntid")) {
      function.max_threads = read_extents();
    } else if (lexer.take_directive(".reqntid")) {
      function.required_threads = read_extents();
    } else if (lexer.take_directive(".minnctapersm")) {
      const Token token = lexer.expect(Kind::integer, "a number of blocks");
      function.min_blocks = static_cast<uint32_t>(std::min<uint64_t>(token.bits, 1024));
    } else if (lexer.take_directive(".maxnreg") || lexer.take_directive(".maxnctapersm")) {
      lexer.expect(Kind::integer, "a number");
    } else if (lexer.take_directive(".pragma")) {
      skip_pragma();
    } else if (!lexer.take_directive(".noreturn")) {
      unknown_directive(kFunctionDirectives);
    }
  }
};

}  // namespace

const PtxSymbol* PtxModule::find(uint32_t scope, std::string_view name, uint32_t& number) const {
  const size_t last = name.find_last_not_of("0123456789");
  const std::string_view digits = name.substr(last == name.npos ? 0 : last + 1);
  const bool numbered = !digits.empty() && digits.size() < 10 &&
                        (digits.size() == 1 || digits[0] != '0') && digits.size() < name.size();
  number = 0;
  uint32_t value = 0;
  for (const char c : digits.substr(0, 9)) value = value * 10 + static_cast<uint32_t>(c - '0');
  for (uint32_t at = scope;; at = scopes[at].parent) {
    const auto& names = scopes[at].names;
    const auto exact = names.find(name);
    const bool counted = exact != names.end() && exact->second.kind == PtxSymbol::Kind::registers &&
                         registers[exact->second.index].count > 0;
    if (exact != names.end() && !counted) return &exact->second;
    // %r17 may be of %r<20>, or of %r1<8>: any part of the digits may belong to the name.
    if (numbered) {
      const auto found = names.find(name.substr(0, name.size() - digits.size()));
      if (found != names.end() && found->second.kind == PtxSymbol::Kind::registers &&
          value < registers[found->second.index].count) {
        number = value;
        return &found->second;
      }
    }
    if (at == 0) return nullptr;
  }
}

PtxModule parse_ptx(std::string_view text) {
  if (text.size() > kMostText)
    throw UserError(concat("PTX text of ", text.size(), " bytes; ", kMostText, " at most"));
  Lexer lexer(text);
  PtxModule module;
  module.text = text;
  module.scopes.emplace_back();
  ModuleParser({lexer, module}).parse();
  return module;
}

}  // namespace stitch::ptxsim
