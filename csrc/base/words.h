// The words of a list that a user writes.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace stitch {

// Between blanks and commas.
inline std::vector<std::string> split_words(std::string text) {
  std::ranges::replace(text, ',', ' ');
  std::istringstream words(text);
  std::vector<std::string> result;
  for (std::string word; words >> word;) result.push_back(word);
  return result;
}

}  // namespace stitch
