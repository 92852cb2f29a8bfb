#include "clock/walk/touch_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace stitch::clock {
namespace {

constexpr int kBanks = 32;

// Of an address in its argument.
uint64_t offset_of(uint64_t at) { return at & ((uint64_t{1} << kArgumentBits) - 1); }

// An even spread that a second run repeats.
uint64_t scramble(uint64_t x) {
  x = (x ^ x >> 31) * 0x9e3779b97f4a7c15;
  return (x ^ x >> 29) * 0xbf58476d1ce4e5b9 >> 20;
}

// Joins what touches or overlaps; false where `next` is before `run` or lies apart.
bool extend(SectorRun& run, const SectorRun& next) {
  const uint64_t end = run.first + run.count;
  if (next.first < run.first || next.first > end) return false;
  run.count = static_cast<uint32_t>(std::max(end, next.first + next.count) - run.first);
  return true;
}
void merge(std::vector<SectorRun>& runs) {
  if (!std::ranges::is_sorted(runs, {}, &SectorRun::first))
    std::ranges::sort(runs, {}, &SectorRun::first);
  size_t kept = 0;
  for (const SectorRun& run : runs)
    if (kept == 0 || !extend(runs[kept - 1], run)) runs[kept++] = run;
  runs.resize(kept);
}

int count_lines(const std::vector<SectorRun>& runs) {
  constexpr uint64_t sectors = kLineBytes / kSectorBytes;
  int lines = 0;
  uint64_t last = ~uint64_t{0};
  for (const SectorRun& run : runs) {
    const uint64_t first = run.first / sectors, end = (run.first + run.count - 1) / sectors;
    lines += static_cast<int>(end - first + (first == last ? 0 : 1));
    last = end;
  }
  return lines;
}

}  // namespace

int32_t MemoryWalk::touch(const Prepared& step, uint32_t lanes) {
  const Instruction& instruction = *step.instruction;
  const Flow flow = instruction.row->flow;
  if (flow == Flow::commit || flow == Flow::await) return Step::kNoAccess;
  if (flow == Flow::copy) {
    const Truth copies = step.p.read();
    lanes &= copies.value | ~copies.known;
    if (lanes == 0) return Step::kNoAccess;
  }
  const bool is_global = instruction.row->latency != Latency::shared && !is_local(instruction);
  if (!is_global && flow != Flow::store) forget(step, lanes);
  const Operand& operand = *instruction.find(flow == Flow::copy ? 'g' : 'm');
  const Addresses addresses = find_addresses(step, operand, lanes);
  Access access;
  access.bytes = static_cast<uint16_t>(std::popcount(lanes) * addresses.bytes);
  access.wavefronts = static_cast<uint16_t>((access.bytes + kLineBytes - 1) / kLineBytes);
  if (is_global) {
    touch_global(step, addresses, lanes, access);
  } else {
    const Opcode opcode = instruction.row->opcode;
    const bool is_matrix = opcode == Opcode::ldsm || opcode == Opcode::stsm;
    const size_t conflicts = is_matrix ? 0 : count_conflicts(addresses);
    access.wavefronts = std::max<uint16_t>(1, access.wavefronts);
    if (conflicts > 0) access.wavefronts = static_cast<uint16_t>(conflicts);
    if (is_local(instruction)) move_spilled(step, addresses, lanes, access);
  }
  trace_.accesses.push_back(access);
  return static_cast<int32_t>(trace_.accesses.size() - 1);
}

// Registers that the compiler has put on the stack: words at one place for all lanes, a line each.
void MemoryWalk::move_spilled(const Prepared& step, const Addresses& addresses, uint32_t lanes,
                              Access& access) {
  const uint64_t at = addresses.lanes[std::countr_zero(lanes)];
  bool is_one = addresses.known == lanes && addresses.bytes % kWordBytes == 0;
  for (int i = 0; i < kLanes; ++i) is_one &= !(lanes >> i & 1) || addresses.lanes[i] == at;
  const bool is_store = step.instruction->row->flow == Flow::store;
  if (!is_one && is_store) spilled_.clear();
  has_arrays_ |= !is_one;
  if (!is_one) return;
  constexpr uint32_t line = kLineBytes / kSectorBytes;
  const auto count = static_cast<uint32_t>(addresses.bytes / kWordBytes);
  const uint64_t below = (kStackEnd - at) / kWordBytes;
  if (below <= local_end_) {  // deeper frames than the kernel says are found in the first cache
    access.first_run = static_cast<uint32_t>(trace_.runs.size());
    access.runs = 1;
    trace_.runs.push_back({(local_end_ - below) * line, count * line});
  }
  const bool is_zero = is_store && step.instruction->find('t')->index == kZeroRegister;
  for (uint32_t k = 0; k < count; ++k) {
    Value& word = spilled_[at + kWordBytes * k];
    if (!is_store)
      store(step.d[k], word, lanes);
    else
      store(word, step.t.value[is_zero ? 0 : k], lanes);
  }
}

