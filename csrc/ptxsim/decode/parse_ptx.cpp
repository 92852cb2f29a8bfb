#include "ptxsim/decode/parse_ptx.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/error.h"
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

// Where the statements between braces stand.
struct Place {
  uint32_t scope = 0;
  size_t depth = 0;
  int source_line = 0;
  // Lines of the outermost call by the place that a .loc names; key: file, line, column.
  std::unordered_map<std::string, int> outermost;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {
    module_.text = text;
    module_.scopes.emplace_back();
  }

  PtxModule parse() {
    if (!lexer_.take_directive(".version")) lexer_.fail("PTX begins with .version");
    read_version();
    while (lexer_.peek().kind != Kind::end) statement_of_module();
    if (module_.target.empty()) lexer_.fail("PTX has no .target");
    return std::move(module_);
  }

 private:
  [[noreturn]] void unknown_directive(const std::vector<std::string>& known) {
    const Token& token = lexer_.peek();
    if (token.kind != Kind::directive) {
      lexer_.fail("found " +
                  (token.kind == Kind::end ? "the end of the text" : quote_ptx(token.text)) +
                  ", expected a directive");
    }
    const std::string nearest = suggest_name(token.text, known);
    lexer_.fail("unknown directive " + quote_ptx(token.text) +
                (nearest.empty() ? "" : "; nearest: `" + nearest + "`"));
  }

  void read_version() {
    const Token token = lexer_.expect(Kind::real64, "a version, such as 7.8");
    const size_t dot = token.text.find('.');
    if (dot > 2 || token.text.size() != dot + 2) lexer_.fail_last("a version is written 7.8");
    for (const char c : token.text)
      if (c != '.') module_.version = module_.version * 10 + (c - '0');
    if (module_.version < kOldestVersion) {
      fail_ptx(module_.text, token.line,
               "PTX " + std::string(token.text) + " is too old; 7.8 and later are understood");
    }
  }

  void read_target() {
    const Token token = lexer_.expect(Kind::word, "a target, such as sm_90a");
    if (std::find(kTargets.begin(), kTargets.end(), token.text) == kTargets.end()) {
      fail_ptx(module_.text, token.line,
               "unknown target " + quote_ptx(token.text) + "; nearest: `" +
                   suggest_name(token.text, kTargets) + "`");
    }
    module_.target = token.text;
    while (lexer_.take(',')) lexer_.expect(Kind::word, "texmode_independent or debug");
  }

  void read_address_size() {
    const Token token = lexer_.expect(Kind::integer, "64");
    if (token.bits != 64) fail_ptx(module_.text, token.line, "only .address_size 64 is simulated");
  }

  void skip_file() {
    lexer_.expect(Kind::integer, "the number of a file");
    lexer_.expect(Kind::text, "the name of a file");
    while (lexer_.take(',')) lexer_.expect(Kind::integer, "a number");
  }

  void skip_pragma() {
    do {
      lexer_.expect(Kind::text, "a string");
    } while (lexer_.take(','));
    lexer_.expect(';');
  }

  void skip_section() {
    lexer_.next();
    lexer_.expect('{');
    for (size_t depth = 1; depth > 0;) {
      const Token token = lexer_.next();
      if (token.kind == Kind::end) lexer_.fail("section without end");
      depth += token.is('{');
      depth -= token.is('}');
    }
  }

  void statement_of_module() {
    if (lexer_.take(';')) return;
    if (lexer_.take_directive(".target")) return read_target();
    if (lexer_.take_directive(".address_size")) return read_address_size();
    if (lexer_.take_directive(".file")) return skip_file();
    if (lexer_.take_directive(".section")) return skip_section();
    if (lexer_.take_directive(".pragma")) return skip_pragma();
    bool is_extern = false;
    while (true) {
      const bool extern_next = lexer_.take_directive(".extern");
      is_extern |= extern_next;
      if (!extern_next && !lexer_.take_directive(".visible") && !lexer_.take_directive(".weak") &&
          !lexer_.take_directive(".common")) {
        break;
      }
    }
    if (lexer_.take_directive(".func")) return read_function(false);
    if (lexer_.take_directive(".entry")) return read_function(true);
    if (!read_variables(0, is_extern)) unknown_directive(kModuleDirectives);
  }

