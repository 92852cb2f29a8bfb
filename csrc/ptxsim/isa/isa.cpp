#include "ptxsim/isa/isa.h"

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_map>
#include <utility>

#include "base/words.h"

namespace stitch::ptxsim {
namespace {

constexpr std::array kRows = {
#define PTX_ROW(id, name, operands, types, sources, modifiers, flow) \
  Row{Opcode::id, name, operands, types, sources, modifiers, Flow::flow},
#include "ptxsim/isa/ptx.def"
#undef PTX_ROW
};

using Views = std::vector<std::string_view>;

Views split(std::string_view text, char separator) {
  Views parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(separator, start), text.size());
    if (end > start || separator == '.') parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

// A word of the text: `token` is what a row's modifiers call it, words of one group exclude each
// other.
struct WordRule {
  std::string_view word;
  std::string_view token;
  std::string_view group;
  std::function<void(Modifiers&)> apply = [](Modifiers&) {};
};
using Rules = std::vector<WordRule>;

// The names of values from `first` on; `token` empty: each is its own.
template <class Enum>
void add_values(Rules& rules, Enum Modifiers::* field, Enum first, Enum last,
                std::string_view token, std::string_view group) {
  for (int i = int(first); i <= int(last); ++i) {
    const Enum value = static_cast<Enum>(i);
    const std::string_view name = i ? name_of(value) : word_of(names_of(value), 0);
    rules.push_back(
        {name, token.empty() ? name : token, group, [=](auto& m) { m.*field = value; }});
  }
}

constexpr std::string_view kCacheHints =
    "ca cg cs lu cv wb wt L2 L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last "
    "L1::no_allocate L2::evict_normal L2::evict_first L2::evict_last L2::64B L2::128B L2::256B";

Rules make_rules() {
  using M = Modifiers;
  Rules rules;
  add_values(rules, &M::rounding, Rounding::rn, Rounding::rpi, "", "rounding");
  add_values(rules, &M::compare, Compare::eq, Compare::nan, "#", "#");
  add_values(rules, &M::scope, Scope::cta, Scope::sys, "@", "@");
  rules.push_back({"gl", "gl", "@", [](M& m) { m.scope = Scope::gpu; }});
  add_values(rules, &M::order, Order::weak, Order::acq_rel, "order", "order");
  rules.push_back({"sc", "sc", "order", [](M& m) { m.order = Order::sc; }});
  rules.push_back({"volatile", "order", "order", [](M& m) {
                     m.order = Order::relaxed;
                     m.scope = Scope::sys;
                     m.is_volatile = true;
                   }});
  add_values(rules, &M::space, Space::global, Space::param, "space", "space");
  rules.push_back({"shared::cta", "space", "space", [](M& m) { m.space = Space::shared; }});
  for (const std::string_view word : {"param::entry", "param::func"})
    rules.push_back({word, "space", "space", [](M& m) { m.space = Space::param; }});
  const std::pair<std::string_view, void (*)(M&)> flags[] = {
      {"ftz", [](M& m) { m.ftz = true; }},         {"sat", [](M& m) { m.sat = true; }},
      {"approx", [](M& m) { m.approx = true; }},   {"full", [](M& m) { m.full = true; }},
      {"NaN", [](M& m) { m.nan = true; }},         {"xorsign", [](M& m) { m.xorsign = true; }},
      {"abs", [](M& m) { m.absolute = true; }},    {"relu", [](M& m) { m.relu = true; }},
      {"cc", [](M& m) { m.carry_out = true; }},    {"nc", [](M& m) { m.non_coherent = true; }},
      {"aligned", [](M& m) { m.aligned = true; }},
  };
  for (const auto& [word, apply] : flags) rules.push_back({word, word, word, apply});
  for (const std::string_view word : {"noftz", "mask", "cta", "uni"})
    rules.push_back({word, word, word});
  for (const std::string_view word : split(kCacheHints, ' '))
    rules.push_back({word, "cache", word});
  return rules;
}
const Rules& rules() {
  static const Rules made = make_rules();
  return made;
}

bool contains(const Views& views, std::string_view word) {
  return std::find(views.begin(), views.end(), word) != views.end();
}

// The value of that name; the first, which is none of any name, if there is no such.
template <class Enum>
Enum find_value(std::string_view name) {
  const Views names = split(names_of(Enum{}), ' ');
  for (size_t i = 1; i < names.size(); ++i)
    if (word_of(names[i], 0) == name) return static_cast<Enum>(i);
  return Enum{};
}

// A row whose strings are taken apart.
struct Grammar {
  const Row* row;
  Views name, types, source_types;
  Type implied = Type::none;
  Views tokens;   // words and groups of rules
  Views choices;  // of which Modifiers::word is one
  bool must_choose = false;
  Views defaults;