MemoryWalk::Addresses MemoryWalk::find_addresses(const Prepared& step, const Operand& operand,
                                                 uint32_t lanes) const {
  Addresses found;
  found.bytes = access_bytes(*step.instruction);
  const bool is_wide = has_wide_address(*step.instruction, operand);
  const bool has_register = operand.index != kZeroRegister;
  const Value& low = *step.address;
  const Value* high = is_wide && has_register ? step.address + 1 : nullptr;
  found.known = lanes & low.known & (high ? high->known : kAllLanes);
  if (step.uniform_address) found.known &= step.uniform_address->known;
  for (int i = 0; i < kLanes; ++i) {
    uint64_t at = low.lanes[i];
    if (operand.scale) at *= operand.scale;
    if (high) at |= uint64_t{high->lanes[i]} << 32;
    if (step.uniform_address) at += step.uniform_address->lanes[i];
    found.lanes[i] = at + static_cast<uint64_t>(operand.value);
  }
  return found;
}

void MemoryWalk::add_sectors(const Addresses& addresses, uint32_t lanes, Access& access) {
  found_.clear();
  for (int i = 0; i < kLanes; ++i) {
    if (!(addresses.known >> i & 1)) continue;
    const uint64_t first = addresses.lanes[i] / kSectorBytes;
    const uint64_t last = (addresses.lanes[i] + addresses.bytes - 1) / kSectorBytes;
    const SectorRun run = {first, static_cast<uint32_t>(last - first + 1)};
    if (found_.empty() || !extend(found_.back(), run)) found_.push_back(run);
  }
  merge(found_);
  access.unknown = static_cast<uint16_t>(std::popcount(lanes & ~addresses.known));
  access.first_run = static_cast<uint32_t>(trace_.runs.size());
  access.runs = static_cast<uint16_t>(found_.size());
  const int lines = count_lines(found_) + access.unknown;
  access.wavefronts = std::max(access.wavefronts, static_cast<uint16_t>(lines));
  trace_.runs.insert(trace_.runs.end(), found_.begin(), found_.end());
}

// Lanes whose address lies in an argument: others count as unknown.
uint32_t MemoryWalk::inside_arguments(const Addresses& addresses) {
  uint32_t inside = 0;
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t at = addresses.lanes[i], argument = at >> kArgumentBits;
    if (argument < 1 || argument > parameters_) continue;
    const bool is_any = launch_.arguments.empty();
    if (is_any || offset_of(at) + addresses.bytes <=
                      static_cast<uint64_t>(launch_.arguments[argument - 1].bytes))
      inside |= 1u << i;
  }
  outside_lanes_ += std::popcount(addresses.known & ~inside);
  return inside;
}

void MemoryWalk::touch_global(const Prepared& step, Addresses addresses, uint32_t lanes,
                              Access& access) {
  addresses.known &= inside_arguments(addresses);
  add_sectors(addresses, lanes, access);
  access.phase =
      static_cast<uint16_t>(std::ranges::lower_bound(waits_, barriers_) - waits_.begin());
  trace_.blocks.back().requested_bytes += access.bytes;
  const Flow flow = step.instruction->row->flow;
  if (flow == Flow::load) load_integers(step, addresses, lanes);
  if (flow == Flow::store || flow == Flow::atomic) mark_stored(addresses);
  if (flow == Flow::atomic) add_atomically(step, addresses, lanes);
}