  // `.shared .align 16 .b8 a[4], b[8];` for any space that variables are declared in.
  bool read_variables(uint32_t scope, bool is_extern) {
    const Space space = take_variable_space(lexer_);
    if (space == Space::none) return false;
    for (PtxVariable& variable : read_declarations(lexer_, space, is_extern))
      add_variable(scope, std::move(variable));
    lexer_.expect(';');
    return true;
  }

  uint32_t add_variable(uint32_t scope, PtxVariable variable) {
    const auto index = static_cast<uint32_t>(module_.variables.size());
    declare(scope, variable.name, {PtxSymbol::Kind::variable, index}, variable.line);
    module_.variables.push_back(std::move(variable));
    return index;
  }

  void declare(uint32_t scope, std::string_view name, PtxSymbol symbol, int line) {
    if (!module_.scopes[scope].names.emplace(name, symbol).second)
      fail_ptx(module_.text, line, quote_ptx(name) + " is declared twice");
  }

  uint32_t open_scope(uint32_t parent) {
    module_.scopes.push_back({parent, {}});
    return static_cast<uint32_t>(module_.scopes.size() - 1);
  }

  std::vector<uint32_t> read_parameters(const PtxFunction& function) {
    std::vector<uint32_t> made;
    lexer_.expect('(');
    if (lexer_.take(')')) return made;
    do {
      if (!lexer_.take_directive(".param"))
        lexer_.fail("parameters of functions are of .param here");
      PtxVariable variable = read_parameter(lexer_);
      variable.is_entry_parameter = function.is_entry;
      made.push_back(add_variable(function.scope, std::move(variable)));
    } while (lexer_.take(','));
    lexer_.expect(')');
    return made;
  }

  void read_function(bool is_entry) {
    PtxFunction function;
    function.is_entry = is_entry;
    function.scope = open_scope(0);
    if (lexer_.peek().is('(')) function.results = read_parameters(function);
    const Token name = lexer_.expect(Kind::word, "the name of a function");
    function.name = name.text;
    function.line = name.line;
    if (lexer_.peek().is('(')) function.parameters = read_parameters(function);
    while (read_function_directive(function)) {
    }
    if (!lexer_.take(';')) {
      function.has_body = true;
      function.first = static_cast<uint32_t>(module_.instructions.size());
      add_function(function);  // before the body: it may name itself, which decode refuses
      read_body(function.scope);
      function.end = static_cast<uint32_t>(module_.instructions.size());
    }
    add_function(std::move(function));
  }

  void add_function(PtxFunction function) {
    const auto index = static_cast<uint32_t>(module_.functions.size());
    const auto [entry, is_new] = module_.scopes[0].names.try_emplace(
        function.name, PtxSymbol{PtxSymbol::Kind::function, index});
    if (is_new) {
      module_.functions.push_back(std::move(function));
      return;
    }
    const bool is_function = entry->second.kind == PtxSymbol::Kind::function;
    PtxFunction* const known = is_function ? &module_.functions[entry->second.index] : nullptr;
    if (!known || (known->has_body && function.scope != known->scope && function.has_body))
      fail_ptx(module_.text, function.line, quote_ptx(function.name) + " is declared twice");
    if (function.has_body) *known = std::move(function);
  }

  std::array<uint32_t, 3> read_extents() {
    std::array<uint32_t, 3> extents = {1, 1, 1};
    size_t count = 0;
    do {
      const Token token = lexer_.expect(Kind::integer, "a number of threads");
      if (count == 3 || token.bits == 0 || token.bits > 1024)
        lexer_.fail_last("one to three numbers of 1 to 1024 are wanted");
      extents[count++] = static_cast<uint32_t>(token.bits);
    } while (lexer_.take(','));
    return extents;
  }

  bool read_function_directive(PtxFunction& function) {
    if (lexer_.peek().is('{') || lexer_.peek().is(';')) return false;
    if (lexer_.take_directive(".maxntid")) {
      function.max_threads = read_extents();
    } else if (lexer_.take_directive(".reqntid")) {
      function.required_threads = read_extents();
    } else if (lexer_.take_directive(".minnctapersm")) {
      const Token token = lexer_.expect(Kind::integer, "a number of blocks");
      function.min_blocks = static_cast<uint32_t>(std::min<uint64_t>(token.bits, 1024));
    } else if (lexer_.take_directive(".maxnreg") || lexer_.take_directive(".maxnctapersm")) {
      lexer_.expect(Kind::integer, "a number");
    } else if (lexer_.take_directive(".pragma")) {
      skip_pragma();
    } else if (!lexer_.take_directive(".noreturn")) {
      unknown_directive(kFunctionDirectives);
    }
    return true;
  }

