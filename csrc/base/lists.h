// What is made of each element of a list, in order; and lists that hold each element once.
#pragma once

#include <algorithm>
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

template <class Item>
void add_once(std::vector<Item>& list, const Item& item) {
  if (std::ranges::find(list, item) == list.end()) list.push_back(item);
}

}  // namespace stitch
