// A set of small numbers that is emptied in constant time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace stitch {

class Marks {
 public:
  explicit Marks(size_t numbers) : stamps_(numbers, 0) {}
  void clear() { ++stamp_; }
  void assign(const std::vector<int>& numbers) {
    clear();
    for (int number : numbers) insert(number);
  }
  bool has(int number) const { return stamps_[number] == stamp_; }
  // Is it new?
  bool insert(int number) { return std::exchange(stamps_[number], stamp_) != stamp_; }

 private:
  std::vector<uint64_t> stamps_;
  uint64_t stamp_ = 1;
};

}  // namespace stitch
