// Which of the valid names did the user mean?
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stitch {

int edit_distance(std::string_view a, std::string_view b);
// The candidate with the smallest edit distance, the first of several; empty without candidates.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace stitch
