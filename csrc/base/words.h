// The words that a user writes, and lists of them as messages show them.
#pragma once

#include <algorithm>
#include <charconv>
#include <functional>
#include <iomanip>
#include <iterator>
#include <numeric>
#include <optional>
#include <ranges>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace stitch {

inline std::vector<std::string> split_at_blanks(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}
// Between blanks and commas.
inline std::vector<std::string> split_words(std::string text) {
  std::ranges::replace(text, ',', ' ');
  return split_at_blanks(text);
}

// The whole text as a number; nothing where it is none.
template <class Number = int64_t>
std::optional<Number> to_number(std::string_view text) {
  Number number{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = result.ec == std::errc() && result.ptr == text.data() + text.size();
  return is_whole ? std::optional(number) : std::nullopt;
}

// As a string of JSON.
inline std::string quote_json(const std::string& text) {
  std::ostringstream quoted;
  for (const char c : text)
    if (c == '"' || c == '\\')
      quoted << '\\' << c;
    else if (static_cast<unsigned char>(c) < ' ')
      quoted << "\\u" << std::hex << std::setw(4) << std::setfill('0') << int{c};
    else
      quoted << c;
  return "\"" + quoted.str() + "\"";
}

inline int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];  // distance of the prefixes one shorter on both sides
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}
// Which of the valid names did the user mean?  That of the candidate with the smallest edit
// distance, of the first of several; empty without candidates.
template <class List = std::vector<std::string>, class Name = std::identity>
std::string nearest_name(std::string_view name, const List& candidates, Name name_of = {}) {
  const auto distance = [&](const auto& text) { return edit_distance(name, text); };
  const auto names = candidates | std::views::transform(name_of);
  const auto best = std::ranges::min_element(names, {}, distance);
  return best == names.end() ? std::string() : std::string(*best);
}

// The parts one after another; numbers in decimal, others that to_string prints as it does.
template <class... Parts>
std::string concat(const Parts&... parts) {
  using std::to_string;
  std::string text;
  const auto add = [&](const auto& part) {
    if constexpr (requires { to_string(part); })
      text += to_string(part);
    else
      text += part;
  };
  (add(parts), ...);
  return text;
}

// Of items, or of what `print` makes of each, as concat has them.
template <class List, class Print = std::identity>
std::string join(const List& list, std::string_view separator, Print print = {}) {
  std::string text;
  for (const auto& item : list) {
    if (!text.empty()) text += separator;
    text += concat(std::invoke(print, item));
  }
  return text;
}

}  // namespace stitch
