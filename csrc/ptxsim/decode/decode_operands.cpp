#include "ptxsim/decode/decode_operands.h"

#include <algorithm>
#include <bit>

#include "base/words.h"
#include "ptxsim/decode/lex_ptx.h"

namespace stitch::ptxsim {
namespace {

using Kind = PtxOperand::Kind;

constexpr uint32_t kMostUnits = 1 << 20;
constexpr uint64_t kWarpSize = 32;

// In the order of Special: "%tid.x".
const std::vector<std::string>& special_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (size_t i = 0; i <= static_cast<size_t>(Special::total_smem_size); ++i) {
      std::string name = concat("%", word_of(names_of(Special{}), i));
      if (name[name.size() - 2] == '_' && name.back() >= 'x') name[name.size() - 2] = '.';
      made.push_back(std::move(name));
    }
    return made;
  }();
  return names;
}
constexpr std::string_view kClocks[] = {"%clock",       "%clock_hi",       "%clock64",
                                        "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"};

Type type_of_width(int bytes) {
  return bytes == kPredicate ? Type::pred : sized_type(Type::b8, bytes);
}

bool is_float(Type type) { return type == Type::f32 || type == Type::f64; }
bool takes_float(Type type, int bytes) {
  return is_float(type) || type == type_of_width(bytes);  // b32 and b64 take any pattern
}

std::vector<std::string> visible_names(const PtxModule& module, uint32_t scope) {
  std::vector<std::string> names;
  constexpr size_t kMost = 1000;
  for (;; scope = module.scopes[scope].parent) {
    for (const auto& [name, symbol] : module.scopes[scope].names)
      if (names.size() < kMost && name.size() < 64) names.emplace_back(name);
    if (scope == 0) break;
  }
  names.insert(names.end(), special_names().begin(), special_names().end());
  std::sort(names.begin(), names.end());  // the same suggestion each time
  return names;
}

}  // namespace

int lane_bytes(Type type) {
  return type == Type::pred ? kPredicate : std::max(2, type_bytes(type));
}

bool is_clock(std::string_view name) {
  return std::find(std::begin(kClocks), std::end(kClocks), name) != std::end(kClocks);
}

bool find_special(std::string_view name, Special& special) {
  const std::vector<std::string>& names = special_names();
  const auto found = std::find(names.begin(), names.end(), name);
  special = static_cast<Special>(found - names.begin());
  return found != names.end();
}

void FunctionOperands::fail(const std::string& what) const {
  fail_ptx(module_.text, instruction_->line, what);
}

const PtxSymbol& FunctionOperands::find(std::string_view name, uint32_t& number) {
  const PtxSymbol* found = module_.find(instruction_->scope, name, number);
  if (found) return *found;
  const std::string nearest = suggest_name(name, visible_names(module_, instruction_->scope));
  fail(quote_ptx(name) + " is not declared" +
       (nearest.empty() ? "" : "; nearest: " + quote_ptx(nearest)));
}

const PtxSymbol& FunctionOperands::symbol(std::string_view name, PtxSymbol::Kind kind,
                                          const char* wanted) {
  uint32_t number = 0;
  const PtxSymbol& found = find(name, number);
  if (found.kind != kind) fail(quote_ptx(name) + " is not " + wanted);
  return found;
}

Slot FunctionOperands::register_of(std::string_view name) {
  uint32_t number = 0;
  const PtxSymbol& found = find(name, number);
  if (found.kind != PtxSymbol::Kind::registers) fail(quote_ptx(name) + " is not a register");
  const auto [entry, is_new] = registers_.try_emplace(uint64_t{found.index} << 32 | number);
  if (is_new) {
    const int bytes = lane_bytes(module_.registers[found.index].type);
    entry->second = temporary(bytes);
    code_.registers += bytes / 4 + (bytes == 2);
  }
  return entry->second;
}

Slot FunctionOperands::temporary(int bytes) {
  const Slot slot{code_.units, bytes};
  code_.units += slot.count();
  if (code_.units > kMostUnits) fail("the function has too many registers");
  code_.slots.push_back(slot);
  return slot;
}

