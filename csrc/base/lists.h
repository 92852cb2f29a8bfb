// What is made of each element of a list, in order; lists that hold each element once; and what is
// found in one.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
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

// Of an ascending list.
template <class Item>
bool contains(const std::vector<Item>& list, const Item& item) {
  return std::ranges::binary_search(list, item);
}

// Of two ascending lists, ascending.
template <class Item>
std::vector<Item> unite(const std::vector<Item>& a, const std::vector<Item>& b) {
  std::vector<Item> both;
  both.reserve(a.size() + b.size());
  std::ranges::set_union(a, b, std::back_inserter(both));
  return both;
}

// 0, 1, .., count - 1.
template <class Number = int>
std::vector<Number> count_to(size_t count) {
  std::vector<Number> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// The first element of which `key` is this value; nullptr: there is none.
template <class List, class Value, class Key>
auto find_by(List&& list, const Value& value, Key key) {
  const auto at = std::ranges::find(list, value, key);
  return at == std::end(list) ? nullptr : &*at;
}

}  // namespace stitch
