#include "ptxsim/memory/views.h"

#include <algorithm>

namespace stitch::ptxsim {
namespace {

std::string index_text(const std::vector<int64_t>& index) {
  std::string text = "[";
  for (size_t i = 0; i < index.size(); ++i) text += (i ? ", " : "") + std::to_string(index[i]);
  return text + "]";
}

uint64_t distance(const View& view, uint64_t address) {
  if (address < view.address) return view.address - address;
  const uint64_t end = view.address + view.bytes;
  return address < end ? 0 : address - end;
}

}  // namespace

std::string view_name(const View& view) {
  std::string text = view.name + " (";
  text += view.type.empty() ? std::to_string(view.element_bytes) + "-byte elements" : view.type;
  if (view.sizes.empty())
    return text + " [" + std::to_string(view.bytes / std::max(view.element_bytes, 1u)) + "])";
  for (size_t i = 0; i < view.sizes.size(); ++i)
    text += (i ? ", " : " [") + std::to_string(view.sizes[i]);
  return text + "])";
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
  std::vector<size_t> by_stride(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) by_stride[i] = i;
  std::stable_sort(by_stride.begin(), by_stride.end(),
                   [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  const uint64_t offset = address - view.address;
  int64_t rest = int64_t(offset / view.element_bytes);
  std::vector<int64_t> index(sizes.size(), 0);
  for (const size_t i : by_stride) {
    if (strides[i] <= 0 || sizes[i] <= 1) continue;
    index[i] = std::min(rest / strides[i], sizes[i] - 1);
    rest -= index[i] * strides[i];
  }
  if (rest) return view.name + " + " + std::to_string(offset) + " bytes (between elements)";
  const uint64_t within = offset % view.element_bytes;
  return view.name + index_text(index) + (within ? " + " + std::to_string(within) + " bytes" : "");
}

std::string locate(const std::vector<View>& views, uint64_t address) {
  const View* nearest = nullptr;
  for (const View& view : views) {
    const bool is_inside = address - view.address < view.bytes;
    if (is_inside && view.role != View::Role::freed) return element_name(view, address);
    const bool is_closer = !nearest || distance(view, address) < distance(*nearest, address);
    if (is_closer || (is_inside && nearest->address + nearest->bytes == address)) nearest = &view;
  }
  if (!nearest) return "address " + std::to_string(address) + ", where nothing is";
  if (address - nearest->address < nearest->bytes)
    return element_name(*nearest, address) + " of " + view_name(*nearest) + ", which is freed";
  return std::to_string(distance(*nearest, address)) +
         (address < nearest->address ? " bytes before " : " bytes past ") + view_name(*nearest) +
         (nearest->role == View::Role::freed ? ", which is freed" : "");
}

}  // namespace stitch::ptxsim
