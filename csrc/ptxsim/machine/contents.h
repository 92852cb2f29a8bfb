// Contents: what the views of a launch held before it, and what each order leaves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptxsim/memory/memory.h"

namespace stitch::ptxsim {

// Two orders that leave other bits in an element.
struct Difference {
  uint64_t address = 0;
  std::string first, other;  // the element's bits, as a number in hexadecimal
};

class Contents {
 public:
  // Remembers what the views hold, of which the module's variables are some.  They live longer.
  explicit Contents(const std::vector<View>& views);

  // As it was before the launch; outputs and scratch hold poison.
  void restore();
  // Remembers what the first order left.
  void keep_result() { result_ = read(); }
  // What is there now against what the first order left: the first difference of each `any` and
  // output.  Scratch may differ.
  std::vector<Difference> differences() const;
  // As the first order left it.
  void restore_result() { write(result_); }

 private:
  using Bytes = std::vector<unsigned char>;
  std::vector<Bytes> read() const;
  void write(const std::vector<Bytes>& contents);

  const std::vector<View>& views_;
  std::vector<Bytes> before_;  // of each view; empty where nothing is written
  std::vector<Bytes> result_;
};

}  // namespace stitch::ptxsim