// The slot of that key; `declare` says what a new one holds.
template <class Declare>
Slot FunctionOperands::intern(const std::string& key, int bytes, Declare declare) {
  const auto [entry, is_new] = constants_.try_emplace(key);
  if (is_new) {
    entry->second = temporary(bytes);
    declare(entry->second.unit);
  }
  return entry->second;
}

Slot FunctionOperands::constant(uint64_t bits, int bytes) {
  if (bytes == kPredicate) bits = bits != 0 ? ~uint64_t{0} : 0;
  if (bytes < 8) bits &= (uint64_t{1} << (bytes == 2 ? 16 : 32)) - 1;
  if (bytes > 8) fail("an immediate of 128 bits");
  return intern(concat(bytes, ":", bits), bytes, [&](uint32_t unit) {
    code_.constants.push_back({unit, type_of_width(bytes), bits});
  });
}

Slot FunctionOperands::special(Special special, int bytes) {
  if (bytes != 4 && bytes != 8) bytes = 4;
  const std::string key = concat("special ", bytes, ":", static_cast<int>(special));
  return intern(key, bytes, [&](uint32_t unit) {
    code_.specials.push_back({unit, bytes == 8 ? Type::u64 : Type::u32, special});
  });
}

uint32_t FunctionOperands::resolve(uint32_t variable) const {
  const auto alias = aliases_.find(variable);
  return alias == aliases_.end() ? variable : alias->second;
}

Slot FunctionOperands::address(uint32_t variable, uint64_t added, int bytes) {
  variable = resolve(variable);
  if (bytes != 4) bytes = 8;
  const std::string key = concat("address ", bytes, ":", variable, "+", added);
  return intern(key, bytes, [&](uint32_t unit) {
    code_.addresses.push_back({code_.constants.size(), variable, added});
    code_.constants.push_back({unit, type_of_width(bytes), 0});
  });
}

uint64_t FunctionOperands::immediate(const PtxOperand& operand, Type type) const {
  const int bytes = type == Type::none ? 4 : lane_bytes(type);
  if (operand.kind == Kind::integer) {
    if (is_float(type)) fail("a floating constant is wanted, as 0f3F800000 or 1.0");
    return operand.bits;
  }
  if (!takes_float(type, bytes)) fail("an integer is wanted, not a floating constant");
  if (operand.kind == Kind::real64 && bytes == 4)
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(operand.bits)));
  if (operand.kind == Kind::real32 && bytes == 8) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(operand.bits));
    return std::bit_cast<uint64_t>(static_cast<double>(value));
  }
  return operand.bits;
}

Slot FunctionOperands::source(const PtxOperand& operand, int bytes, Type type) {
  if (operand.kind == Kind::integer || operand.kind == Kind::real32 || operand.kind == Kind::real64)
    return constant(immediate(operand, type), bytes);
  if (operand.kind != Kind::name) fail("a register or an immediate is wanted");
  Special found{};
  if (find_special(operand.name, found)) return special(found, bytes);
  if (operand.name == "WARP_SZ") return constant(kWarpSize, bytes);
  uint32_t number = 0;
  const PtxSymbol& symbol = find(operand.name, number);
  if (symbol.kind == PtxSymbol::Kind::variable) {
    if (bytes != 4 && bytes != 8) fail("an address has 32 or 64 bits");
    return address(symbol.index, operand.bits, bytes);
  }
  if (symbol.kind == PtxSymbol::Kind::function)
    fail("the address of a function: indirect calls are not simulated");
  if (operand.bits != 0) fail("an offset belongs to an address");
  return register_of(operand.name);
}

Slot FunctionOperands::base(const PtxOperand& operand, const PtxVariable*& variable) {
  variable = nullptr;
  if (operand.kind != Kind::address) fail("an [address] is wanted");
  if (operand.name.empty()) return constant(0, 8);
  uint32_t number = 0;
  const PtxSymbol& symbol = find(operand.name, number);
  if (symbol.kind == PtxSymbol::Kind::variable) {
    variable = &module_.variables[resolve(symbol.index)];
    return address(symbol.index, 0, 8);
  }
  const Slot slot = register_of(operand.name);
  if (slot.bytes != 4 && slot.bytes != 8) fail(quote_ptx(operand.name) + " cannot be an address");
  return slot;
}

}  // namespace stitch::ptxsim
