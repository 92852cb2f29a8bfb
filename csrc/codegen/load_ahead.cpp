#include "codegen/load_ahead.h"

namespace stitch {
namespace {

constexpr int kMost = 16;  // registers of a thread

struct Ahead {
  Scopes& scopes;
  std::set<std::string> varied = {};             // what a trip computes, or reads from memory
  std::map<std::string, std::string> held = {};  // a loaded vector -> the element that holds it
  std::vector<Statement> arrays = {};
  int64_t registers = 0;

  void add_changed(const std::vector<Statement>& statements) {
    for (const Statement& s : statements) {
      add_changed(s.body);
      const bool is_fixed = s.kind == Statement::Kind::kLet || s.kind == Statement::Kind::kLoop;
      if (!is_fixed) find_targets(s, varied);
    }
  }

  // The trips of a loop that is written out, whose loads are apart; 0: of another.
  static int64_t count_trips(const Statement& s) {
    const auto end = to_number(s.bound);
    return s.kind == Statement::Kind::kLoop && end && !s.pragma.empty() ? *end : 0;
  }

  // Finds the loads among `statements`, of which there are `trips` in a trip, at place `at`.
  void find(const std::vector<Statement>& statements, int64_t trips, const std::string& at) {
    for (const Statement& s : statements) {
      std::map<std::string, int> uses;
      if (const int64_t inner = count_trips(s)) {
        find(s.body, trips * inner,
             at == "0" ? s.name : concat("(", at, ") * ", inner, " + ", s.name));
        continue;
      }
      count_names({s}, uses);
      const bool varies =
          std::ranges::any_of(uses, [&](const auto& used) { return varied.contains(used.first); });
      const bool is_load = !varies && s.may_go_ahead;
      if (varies || is_load) find_targets(s, varied);
      if (!is_load) continue;
      const std::string array = scopes.fresh();
      arrays.push_back(Statement::var(s.type, concat(array, "[", trips, "]")));
      held[s.name] = concat(array, "[", at, "]");
      registers += trips * kAheadBytes / 4;
    }
  }

  // The loads, into the elements that hold them, and what places them.
  std::vector<Statement> slice(const std::vector<Statement>& statements) const {
    std::vector<Statement> out;
    for (const Statement& s : statements) {
      if (const auto element = held.find(s.name); element != held.end())
        out.push_back(
            Statement::assign(element->second, "load_ahead" + s.expr.substr(s.expr.find('<'))));
      else if (s.kind == Statement::Kind::kLet && !varied.contains(s.name))
        out.push_back(s);
      if (count_trips(s) == 0) continue;
      Statement loop = s;
      loop.body = slice(s.body);
      const auto holds = [](const Statement& inner) { return inner.kind != Statement::Kind::kLet; };
      if (std::ranges::any_of(loop.body, holds)) out.push_back(std::move(loop));
    }
    return out;
  }

  void take(std::vector<Statement>& statements) const {
    for (Statement& s : statements) {
      take(s.body);
      if (const auto element = held.find(s.name); element != held.end()) {
        s.expr = element->second;
        s.may_go_ahead = false;
      }
    }
  }
};

}  // namespace

std::vector<Statement> load_ahead(Statement loop, int registers, Scopes& scopes) {
  const auto trips = to_number(loop.bound);
  const auto barrier = std::ranges::find(loop.body, Statement::Kind::kReduce, &Statement::kind);
  if (!trips || *trips < 2 || loop.expr != "0" || barrier == loop.body.end())
    return {std::move(loop)};
  const std::vector<Statement> before(loop.body.begin(), barrier);
  Ahead ahead{scopes};
  ahead.add_changed(loop.body);
  ahead.find(before, 1, "0");
  if (ahead.held.empty() || ahead.registers > std::min(registers, kMost)) return {std::move(loop)};
  Statement first{Statement::Kind::kLoop, loop.type, loop.name, "0"};
  first.bound = "1";
  first.pragma = "STITCH_UNROLL";
  first.body = remove_unused(ahead.slice(before));
  Statement next = first;
  next.expr = scopes.fresh();
  next.bound = concat("(", next.expr, " < ", *trips, " ? ", next.expr, " + 1 : ", next.expr, ")");
  const auto at =
      loop.body.insert(barrier, Statement::let(loop.type, next.expr, loop.name + " + 1"));
  loop.body.insert(at + 1, std::move(next));
  ahead.take(loop.body);
  std::vector<Statement> out = std::move(ahead.arrays);
  out.push_back(std::move(first));
  out.push_back(std::move(loop));
  return out;
}

}  // namespace stitch
