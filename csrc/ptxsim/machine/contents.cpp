#include "ptxsim/machine/contents.h"

#include <algorithm>
#include <cstring>

#include "ptxsim/machine/blocks.h"

namespace stitch::ptxsim {
namespace {

unsigned char* bytes_of(const View& view) {
  return reinterpret_cast<unsigned char*>(static_cast<uintptr_t>(view.address));
}

bool is_written(const View& view) {
  return view.role != View::Role::input && view.role != View::Role::freed && view.bytes > 0;
}

// Elements of dimensions [dim, end), the first of them at `at`.
void poison_elements(const View& view, size_t dim, unsigned char* at) {
  if (dim == view.sizes.size()) return poison(at, view.element_bytes);
  for (int64_t i = 0; i < view.sizes[dim]; ++i)
    poison_elements(view, dim + 1, at + i * view.strides[dim] * view.element_bytes);
}

std::string hexadecimal(const unsigned char* bytes, uint64_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "0x";
  for (uint64_t i = count; i-- > 0;) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace

Contents::Contents(const std::vector<View>& views) : views_(views) {
  before_.resize(views.size());
  result_.resize(views.size());
  for (size_t i = 0; i < views.size(); ++i)
    if (is_written(views[i]))
      before_[i].assign(bytes_of(views[i]), bytes_of(views[i]) + views[i].bytes);
}

void Contents::restore() {
  for (size_t i = 0; i < views_.size(); ++i) {
    const View& view = views_[i];
    if (before_[i].empty()) continue;
    std::memcpy(bytes_of(view), before_[i].data(), view.bytes);
  }
  for (const View& view : views_) {
    if (view.bytes == 0) continue;
    if (view.role != View::Role::output && view.role != View::Role::scratch) continue;
    if (view.strides.empty())
      poison(bytes_of(view), view.bytes);
    else
      poison_elements(view, 0, bytes_of(view));
  }
}

void Contents::keep_result() {
  for (size_t i = 0; i < views_.size(); ++i)
    if (is_written(views_[i]))
      result_[i].assign(bytes_of(views_[i]), bytes_of(views_[i]) + views_[i].bytes);
}

std::vector<Difference> Contents::differences() const {
  std::vector<Difference> found;
  for (size_t i = 0; i < views_.size(); ++i) {
    const View& view = views_[i];
    if (result_[i].empty() || view.role == View::Role::scratch) continue;
    const unsigned char* now = bytes_of(view);
    const auto differing = std::mismatch(result_[i].begin(), result_[i].end(), now).first;
    if (differing == result_[i].end()) continue;
    const auto offset = static_cast<uint64_t>(differing - result_[i].begin());
    const uint64_t element = offset / view.element_bytes * view.element_bytes;
    const uint64_t size = std::min<uint64_t>(view.element_bytes, view.bytes - element);
    found.push_back({view.address + element, hexadecimal(&result_[i][element], size),
                     hexadecimal(now + element, size)});
  }
  return found;
}

void Contents::restore_result() {
  for (size_t i = 0; i < views_.size(); ++i)
    if (!result_[i].empty()) std::memcpy(bytes_of(views_[i]), result_[i].data(), views_[i].bytes);
}

}  // namespace stitch::ptxsim