  void read_body(uint32_t scope) {
    lexer_.expect('{');
    Place place;
    place.scope = scope;
    place.depth = 1;
    while (place.depth > 0) statement(place);
  }

  void statement(Place& place) {
    const Token& token = lexer_.peek();
    if (lexer_.take(';')) return;
    if (lexer_.take('{')) {
      if (++place.depth > kDeepestScope) lexer_.fail_last("braces are nested too deep");
      place.scope = open_scope(place.scope);
    } else if (lexer_.take('}')) {
      --place.depth;
      place.scope = module_.scopes[place.scope].parent;
    } else if (token.kind == Kind::directive) {
      directive(place);
    } else if (token.kind == Kind::word || token.is('@')) {
      label_or_instruction(place);
    } else {
      lexer_.fail("found " +
                  (token.kind == Kind::end ? "the end of the text" : quote_ptx(token.text)) +
                  ", expected an instruction");
    }
  }

  void directive(Place& place) {
    if (lexer_.take_directive(".loc")) return read_location(place);
    if (lexer_.take_directive(".reg")) return read_registers(place.scope);
    if (lexer_.take_directive(".pragma")) return skip_pragma();
    if (lexer_.take_directive(".file")) return skip_file();
    bool is_extern = lexer_.take_directive(".extern");
    if (!read_variables(place.scope, is_extern)) unknown_directive(kBodyDirectives);
  }

  void read_registers(uint32_t scope) {
    const Token word = lexer_.expect(Kind::directive, "a type");
    const Type type = find_type(word.text.substr(1));
    if (type == Type::none)
      fail_ptx(module_.text, word.line, "unknown type " + quote_ptx(word.text) + " of registers");
    do {
      const Token name = lexer_.expect(Kind::word, "the name of a register");
      uint32_t count = 0;
      if (lexer_.take('<')) {
        const Token number = lexer_.expect(Kind::integer, "a number of registers");
        count = static_cast<uint32_t>(std::clamp<uint64_t>(number.bits, 1, uint64_t{1} << 31));
        lexer_.expect('>');
      }
      const auto index = static_cast<uint32_t>(module_.registers.size());
      declare(scope, name.text, {PtxSymbol::Kind::registers, index}, name.line);
      module_.registers.push_back({type, count});
    } while (lexer_.take(','));
    lexer_.expect(';');
  }

  // Three numbers; the key to Place::outermost, and the line.
  std::pair<std::string, int> read_place() {
    std::array<uint64_t, 3> numbers;
    for (uint64_t& number : numbers) number = lexer_.expect(Kind::integer, "a number").bits;
    const std::string key = std::to_string(numbers[0]) + ":" + std::to_string(numbers[1]) + ":" +
                            std::to_string(numbers[2]);
    return {key, static_cast<int>(std::min<uint64_t>(numbers[1], INT32_MAX))};
  }

  // .loc 1 203 3, function_name $L__info_string3+0, inlined_at 1 1320 7
  void read_location(Place& place) {
    const auto [key, line] = read_place();
    int outermost = line;
    while (lexer_.take(',')) {
      const Token word = lexer_.expect(Kind::word, "function_name or inlined_at");
      if (word.text == "function_name") {
        lexer_.expect(Kind::word, "a label");
        if (lexer_.take('+')) lexer_.expect(Kind::integer, "a number");
      } else if (word.text == "inlined_at") {
        const auto [caller, caller_line] = read_place();
        const auto known = place.outermost.find(caller);
        outermost = known == place.outermost.end() ? caller_line : known->second;
      } else {
        lexer_.fail_last("unknown word " + quote_ptx(word.text) + " of .loc");
      }
    }
    place.outermost[key] = outermost;
    place.source_line = outermost;
  }

