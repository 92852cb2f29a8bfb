// Names of what a view holds, for messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptxsim/memory/memory.h"

namespace stitch::ptxsim {

// "arg 2 (float32 [64, 100])".
std::string view_name(const View& view);
// "arg 2[3, 17]", of an address in the view; with the byte, where no element is.
std::string element_name(const View& view, uint64_t address);
// Where an address is that may be in no view: "12 bytes past arg 2 (float32 [64, 100])".
std::string locate(const std::vector<View>& views, uint64_t address);

bool overlap(const View& a, const View& b);

std::vector<int64_t> sizes_of(const View& view);
std::vector<int64_t> strides_of(const View& view);

// Calls visit(address) for each element, the last dimension fastest.
template <class Visit>
void visit_elements(const View& view, Visit visit) {
  const std::vector<int64_t> sizes = sizes_of(view), strides = strides_of(view);
  for (const int64_t size : sizes)
    if (size <= 0) return;
  std::vector<int64_t> index(sizes.size(), 0);
  int64_t offset = 0;
  for (;;) {
    visit(view.address + uint64_t(offset) * view.element_bytes);
    size_t i = sizes.size();
    while (i > 0) {
      --i;
      offset += strides[i];
      if (++index[i] < sizes[i]) break;
      offset -= index[i] * strides[i];
      index[i] = 0;
      if (i == 0) return;
    }
    if (sizes.empty()) return;
  }
}

}  // namespace stitch::ptxsim
