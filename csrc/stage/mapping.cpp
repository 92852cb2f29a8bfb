#include "stage/mapping.h"

#include <bit>
#include <sstream>
#include <utility>

namespace stitch {

Dim MappedAxis::count(Level level) const {
  const Digit* digit = find_by(digits, level, &Digit::level);
  return digit ? digit->count : Dim(1);
}

void MappedAxis::set(Level level, Dim count, int shift) {
  const auto at = std::ranges::lower_bound(digits, level, {}, &Digit::level);
  const bool is_there = at != digits.end() && at->level == level;
  if (count.is(1) && level != Level::kGrid) {
    if (is_there) digits.erase(at);
  } else if (is_there) {
    *at = {level, std::move(count), shift};
  } else {
    digits.insert(at, {level, std::move(count), shift});
  }
}

int MappedAxis::set_threads(int count, int shift) {
  const int lanes = std::min(count, std::max(1, (1 << kLaneBits) >> shift));
  set(Level::kLane, lanes, shift);
  set(Level::kWarp, count / lanes, std::max(shift, kLaneBits));
  return shift + std::countr_zero(static_cast<unsigned>(count));
}

int MappedAxis::threads() const { return 1 << std::popcount(thread_bits()); }

unsigned MappedAxis::thread_bits() const {
  unsigned bits = 0;
  for (const Digit& digit : digits)
    if (digit.level == Level::kLane || digit.level == Level::kWarp)
      bits |= static_cast<unsigned>(digit.count.value() - 1) << digit.shift;
  return bits;
}

namespace {

Dim multiply_counts(const MappedAxis& mapped, Level first, Level end) {
  Dim product = 1;
  for (const Digit& digit : mapped.digits)
    if (digit.level >= first && digit.level < end) product = product * digit.count;
  return product;
}

}  // namespace

Dim MappedAxis::extent_below(Level level) const {
  return multiply_counts(*this, Level::kVector, level);
}

Dim MappedAxis::trips() const {
  if (has(Level::kChunk)) return axis.extent;  // of its chunks the last one may be shorter
  return multiply_counts(*this, Level::kSerial, Level::kCluster);
}

std::optional<int64_t> MappedAxis::static_trips() const {
  const Dim all = trips();
  return all.is_constant() && !all.is(kOpen) ? std::optional(all.value()) : std::nullopt;
}

std::string to_string(const MappedAxis& mapped) {
  std::ostringstream out;
  out << to_string(mapped.axis.extent);
  const char* before = " = ";
  for (const auto& [level, count, shift] : mapped.digits) {
    out << std::exchange(before, ", ") << to_string(level) << " ";
    out << (count.is(kOpen) ? "?" : to_string(count));
    if (shift > 0) out << " from bit " << shift;
  }
  return out.str() + (mapped.is_exact ? "" : ", ragged");
}

}  // namespace stitch
