// What a function makes of each element of a list, in order.
#pragma once

#include <functional>
#include <type_traits>
#include <vector>

namespace stitch {

template <class List, class Function>
auto map_to_vector(const List& list, const Function& function) {
  using Made = std::invoke_result_t<const Function&, decltype(*std::begin(list))>;
  std::vector<std::remove_cvref_t<Made>> made;
  made.reserve(std::size(list));
  for (const auto& item : list) made.push_back(std::invoke(function, item));
  return made;
}

}  // namespace stitch