  void label_or_instruction(Place& place) {
    PtxInstruction instruction;
    instruction.line = lexer_.peek().line;
    instruction.scope = place.scope;
    instruction.source_line = place.source_line;
    if (lexer_.take('@')) {
      instruction.guard_negated = lexer_.take('!');
      instruction.guard = lexer_.expect(Kind::word, "a predicate").text;
    }
    const Token word = lexer_.expect(Kind::word, "an instruction");
    if (instruction.guard.empty() && lexer_.take(':')) return read_label(place.scope, word);
    instruction.words = word.text;
    read_operands(instruction);
    lexer_.expect(';');
    module_.instructions.push_back(instruction);
  }

  void read_label(uint32_t scope, const Token& name) {
    if (lexer_.take_directive(".branchtargets")) {
      const auto index = static_cast<uint32_t>(module_.tables.size());
      declare(scope, name.text, {PtxSymbol::Kind::table, index}, name.line);
      PtxTable table{.labels = {}, .scope = scope, .line = name.line};
      do {
        table.labels.push_back(lexer_.expect(Kind::word, "a label").text);
      } while (lexer_.take(','));
      module_.tables.push_back(std::move(table));
      lexer_.expect(';');
      return;
    }
    if (lexer_.take_directive(".callprototype") || lexer_.take_directive(".calltargets")) {
      declare(scope, name.text, {PtxSymbol::Kind::prototype, 0}, name.line);
      while (!lexer_.take(';'))
        if (lexer_.next().kind == Kind::end) lexer_.fail("found the end of the text");
      return;
    }
    const auto index = static_cast<uint32_t>(module_.instructions.size());
    declare(scope, name.text, {PtxSymbol::Kind::label, index}, name.line);
  }

  void read_operands(PtxInstruction& instruction) {
    std::vector<PtxOperand> operands;
    if (!lexer_.peek().is(';')) {
      do {
        operands.push_back(read_operand());
      } while (lexer_.take(','));
    }
    instruction.first = static_cast<uint32_t>(module_.operands.size());
    instruction.count = static_cast<uint32_t>(operands.size());
    module_.operands.insert(module_.operands.end(), operands.begin(), operands.end());
  }

  PtxOperand read_operand() {
    if (lexer_.take('{')) return read_elements(PtxOperand::Kind::vector, '}');
    if (lexer_.take('(')) return read_elements(PtxOperand::Kind::list, ')');
    if (!lexer_.take('[')) return read_scalar();
    PtxOperand operand = read_scalar();
    const bool absolute = operand.kind == PtxOperand::Kind::integer;
    if (operand.negated || !operand.second.empty() ||
        (!absolute && operand.kind != PtxOperand::Kind::name)) {
      lexer_.fail_last("an address is a register, variable or number, with an offset");
    }
    operand.kind = PtxOperand::Kind::address;
    lexer_.expect(']');
    return operand;
  }

  PtxOperand read_elements(PtxOperand::Kind kind, char close) {
    PtxOperand operand;
    operand.kind = kind;
    operand.first = static_cast<uint32_t>(module_.operands.size());
    if (!lexer_.take(close)) {
      do {
        module_.operands.push_back(read_scalar());
      } while (lexer_.take(','));
      lexer_.expect(close);
    }
    operand.count = static_cast<uint32_t>(module_.operands.size()) - operand.first;
    return operand;
  }

  PtxOperand read_scalar() {
    PtxOperand operand;
    operand.negated = lexer_.take('!');
    if (lexer_.peek().kind != Kind::word) {
      const PtxNumber number = read_number(lexer_);
      operand.bits = number.bits;
      operand.kind = number.type == Type::f32   ? PtxOperand::Kind::real32
                     : number.type == Type::f64 ? PtxOperand::Kind::real64
                                                : PtxOperand::Kind::integer;
      return operand;
    }
    operand.name = lexer_.next().text;
    operand.kind = operand.name == "_" ? PtxOperand::Kind::sink : PtxOperand::Kind::name;
    if (lexer_.take('|')) operand.second = lexer_.expect(Kind::word, "a predicate").text;
    if (lexer_.take('+'))
      operand.bits = read_number(lexer_).bits;
    else if (lexer_.peek().is('-'))
      operand.bits = read_number(lexer_).bits;
    return operand;
  }

  Lexer lexer_;
  PtxModule module_;
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
  if (text.size() > kMostText) {
    throw UserError("PTX text of " + std::to_string(text.size()) + " bytes; " +
                    std::to_string(kMostText) + " at most");
  }
  return Parser(text).parse();
}

}  // namespace stitch::ptxsim
