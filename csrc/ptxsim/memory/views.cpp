#include "ptxsim/memory/views.h"

#include <algorithm>
#include <functional>

#include "base/lists.h"
#include "base/words.h"

namespace stitch::ptxsim {
namespace {

uint64_t distance(const View& view, uint64_t address) {
  if (address < view.address) return view.address - address;
  const uint64_t end = view.address + view.bytes;
  return address < end ? 0 : address - end;
}

}  // namespace

bool overlap(const View& a, const View& b) {
  return a.address < b.address + b.bytes && b.address < a.address + a.bytes;
}

std::string view_name(const View& view) {
  const std::string sizes = view.sizes.empty()
                                ? std::to_string(view.bytes / std::max(view.element_bytes, 1u))
                                : join(view.sizes, ", ");
  return concat(view.name, " (",
                view.type.empty() ? concat(view.element_bytes, "-byte elements") : view.type, " [",
                sizes, "])");
}

std::vector<int64_t> sizes_of(const View& view) {
  return view.sizes.empty() && view.strides.empty()
             ? std::vector<int64_t>{int64_t(view.bytes / std::max(view.element_bytes, 1u))}
             : view.sizes;
}

std::vector<int64_t> strides_of(const View& view) {
  if (!view.strides.empty()) return view.strides;
  std::vector<int64_t> strides(sizes_of(view).size(), 1);
  const std::vector<int64_t> sizes = sizes_of(view);
  for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

std::string element_name(const View& view, uint64_t address) {
  const std::vector<int64_t> sizes = sizes_of(view), strides = strides_of(view);
  std::vector<size_t> by_stride = count_to<size_t>(sizes.size());
  std::ranges::stable_sort(by_stride, std::greater(), [&](size_t i) { return strides[i]; });
  const uint64_t offset = address - view.address;
  int64_t rest = int64_t(offset / view.element_bytes);
  std::vector<int64_t> index(sizes.size(), 0);
  for (const size_t i : by_stride) {
    if (strides[i] <= 0 || sizes[i] <= 1) continue;
    index[i] = std::min(rest / strides[i], sizes[i] - 1);
    rest -= index[i] * strides[i];
  }
  if (rest) return concat(view.name, " + ", offset, " bytes (between elements)");
  const uint64_t within = offset % view.element_bytes;
  return concat(view.name, "[", join(index, ", "), "]",
                within ? concat(" + ", within, " bytes") : "");
}

std::string locate(const std::vector<View>& views, uint64_t address) {
  const View* nearest = nullptr;
  for (const View& view : views) {
    const bool is_inside = address - view.address < view.bytes;
    if (is_inside && view.role != View::Role::freed) return element_name(view, address);
    const bool is_closer = !nearest || distance(view, address) < distance(*nearest, address);
    if (is_closer || (is_inside && nearest->address + nearest->bytes == address)) nearest = &view;
  }
  if (!nearest) return concat("address ", address, ", where nothing is");
  if (address - nearest->address < nearest->bytes)
    return element_name(*nearest, address) + " of " + view_name(*nearest) + ", which is freed";
  return concat(distance(*nearest, address),
                address < nearest->address ? " bytes before " : " bytes past ", view_name(*nearest),
                nearest->role == View::Role::freed ? ", which is freed" : "");
}

}  // namespace stitch::ptxsim
