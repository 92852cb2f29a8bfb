// Lists as text: the words that a user writes, and what messages show.
#pragma once

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace stitch {

inline std::vector<std::string> split_at_blanks(const std::string& text) {
  std::istringstream words(text);
  std::vector<std::string> result;
  for (std::string word; words >> word;) result.push_back(word);
  return result;
}
// Between blanks and commas.
inline std::vector<std::string> split_words(std::string text) {
  std::ranges::replace(text, ',', ' ');
  return split_at_blanks(text);
}

template <class List, class Print = std::identity>
std::string join(const List& list, std::string_view separator, Print print = {}) {
  std::string text;
  for (const auto& item : list) {
    if (!text.empty()) text += separator;
    text += std::invoke(print, item);
  }
  return text;
}

}  // namespace stitch
