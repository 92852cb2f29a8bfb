#include "clock/walk/touch_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "clock/walk/lanes.h"

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

void MemoryWalk::start_block(int64_t block) {
  block_ = block;
  votes_.clear();
  waits_.clear();
}

bool MemoryWalk::vote(size_t n, bool holds) {
  if (votes_.size() <= n) votes_.resize(n + 1);
  votes_[n] = votes_[n] || holds;
  return votes_[n];
}

int32_t MemoryWalk::put(const Access& access) {
  trace_.accesses.push_back(access);
  return static_cast<int32_t>(trace_.accesses.size() - 1);
}

int32_t MemoryWalk::touch(const Prepared& step, uint32_t lanes) {
  const Instruction& instruction = *step.instruction;
  const Flow flow = instruction.row->flow;
  if (flow == Flow::commit || flow == Flow::await) return Step::kNoAccess;
  const Operand* operand = instruction.find(flow == Flow::copy ? 'g' : 'm');
  if (flow == Flow::copy && step.p) {
    const Truth copies = read_truth(step.p, step.negates_p);
    lanes &= copies.value | ~copies.known;
    if (lanes == 0) return Step::kNoAccess;
  }
  if (instruction.row->latency != Latency::shared && !is_local(instruction))
    return touch_global(step, *operand, lanes);
  const int32_t access = touch_shared(step, *operand, lanes);
  if (is_local(instruction)) move_spilled(step, *operand, lanes, trace_.accesses.back());
  return access;
}

// Registers that the compiler has put on the stack: words at one place for all lanes, a line each.
void MemoryWalk::move_spilled(const Prepared& step, const Operand& operand, uint32_t lanes,
                              Access& access) {
  const Instruction& instruction = *step.instruction;
  const Addresses addresses = find_addresses(step, operand, lanes);
  const uint64_t at = addresses.lanes[std::countr_zero(lanes)];
  bool is_one = addresses.known == lanes && access_bytes(instruction) % kWordBytes == 0;
  for (int i = 0; i < kLanes; ++i) is_one &= !(lanes >> i & 1) || addresses.lanes[i] == at;
  const bool is_store = instruction.row->flow == Flow::store;
  if (!is_one && is_store) spilled_.clear();
  has_arrays_ |= !is_one;
  if (!is_one) return;
  constexpr uint32_t line = kLineBytes / kSectorBytes;
  const auto count = static_cast<uint32_t>(access_bytes(instruction) / kWordBytes);
  const uint64_t below = (kStackEnd - at) / kWordBytes;
  if (below <= local_end_) {  // deeper frames than the kernel says are found in the first cache
    access.first_run = static_cast<uint32_t>(trace_.runs.size());
    access.runs = 1;
    trace_.runs.push_back({(local_end_ - below) * line, count * line});
  }
  const bool is_zero = is_store && instruction.find('t')->index == kZeroRegister;
  for (uint32_t k = 0; k < count; ++k) {
    Value& word = spilled_[at + kWordBytes * k];
    if (!is_store)
      store(*(step.d + k), word, lanes);
    else
      store(word, *(step.data + (is_zero ? 0 : k)), lanes);
  }
}

MemoryWalk::Addresses MemoryWalk::find_addresses(const Prepared& step, const Operand& operand,
                                                 uint32_t lanes) const {
  Addresses found;
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

void MemoryWalk::add_sectors(const Addresses& addresses, uint32_t lanes, int bytes,
                             Access& access) {
  found_.clear();
  for (int i = 0; i < kLanes; ++i) {
    if (!(addresses.known >> i & 1)) continue;
    const uint64_t first = addresses.lanes[i] / kSectorBytes;
    const uint64_t last = (addresses.lanes[i] + bytes - 1) / kSectorBytes;
    const SectorRun run = {first, static_cast<uint32_t>(last - first + 1)};
    if (found_.empty() || !extend(found_.back(), run)) found_.push_back(run);
  }
  merge(found_);
  access.unknown = static_cast<uint16_t>(std::popcount(lanes & ~addresses.known));
  access.bytes = static_cast<uint16_t>(std::popcount(lanes) * bytes);
  access.first_run = static_cast<uint32_t>(trace_.runs.size());
  access.runs = static_cast<uint16_t>(found_.size());
  const int lines = count_lines(found_) + access.unknown;
  access.wavefronts =
      static_cast<uint16_t>(std::max(lines, (access.bytes + kLineBytes - 1) / kLineBytes));
  trace_.runs.insert(trace_.runs.end(), found_.begin(), found_.end());
}

// Lanes whose address lies in an argument: others count as unknown.
uint32_t MemoryWalk::inside_arguments(const Addresses& addresses, int bytes) {
  uint32_t inside = 0;
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t at = addresses.lanes[i], argument = at >> kArgumentBits;
    const bool is_one = argument >= 1 && argument <= parameters_;
    const bool is_any = is_one && launch_.arguments.empty();
    if (is_any || (is_one && offset_of(at) + bytes <=
                                 static_cast<uint64_t>(launch_.arguments[argument - 1].bytes)))
      inside |= 1u << i;
  }
  outside_lanes_ += std::popcount(addresses.known & ~inside);
  return inside;
}