  explicit Grammar(const Row& from) : row(&from) {
    name = split(from.name, '.');
    types = split(from.types, ' ');
    source_types = split(from.source_types, ' ');
    if (from.types.starts_with('=')) implied = find_type(from.types.substr(1));
    std::string_view rest = from.modifiers;
    const size_t open = rest.find('{');
    if (open != rest.npos) {
      const size_t close = rest.find('}');
      choices = split(rest.substr(open + 1, close - open - 1), ' ');
      must_choose = !rest.substr(close + 1).starts_with('?');
    }
    const size_t close = std::min(rest.find('}'), rest.size());
    for (const std::string_view part : {rest.substr(0, std::min(open, rest.size())),
                                        rest.substr(std::min(close + 1, rest.size()))}) {
      for (const std::string_view token : split(part, ' '))
        if (token.starts_with('='))
          defaults.push_back(token.substr(1));
        else
          tokens.push_back(token);
    }
  }
};

const std::unordered_map<std::string_view, std::vector<Grammar>>& grammars() {
  static const auto* const table = [] {
    auto* made = new std::unordered_map<std::string_view, std::vector<Grammar>>;
    for (const Row& row : kRows) {
      Grammar grammar(row);
      (*made)[grammar.name[0]].push_back(std::move(grammar));
    }
    return made;
  }();
  return *table;
}

std::string quote(std::string_view word) { return "`" + std::string(word.substr(0, 64)) + "`"; }

const WordRule* find_rule(const Views& tokens, std::string_view word) {
  for (const WordRule& rule : rules())
    if (rule.word == word && contains(tokens, rule.token)) return &rule;
  return nullptr;
}

std::vector<std::string> allowed_words(const Grammar& grammar) {
  std::vector<std::string> words;
  for (const Views* views : {&grammar.types, &grammar.source_types, &grammar.choices})
    words.insert(words.end(), views->begin(), views->end());
  for (const WordRule& rule : rules())
    if (contains(grammar.tokens, rule.token)) words.emplace_back(rule.word);
  return words;
}

// Reads the words behind a row's name, one by one.
struct WordReader {
  const Grammar& grammar;
  Spelling spelling;
  Views seen;  // groups
  std::string problem;

  explicit WordReader(const Grammar& from) : grammar(from) {
    spelling.row = from.row;
    for (const std::string_view word : from.defaults) {
      for (const WordRule& rule : rules())
        if (rule.word == word) rule.apply(spelling.modifiers);
    }
  }

  bool mark(std::string_view group) {
    if (contains(seen, group)) return false;
    seen.push_back(group);
    return true;
  }

  bool take_type(std::string_view word) {
    if (spelling.type == Type::none && contains(grammar.types, word)) {
      spelling.type = find_type(word);
      return true;
    }
    if (spelling.type == Type::none || spelling.source_type != Type::none) return false;
    if (!contains(grammar.source_types, word)) return false;
    spelling.source_type = find_type(word);
    return true;
  }

  bool take_modifier(std::string_view word) {
    if (contains(grammar.choices, word)) {
      spelling.modifiers.word = find_value<Word>(word);
      return mark("choice");
    }
    if (contains(grammar.tokens, "vec") && (word == "v2" || word == "v4" || word == "v8")) {
      spelling.vector = static_cast<uint8_t>(word[1] - '0');
      return mark("vec");
    }
    const WordRule* rule = find_rule(grammar.tokens, word);
    if (!rule) return false;
    rule->apply(spelling.modifiers);
    return mark(rule->group);
  }

