#include "codegen/kernel_body.h"

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

// Backwards, so that what only an unused definition read goes too.
void erase_unused(std::vector<Statement>& statements, std::map<std::string, int>& uses) {
  for (size_t i = statements.size(); i-- > 0;) {
    Statement& s = statements[i];
    erase_unused(s.body, uses);
    if (s.kind != Statement::Kind::kLet || uses[s.name] > 0) continue;
    for_each_name(s.expr, [&](const std::string& word, size_t) { --uses[word]; });
    statements.erase(statements.begin() + static_cast<std::ptrdiff_t>(i));
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
      for_each_name(*text, [&](const std::string& word, size_t) { ++uses[word]; });
    // The target of an assignment names its array and its index.
    if (s.kind == Statement::Kind::kAssign)
      for_each_name(s.name, [&](const std::string& word, size_t) { ++uses[word]; });
    count_names(s.body, uses);
  }
}

void find_targets(const Statement& s, std::set<std::string>& targets) {
  targets.insert(s.base_name());
  for (const Statement& inner : s.body) find_targets(inner, targets);
  if (s.kind != Statement::Kind::kCall) return;
  targets.insert("block");
  for_each_name(s.expr, [&](const std::string& word, size_t) {
    if (word.starts_with("s_")) targets.insert(word);
  });
}

KernelBody remove_unused(KernelBody body) {
  std::map<std::string, int> uses;
  count_names(body, uses);
  erase_unused(body, uses);
  return body;
}

std::string to_string(const KernelBody& body, int indent) {
  std::string out;
  for (const Statement& statement : body) print(statement, indent, out);
  return out;
}

int end_of_uses(const KernelBody& body, const std::set<std::string>& names) {
  int end = static_cast<int>(body.size());
  for (; end > 0; --end) {
    std::map<std::string, int> uses;
    count_names({body[end - 1]}, uses);
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
    for (const Statement& s : body) {
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
      (stays ? split.second : split.first).push_back(s);
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

int64_t place_arrays(KernelBody& body) {
  std::vector<Statement*> arrays;
  find_arrays(body, arrays);
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
