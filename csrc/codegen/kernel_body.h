// KernelBody: the statements of one kernel before they are text.
//
// Expressions are in the dialect both targets share: scalars, pointers and calls into
// device/stitch.  Statements keep what a verifier must see: loops, predicates, barriers.
#pragma once

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace stitch {

struct Statement {
  enum class Kind {
    kLet,     // const `type` name = expr;
    kVar,     // `type` name = expr;
    kArray,   // `type` name[`count`]; where expr says so, at this byte of a thread's scratch
    kAssign,  // if (predicate) name = expr;
    kReduce,  // const `type` name = expr, an all_reduce: every thread must come here; without a
              // type, expr changes the array `name`
    kLoop,    // for (`type` name = expr; name < bound; ++name) body
    kCall,    // if (predicate) expr;
  };
  Kind kind;
  std::string type = {}, name = {}, expr = {};
  std::string predicate = {};  // empty: always
  std::string bound = {};      // kLoop
  std::string pragma = {};     // kLoop: "", "STITCH_UNROLL", "STITCH_SIMD(...)"
  int64_t count = 0;           // kArray
  std::vector<Statement> body = {};
  bool may_go_ahead = false;  // kLet of a vector that lies in memory (load_ahead.h)
  // The axis along which a store of a `type` may be streamed by rows, and f<2>(a, i), a value of a
  // `type`, be read from rows that fs<2>(row, count, a, i) makes; i is the index of the first.
  int by_rows_along = -1;

  // Of `s_1[i0].v[2]`: s_1.
  std::string base_name() const { return name.substr(0, name.find_first_of(".[")); }

  static Statement let(std::string type, std::string name, std::string expr) {
    return {Kind::kLet, std::move(type), std::move(name), std::move(expr)};
  }
  static Statement var(std::string type, std::string name, std::string expr = {}) {
    return {Kind::kVar, std::move(type), std::move(name), std::move(expr)};
  }
  static Statement array(std::string type, std::string name, int64_t count) {
    return {.kind = Kind::kArray, .type = std::move(type), .name = std::move(name), .count = count};
  }
  static Statement assign(std::string name, std::string expr, std::string predicate = {}) {
    return {Kind::kAssign, {}, std::move(name), std::move(expr), std::move(predicate)};
  }
  static Statement call(std::string expr, std::string predicate = {}) {
    return {Kind::kCall, {}, {}, std::move(expr), std::move(predicate)};
  }
};

using KernelBody = std::vector<Statement>;

// Calls visit(name, end) for the identifiers of an expression, which end there; numbers with their
// suffixes and exponents are skipped whole.
template <class Visit>
void for_each_name(const std::string& text, Visit visit) {
  const auto is_word = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  for (auto at = text.begin(); (at = std::find_if(at, text.end(), is_word)) != text.end();) {
    const auto end = std::find_if_not(at, text.end(), is_word);
    if (!std::isdigit(static_cast<unsigned char>(*at)))
      visit(std::string(at, end), static_cast<size_t>(end - text.begin()));
    at = end;
  }
}

// How often each name is read.
void count_names(const std::vector<Statement>& statements, std::map<std::string, int>& uses);
// What a statement sets; of a call, what it names.  What else a call does is not known: as if it
// set `block`.
void find_targets(const Statement& statement, std::set<std::string>& targets);
// Without the definitions that nothing reads: evaluation is by need, names of axes are not.
KernelBody remove_unused(KernelBody body);
std::string to_string(const KernelBody& body, int indent = 2);
// The place behind the last statement of the kernel's own that reads one of these names.
int end_of_uses(const KernelBody& body, const std::set<std::string>& names);
// What depends on none of these names, whole statements in their order, and the rest: before a loop
// and in it.  All is the rest where nothing else loops or combines threads.  Values that the rest
// reads live in registers over its loop: no arrays, and few.
std::pair<KernelBody, KernelBody> split_invariant(const KernelBody& body,
                                                  std::set<std::string> variant);
// InternalError that names the rule it breaks: `parameters` are names from outside.
void verify_body(const KernelBody& body, const std::vector<std::string>& parameters);

// Of a host kernel, which a thread of unknown stack runs: Python's smallest has 32 KB.  Arrays take
// at most kMostStackBytes of the stack together, the smallest first; the others become places in
// the thread's scratch (KernelSource::shared_bytes), named `scratch` in the text, of so many bytes.
inline constexpr int64_t kMostStackBytes = 8 << 10;
int64_t place_arrays(KernelBody& body);

}  // namespace stitch