  void take(std::string_view word) {
    if (!problem.empty() || take_type(word) || take_modifier(word)) return;
    problem = quote(word) + " is not allowed (here) in " + quote(grammar.row->name);
    const std::string nearest = suggest_name(word, allowed_words(grammar));
    if (!nearest.empty() && nearest != word) problem += "; nearest: " + quote(nearest);
  }

  void finish() {
    if (!problem.empty()) return;
    const Modifiers& modifiers = spelling.modifiers;
    if (spelling.type == Type::none) spelling.type = grammar.implied;
    if (spelling.type == Type::none && !grammar.types.empty())
      problem = "needs a type: " + std::string(grammar.row->types);
    else if (spelling.source_type == Type::none && !grammar.source_types.empty())
      problem = "needs a type of the source: " + std::string(grammar.row->source_types);
    else if (grammar.must_choose && modifiers.word == Word::none)
      problem = "needs one of " + std::string(grammar.row->modifiers);
    else if (contains(grammar.tokens, "#") && modifiers.compare == Compare::none)
      problem = "needs a comparison: eq ne lt le gt ge ...";
    else if (modifiers.order != Order::weak && modifiers.scope == Scope::none)
      problem = "needs a scope: cta cluster gpu sys";
    else if (modifiers.order == Order::weak && modifiers.scope != Scope::none)
      problem = "has a scope and no order: relaxed acquire release acq_rel";
    if (contains(grammar.tokens, "space") && modifiers.space == Space::none)
      spelling.modifiers.space = Space::generic;
  }
};

// The words that are not of the row's name; nothing when the name's words do not stand there in
// this order, the first at the front.
bool leaves(const Grammar& grammar, const Views& words, Views& rest) {
  rest.clear();
  size_t next = 0;
  for (const std::string_view word : words) {
    const bool same =
        next < grammar.name.size() &&
        (word == grammar.name[next] || (word == "shared::cta" && grammar.name[next] == "shared"));
    if (same)
      ++next;
    else
      rest.push_back(word);
  }
  return next == grammar.name.size();
}

std::string unknown_instruction(std::string_view words) {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  std::string problem = "unknown instruction " + quote(words);
  const std::string nearest = suggest_name(words, names);
  if (!nearest.empty()) problem += "; nearest: " + quote(nearest);
  return problem;
}

}  // namespace

Type find_type(std::string_view name) { return find_value<Type>(name); }

std::string_view word_of(std::string_view names, size_t index) {
  for (; index > 0; --index) names.remove_prefix(names.find(' ') + 1);
  const std::string_view word = names.substr(0, names.find(','));
  return word.substr(0, word.size() - word.ends_with('_'));
}

const Row& row_of(Opcode opcode) { return kRows[static_cast<size_t>(opcode)]; }
std::span<const Row> all_rows() { return kRows; }

std::string suggest_name(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 64;  // the distance takes time of the product of both lengths
  return name.size() > kLongest ? std::string() : nearest_name(name, candidates);
}

std::vector<Spelling> read_words(std::string_view text, std::string& problem) {
  const Views words = split(text, '.');
  const auto found = grammars().find(words[0]);
  std::vector<Spelling> spellings;
  size_t longest = 0;
  Views rest;
  problem = unknown_instruction(text);
  if (found == grammars().end()) return spellings;
  for (const Grammar& grammar : found->second)
    if (grammar.name.size() >= longest && leaves(grammar, words, rest))
      longest = grammar.name.size();
  bool first = true;
  for (const Grammar& grammar : found->second) {
    if (grammar.name.size() != longest || !leaves(grammar, words, rest)) continue;
    WordReader reader(grammar);
    for (const std::string_view word : rest) reader.take(word);
    reader.finish();
    if (reader.problem.empty()) spellings.push_back(reader.spelling);
    if (std::exchange(first, false)) problem = quote(text) + ": " + reader.problem;
  }
  return spellings;
}

}  // namespace stitch::ptxsim
