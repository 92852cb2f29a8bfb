// ValueLowering's persistent values: put on chip where they are first met, taken from there later.
#include <algorithm>

#include "codegen/lower_values.h"
#include "schedule/persistent_values.h"

namespace stitch {

// What only owners load first is of no use to the other threads.
const PersistentValue* ValueLowering::persistent_of(NodeId value, bool by_owner) {
  const PersistentValue* persistent = find_persistent(schedule_, value);
  if (!persistent || passed_over_.count(value)) return nullptr;
  if (!by_owner || !persistent->is_of_stage || held_.count(value)) return persistent;
  passed_over_.insert(value);
  return nullptr;
}

Handle ValueLowering::load_persistent(const PersistentValue& persistent, const std::string& type,
                                      const std::string& loaded, int depth) {
  const std::string held = take_persistent(persistent, type);
  const bool is_first = held_.insert(persistent.value).second;
  if (!is_first) return let(type, held, depth);
  std::vector<Statement>& statements = scopes_.open[depth].statements;
  if (persistent.is_filled) {
    put_persistent(persistent, loaded, "!has_" + array_of(persistent), statements);
    return let(type, held, depth);
  }
  const Handle fresh = let(type, loaded, depth);
  put_persistent(persistent, values[fresh].text, "", statements);
  return fresh;
}

std::string ValueLowering::array_of(const PersistentValue& persistent) const {
  return "k" + std::to_string(&persistent - schedule_.persistent.data());
}

// "shared + 4096, i0" : where the access's slot is.
std::string ValueLowering::slot_of(const PersistentValue& persistent, const std::string& at) const {
  const Home& home = persistent.home;
  const std::string slot =
      home.in_registers == 0 ? at : at + " - " + std::to_string(home.in_registers);
  return "shared + " + std::to_string(home.shared_offset) + ", " + slot;
}

std::string ValueLowering::take_persistent(const PersistentValue& persistent,
                                           const std::string& type) const {
  const Home& home = persistent.home;
  const std::string at = scopes_.position(persistent.loops).text;
  const std::string array =
      "from_registers<" + type + ">(" + array_of(persistent) + "[" + at + "])";
  const std::string slot = "take_slot<" + type + ", " + std::to_string(schedule_.threads) + ">(" +
                           slot_of(persistent, at) + ")";
  if (home.in_shared == 0) return array;
  if (home.in_registers == 0) return slot;
  return at + " < " + std::to_string(home.in_registers) + " ? " + array + " : " + slot;
}

void ValueLowering::put_persistent(const PersistentValue& persistent, const std::string& text,
                                   const std::string& predicate,
                                   std::vector<Statement>& statements) const {
  const Home& home = persistent.home;
  const std::string at = scopes_.position(persistent.loops).text;
  const std::string border = at + " < " + std::to_string(home.in_registers);
  const bool is_split = home.in_registers > 0 && home.in_shared > 0;
  auto only = [&](const std::string& condition) {
    if (!is_split) return predicate;
    return condition + (predicate.empty() ? "" : " && " + predicate);
  };
  if (home.in_registers > 0) {
    statements.push_back(Statement::store(array_of(persistent) + "[" + at + "]",
                                          "to_registers(" + text + ")", only(border)));
  }
  if (home.in_shared > 0) {
    const std::string put = "put_slot<" + std::to_string(schedule_.threads) + ">(" +
                            slot_of(persistent, at) + ", " + text + ")";
    statements.push_back(Statement::call(put, only("!(" + border + ")")));
  }
}

bool ValueLowering::keeps_in_registers_over(int loop) const {
  return std::ranges::any_of(schedule_.persistent, [&](const PersistentValue& persistent) {
    const std::vector<int>& loops = persistent.loops;
    return persistent.home.in_registers > 0 && std::ranges::count(loops, loop) > 0;
  });
}

}  // namespace stitch