int32_t MemoryWalk::touch_global(const Prepared& step, const Operand& operand, uint32_t lanes) {
  const int bytes = access_bytes(*step.instruction);
  Addresses addresses = find_addresses(step, operand, lanes);
  addresses.known &= inside_arguments(addresses, bytes);
  Access access;
  add_sectors(addresses, lanes, bytes, access);
  access.phase =
      static_cast<uint16_t>(std::distance(waits_.begin(), waits_.lower_bound(barriers_)));
  trace_.requested_bytes += access.bytes;
  trace_.blocks.back().requested_bytes += access.bytes;
  const Flow flow = step.instruction->row->flow;
  if (flow == Flow::load) load_integers(step, addresses, lanes);
  if (flow == Flow::store || flow == Flow::atomic) mark_stored(addresses, bytes);
  if (flow == Flow::atomic) add_atomically(step, addresses, lanes);
  return put(access);
}

void MemoryWalk::mark_stored(const Addresses& addresses, int bytes) {
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t at = addresses.lanes[i], argument = (at >> kArgumentBits) - 1;
    if (!(addresses.known >> i & 1) || argument >= stored_.size()) continue;
    const Argument& given = launch_.arguments[argument];
    if (given.data == 0) continue;
    std::vector<bool>& words = stored_[argument];
    words.resize(given.bytes / kWordBytes + 2);
    const uint64_t first = given.data % kWordBytes + offset_of(at);
    for (uint64_t k = first / kWordBytes; k <= (first + bytes - 1) / kWordBytes; ++k)
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
  become_unknown(step, lanes);
  if (!is_weak(*step.instruction)) return;
  const int bytes = access_bytes(*step.instruction);
  const bool is_signed = bytes < kWordBytes && field(step, 73, 1);
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
    store(*(step.d + k), value, lanes);
  }
}

// A counter of blocks: block 0 comes first and those after it add what this one adds.
void MemoryWalk::add_atomically(const Prepared& step, const Addresses& addresses, uint32_t lanes) {
  constexpr uint64_t add = 0;
  become_unknown(step, lanes);
  const bool is_counter = step.instruction->row->opcode == Opcode::atomg && step.d && step.data &&
                          std::popcount(lanes) == 1 && (addresses.known & lanes) == lanes &&
                          (step.data->known & lanes) == lanes &&
                          step.instruction->field(87, 4) == add;
  if (!is_counter) return;
  const int lane = std::countr_zero(lanes);
  const uint32_t mine = step.data->lanes[lane];
  uint32_t& first = first_added_[addresses.lanes[lane]];
  if (block_ == 0) first = mine;
  const uint32_t before = block_ == 0 ? 0 : first + static_cast<uint32_t>(block_ - 1) * mine;
  store(*step.d, Value::of(before), lanes);
}

// Words of one bank conflict; accesses of 8 and 16 bytes go in halves and quarters of a warp.
int32_t MemoryWalk::touch_shared(const Prepared& step, const Operand& operand, uint32_t lanes) {
  if (step.instruction->row->flow != Flow::store) become_unknown(step, lanes);
  const Addresses addresses = find_addresses(step, operand, lanes);
  const Opcode opcode = step.instruction->row->opcode;
  const bool is_matrix = opcode == Opcode::ldsm || opcode == Opcode::stsm;
  const int bytes = access_bytes(*step.instruction);
  const int words = std::max(1, bytes / kWordBytes), part = kLanes / words;
  Access access;
  access.bytes = static_cast<uint16_t>(std::popcount(lanes) * bytes);
  int wavefronts = 0;
  for (int start = 0; start < kLanes && !is_matrix; start += part) {
    std::array<std::vector<uint64_t>, kBanks> banks;
    size_t most = 0;
    for (int i = start; i < start + part; ++i) {
      if (!(addresses.known >> i & 1)) continue;
      for (int k = 0; k < words; ++k) {
        const uint64_t word = addresses.lanes[i] / kWordBytes + k;
        auto& bank = banks[word % kBanks];
        if (std::ranges::find(bank, word) == bank.end()) bank.push_back(word);
        most = std::max(most, bank.size());
      }
    }
    wavefronts += static_cast<int>(most);
  }
  const int least = (access.bytes + kLineBytes - 1) / kLineBytes;
  const bool is_broadcast = wavefronts > 0;
  access.wavefronts = static_cast<uint16_t>(is_broadcast ? wavefronts : std::max(1, least));
  return put(access);
}

}  // namespace stitch::clock
