#include "codegen/kernel_body.h"

#include <cctype>

#include "base/error.h"
#include "ops/type.h"

namespace stitch {
namespace {

void print(const Statement& s, int indent, std::string& out) {
  const std::string pad(indent, ' ');
  auto line = [&](const std::string& text) { out += pad + text + "\n"; };
  const std::string guard = s.predicate.empty() ? "" : "if (" + s.predicate + ") ";
  switch (s.kind) {
    case Statement::Kind::kLet:
    case Statement::Kind::kReduce:
      if (s.type.empty()) return line(s.expr + ";");
      return line("const " + s.type + " " + s.name + " = " + s.expr + ";");
    case Statement::Kind::kVar:
      return line(s.type + " " + s.name + (s.expr.empty() ? "" : " = " + s.expr) + ";");
    case Statement::Kind::kArray:
      // Along an empty axis nothing is kept, but C++ has no array without elements.
      if (!s.expr.empty())
        return line("STITCH_SCRATCH(" + s.type + ", " + s.name + ", " + s.expr + ");");
      return line("STITCH_ARRAY(" + s.type + ", " + s.name + ", " +
                  std::to_string(std::max<int64_t>(1, s.count)) + ");");
    case Statement::Kind::kAssign:
    case Statement::Kind::kStore:
      return line(guard + s.name + " = " + s.expr + ";");
    case Statement::Kind::kCall:
      return line(guard + s.expr + ";");
    case Statement::Kind::kLoop:
      if (!s.pragma.empty()) line(s.pragma);
      line("for (" + s.type + " " + s.name + " = " + s.expr + "; " + s.name + " < " + s.bound +
           "; ++" + s.name + ") {");
      for (const Statement& inner : s.body) print(inner, indent + 2, out);
      return line("}");
  }
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The identifiers of an expression; numbers with their suffixes and exponents are skipped whole.
template <class Visit>
void for_each_name(const std::string& text, Visit visit) {
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end == at) {
      ++at;
      continue;
    }
    if (!std::isdigit(static_cast<unsigned char>(text[at]))) visit(text.substr(at, end - at));
    at = end;
  }
}

// Names the lowering makes: a letter or two and a number (s_12, x0, ok3, i1, p0, n2).
void check_names(const std::string& text, const std::set<std::string>& known) {
  static const std::set<std::string> prefixes = {"s_", "x", "b", "r", "ok", "i",
                                                 "g",  "t", "p", "n", "k"};
  static const std::set<std::string> types = {"i8", "i16", "i32", "i64"};
  for_each_name(text, [&](const std::string& word) {
    const size_t digits = word.find_last_not_of("0123456789") + 1;
    const bool made = digits < word.size() && prefixes.count(word.substr(0, digits));
    STITCH_CHECK(!made || types.count(word) || known.count(word),
                 "the name " << word << " is used before it is defined in: " << text);
  });
}

// Of `s_1[i0].v[2]`: s_1.
std::string base_name(const Statement& s) { return s.name.substr(0, s.name.find_first_of(".[")); }

// Backwards, so that what only an unused definition read goes too.
void erase_unused(std::vector<Statement>& statements, std::map<std::string, int>& uses) {
  for (size_t i = statements.size(); i-- > 0;) {
    Statement& s = statements[i];
    erase_unused(s.body, uses);
    if (s.kind != Statement::Kind::kLet || uses[s.name] > 0) continue;
    for_each_name(s.expr, [&](const std::string& word) { --uses[word]; });
    statements.erase(statements.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// `taken`: names that are not to be defined again.
void verify(const std::vector<Statement>& statements, std::set<std::string> known,
            std::set<std::string> taken) {
  for (const Statement& s : statements) {
    for (const std::string* text : {&s.expr, &s.predicate, &s.bound}) check_names(*text, known);
    if (s.assigns()) {
      check_names(s.name, known);
    } else if (s.kind == Statement::Kind::kReduce) {
      STITCH_CHECK(s.predicate.empty(), "a barrier sits under a predicate: " << s.expr);
      known.insert(s.name);
      taken.insert(s.name);
    } else if (s.kind == Statement::Kind::kLoop) {
      std::set<std::string> inner = known;
      // A loop over an open loop's index has names of its own for what depends on it.
      const bool is_new = inner.insert(s.name).second;
      verify(s.body, std::move(inner), is_new ? taken : std::set<std::string>());
    } else if (s.kind != Statement::Kind::kCall) {
      known.insert(base_name(s));
      STITCH_CHECK(taken.insert(base_name(s)).second, "the name " << s.name << " is defined twice");
    }
  }
}

constexpr int64_t kAlignmentBytes = 64;  // STITCH_ARRAY and STITCH_SCRATCH

int64_t count_bytes(const Statement& array) {
  int64_t element = array.type == "u32" ? 4 : 16;  // of what carries an index beside its value
  for (int type = 0; type < static_cast<int>(DType::kOpaque); ++type) {
    const DTypeInfo& known = info(static_cast<DType>(type));
    if (array.type == known.device_name || array.type == known.register_name) element = known.bytes;
  }
  return round_up(std::max<int64_t>(1, array.count) * element, kAlignmentBytes);
}

void find_arrays(std::vector<Statement>& statements, std::vector<Statement*>& found) {
  for (Statement& statement : statements) {
    if (statement.kind == Statement::Kind::kArray) found.push_back(&statement);
    find_arrays(statement.body, found);
  }
}

}  // namespace

void count_names(const std::vector<Statement>& statements, std::map<std::string, int>& uses) {
  for (const Statement& s : statements) {
    for (const std::string* text : {&s.expr, &s.predicate, &s.bound})
      for_each_name(*text, [&](const std::string& word) { ++uses[word]; });
    // The target of an assignment names its array and its index.
    if (s.assigns()) for_each_name(s.name, [&](const std::string& word) { ++uses[word]; });
    count_names(s.body, uses);
  }
}

void find_targets(const Statement& s, std::set<std::string>& targets) {
  targets.insert(base_name(s));
  for (const Statement& inner : s.body) find_targets(inner, targets);
  if (s.kind != Statement::Kind::kCall) return;
  targets.insert("block");
  for_each_name(s.expr, [&](const std::string& word) {
    if (word.starts_with("s_")) targets.insert(word);
  });
}

KernelBody remove_unused(KernelBody body) {
  std::map<std::string, int> uses;
  count_names(body.statements, uses);
  erase_unused(body.statements, uses);
  return body;
}

std::string to_string(const KernelBody& body, int indent) {
  std::string out;
  for (const Statement& statement : body.statements) print(statement, indent, out);
  return out;
}

int end_of_uses(const KernelBody& body, const std::set<std::string>& names) {
  int end = static_cast<int>(body.statements.size());
  for (; end > 0; --end) {
    std::map<std::string, int> uses;
    count_names({body.statements[end - 1]}, uses);
    if (std::ranges::any_of(names, [&](const auto& name) { return uses.count(name) > 0; })) break;
  }
  return end;
}

std::pair<KernelBody, KernelBody> split_invariant(const KernelBody& body,
                                                  std::set<std::string> variant) {
  constexpr int kMostLive = 16;
  std::set<std::string> wanted;  // by the rest
  for (size_t known = 0;;) {
    std::pair<KernelBody, KernelBody> split;
    std::set<std::string> read;  // by the rest so far: what sets it again must come later
    bool pays = false;
    int live = 0;
    for (const Statement& s : body.statements) {
      std::map<std::string, int> uses;
      std::set<std::string> targets;
      count_names({s}, uses);
      find_targets(s, targets);
      const bool is_array = s.kind == Statement::Kind::kArray || s.type.starts_with("Vec<");
      const auto varies = [&](const auto& used) { return variant.contains(used.first); };
      const auto is_bound = [&](const std::string& name) {
        return variant.contains(name) || read.contains(name) || (is_array && wanted.contains(name));
      };
      const bool stays =
          std::ranges::any_of(uses, varies) || std::ranges::any_of(targets, is_bound);
      (stays ? split.second : split.first).statements.push_back(s);
      if (stays) {
        variant.merge(targets);
        for (const auto& [name, count] : uses) read.insert(name);
      } else {
        pays |= s.kind == Statement::Kind::kReduce || s.kind == Statement::Kind::kLoop;
        live += wanted.contains(s.name);
      }
    }
    wanted.merge(read);
    if (variant.size() + wanted.size() == known)
      return pays && live <= kMostLive ? split : std::pair{KernelBody(), body};
    known = variant.size() + wanted.size();
  }
}

void verify_body(const KernelBody& body, const std::vector<std::string>& parameters) {
  const std::set<std::string> known(parameters.begin(), parameters.end());
  verify(body.statements, known, known);
}

int64_t place_arrays(KernelBody& body) {
  std::vector<Statement*> arrays;
  find_arrays(body.statements, arrays);
  std::ranges::stable_sort(arrays, {}, [](const Statement* array) { return count_bytes(*array); });
  int64_t on_stack = 0, in_scratch = 0;
  for (Statement* array : arrays) {
    const int64_t bytes = count_bytes(*array);
    const bool fits = on_stack + bytes <= kMostStackBytes;
    if (!fits) array->expr = std::to_string(in_scratch);
    (fits ? on_stack : in_scratch) += bytes;
  }
  return in_scratch;
}

}  // namespace stitch
