#include "ptxsim/machine/contents.h"

#include <algorithm>
#include <cstring>

#include "ptxsim/machine/blocks.h"
#include "ptxsim/memory/views.h"

namespace stitch::ptxsim {
namespace {

unsigned char* bytes_of(const View& view) {
  return reinterpret_cast<unsigned char*>(static_cast<uintptr_t>(view.address));
}

bool is_written(const View& view) {
  return view.role != View::Role::input && view.role != View::Role::freed && view.bytes > 0;
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

Contents::Contents(const std::vector<View>& views) : views_(views), before_(read()) {}

std::vector<Contents::Bytes> Contents::read() const {
  std::vector<Bytes> contents;
  for (const View& view : views_) {
    const unsigned char* const first = bytes_of(view);
    contents.push_back(is_written(view) ? Bytes(first, first + view.bytes) : Bytes());
  }
  return contents;
}

void Contents::write(const std::vector<Bytes>& contents) {
  for (size_t i = 0; i < contents.size(); ++i)
    if (!contents[i].empty()) std::memcpy(bytes_of(views_[i]), contents[i].data(), views_[i].bytes);
}

void Contents::restore() {
  write(before_);
  for (const View& view : views_) {
    if (view.bytes == 0) continue;
    if (view.role != View::Role::output && view.role != View::Role::scratch) continue;
    if (view.strides.empty())
      poison(bytes_of(view), view.bytes);
    else
      visit_elements(view, [&](uint64_t address) {
        poison(reinterpret_cast<unsigned char*>(static_cast<uintptr_t>(address)),
               view.element_bytes);
      });
  }
}

std::vector<Difference> Contents::differences() const {
  std::vector<Difference> found;
  for (size_t i = 0; i < result_.size(); ++i) {
    const View& view = views_[i];
    if (result_[i].empty() || view.role == View::Role::scratch) continue;
    const unsigned char* now = bytes_of(view);
    if (std::memcmp(now, result_[i].data(), view.bytes) == 0) continue;
    const auto differing = std::mismatch(result_[i].begin(), result_[i].end(), now).first;
    const auto offset = static_cast<uint64_t>(differing - result_[i].begin());
    const uint64_t element = offset / view.element_bytes * view.element_bytes;
    const uint64_t size = std::min<uint64_t>(view.element_bytes, view.bytes - element);
    found.push_back({view.address + element, hexadecimal(&result_[i][element], size),
                     hexadecimal(now + element, size)});
  }
  return found;
}

}  // namespace stitch::ptxsim
