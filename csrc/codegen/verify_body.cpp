#include "base/verify.h"
#include "base/words.h"
#include "codegen/kernel_body.h"

namespace stitch {
namespace {

using Kind = Statement::Kind;

struct KnownName {
  bool is_constant = false;
  bool varies = false;  // from thread to thread, or as memory has it
  int64_t count = -1;   // of an array
};
using KnownNames = std::map<std::string, KnownName>;

// Names the lowering makes: a letter or two and a number (s_12, x0, ok3, i1, p0, n2).
bool is_made(const std::string& word) {
  static const std::set<std::string> prefixes = {"s_", "x", "b", "r", "ok", "i",
                                                 "g",  "t", "p", "n", "k"};
  static const std::set<std::string> types = {"i8", "i16", "i32", "i64"};
  const size_t digits = word.find_last_not_of("0123456789") + 1;
  return digits < word.size() && prefixes.contains(word.substr(0, digits)) && !types.contains(word);
}

// Whether it varies.
bool verify_names(const std::string& text, const KnownNames& known) {
  bool varies = false;
  for_each_name(text, [&](const std::string& word, size_t end) {
    const auto hold = rules_of("body", word, " in ", text);
    const auto name = known.find(word);
    hold(name != known.end() || !is_made(word), "defined-before-use");
    varies |= word == "tid" || (name != known.end() && name->second.varies);
    if (name == known.end() || name->second.count < 0 || text[end] != '[') return;
    const auto index = to_number(text.substr(end + 1, text.find(']', end) - end - 1));
    hold(!index || (*index >= 0 && *index < std::max<int64_t>(1, name->second.count)),
         "index-in-array");
  });
  return varies;
}

bool waits_for_others(const Statement& s) {
  const auto calls = [&](const char* name) { return s.expr.find(name) != std::string::npos; };
  return s.kind == Kind::kReduce || calls("fill_tile<") || calls("block_barrier(");
}

// `taken`: names that are not to be defined again.
void verify(const std::vector<Statement>& statements, KnownNames known, std::set<std::string> taken,
            bool is_uneven) {
  for (const Statement& s : statements) {
    const auto hold = rules_of("body", s.type, " ", s.name, " = ", s.expr);
    const std::string name = s.base_name(), lanes = s.type.substr(s.type.find(", ") + 1);
    const bool varies = verify_names(s.expr, known);
    verify_names(s.predicate, known);
    hold(!waits_for_others(s) || s.predicate.empty(), "barrier-for-all");
    hold(!waits_for_others(s) || !is_uneven, "barrier-in-even-loop");
    hold(s.count >= 0, "count-of-array");
    hold(!s.type.starts_with("Vec<") || lanes == " 2>" || lanes == " 4>" || lanes == " 8>",
         "vector-width");
    if (s.kind == Kind::kAssign) {
      verify_names(s.name, known);
      hold(!known.contains(name) || !known[name].is_constant, "constant-stays");
      known[name].varies |= varies;
    } else if (s.kind == Kind::kReduce) {
      known.try_emplace(name, KnownName{true, varies});
      taken.insert(name);
    } else if (s.kind == Kind::kLoop) {
      const bool may_differ = verify_names(s.bound, known) || varies;
      // A loop over an open loop's index has names of its own for what depends on it.
      KnownNames inner = known;
      const bool is_new = inner.insert_or_assign(name, KnownName{true, may_differ}).second;
      verify(s.body, std::move(inner), is_new ? taken : std::set<std::string>(),
             is_uneven || may_differ);
    } else if (s.kind != Kind::kCall) {
      const bool is_constant = s.kind == Kind::kLet && !s.type.ends_with('*');
      known[name] = {is_constant, varies, s.kind == Kind::kArray ? s.count : -1};
      hold(taken.insert(name).second, "defined-once");
    }
  }
}

}  // namespace

void verify_body(const KernelBody& body, const std::vector<std::string>& parameters) {
  KnownNames known;
  for (const std::string& name : parameters) known[name].varies = !name.starts_with('n');
  verify(body, std::move(known), {parameters.begin(), parameters.end()}, false);
}

}  // namespace stitch