void MemoryWalk::mark_stored(const Addresses& addresses) {
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t at = addresses.lanes[i], argument = (at >> kArgumentBits) - 1;
    if (!(addresses.known >> i & 1) || argument >= stored_.size()) continue;
    const Argument& given = launch_.arguments[argument];
    if (given.data == 0) continue;
    std::vector<bool>& words = stored_[argument];
    words.resize(given.bytes / kWordBytes + 2);
    const uint64_t first = given.data % kWordBytes + offset_of(at);
    for (uint64_t k = first / kWordBytes; k <= (first + addresses.bytes - 1) / kWordBytes; ++k)
      words[k] = true;
  }
}

// What is loaded of at most a word at an address in an argument.
std::optional<uint32_t> MemoryWalk::read_word(size_t argument, uint64_t at, int bytes) {
  const Argument& given = launch_.arguments[argument];
  if (given.data != 0) {
    const uint64_t data = given.data + offset_of(at);
    for (size_t k = 0; k < stored_.size(); ++k) {  // arguments may share memory
      const uint64_t other = launch_.arguments[k].data;
      const uint64_t place = data / kWordBytes - other / kWordBytes;
      if (data < other || place >= stored_[k].size()) continue;
      has_read_what_changes_ = true;
      if (stored_[k][place]) return {};
    }
    uint32_t word = 0;
    std::memcpy(&word, reinterpret_cast<const void*>(data), std::min(bytes, kWordBytes));
    return word;
  }
  const bool is_whole = given.element_bytes >= kWordBytes || given.element_bytes == bytes;
  if (given.below == 0 || !is_whole || bytes % given.element_bytes != 0) return {};
  const uint64_t offset = at % given.element_bytes;
  return static_cast<uint32_t>(scramble(at - offset) % given.below >> 8 * offset);
}

// The integers that a launch says lie in an argument: those there, or an index in its range.
void MemoryWalk::load_integers(const Prepared& step, const Addresses& addresses, uint32_t lanes) {
  forget(step, lanes);
  if (!is_weak(*step.instruction)) return;
  const int bytes = addresses.bytes;
  const bool is_signed = bytes < kWordBytes && step.instruction->bit(73);
  const int unused = is_signed ? 32 - 8 * bytes : 0;
  for (int k = 0; k < step.results; ++k) {
    Value value;
    for (int i = 0; i < kLanes; ++i) {
      const uint64_t at = addresses.lanes[i], argument = (at >> kArgumentBits) - 1;
      if (!(addresses.known >> i & 1) || argument >= launch_.arguments.size()) continue;
      const auto word = read_word(argument, at + kWordBytes * k, bytes);
      if (!word) continue;
      value.lanes[i] = static_cast<int32_t>(*word << unused) >> unused;
      value.known |= 1u << i;
    }
    store(step.d[k], value, lanes);
  }
}

// A counter of blocks: block 0 comes first and those after it add what this one adds.
void MemoryWalk::add_atomically(const Prepared& step, const Addresses& addresses, uint32_t lanes) {
  constexpr uint64_t add = 0;
  forget(step, lanes);
  const bool is_counter = step.instruction->row->opcode == Opcode::atomg && step.d &&
                          step.t.value && std::popcount(lanes) == 1 &&
                          (addresses.known & lanes) == lanes && (step.t->known & lanes) == lanes &&
                          step.instruction->field(87, 4) == add;
  if (!is_counter) return;
  const int lane = std::countr_zero(lanes);
  const uint32_t mine = step.t->lanes[lane];
  uint32_t& first = first_added_[addresses.lanes[lane]];
  if (block_ == 0) first = mine;
  const uint32_t before = block_ == 0 ? 0 : first + static_cast<uint32_t>(block_ - 1) * mine;
  store(*step.d, Value::of(before), lanes);
}

// Words of one bank conflict; accesses of 8 and 16 bytes go in halves and quarters of a warp.
size_t MemoryWalk::count_conflicts(const Addresses& addresses) {
  const int words = std::max(1, addresses.bytes / kWordBytes), part = kLanes / words;
  size_t cycles = 0;
  for (int start = 0; start < kLanes; start += part) {
    std::array<std::vector<uint64_t>, kBanks> banks;
    size_t most = 0;
    for (int i = start; i < start + part; ++i) {
      if (!(addresses.known >> i & 1)) continue;
      for (int k = 0; k < words; ++k) {
        const uint64_t word = addresses.lanes[i] / kWordBytes + k;
        add_once(banks[word % kBanks], word);
        most = std::max(most, banks[word % kBanks].size());
      }
    }
    cycles += most;
  }
  return cycles;
}

}  // namespace stitch::clock
