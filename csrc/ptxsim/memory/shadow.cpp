#include "ptxsim/memory/shadow.h"

#include <algorithm>
#include <bit>

#include "ptxsim/machine/machine.h"

namespace stitch::ptxsim {
namespace {

// A stamp: record * 32 + lane; or with kAllOfRecord, every lane of the record; or, for reads only,
// with kSet the number of a set of readers.  0: nobody.
constexpr uint32_t kSet = 1u << 31;
constexpr uint32_t kAllOfRecord = 1u << 30;
constexpr int kChunkShift = 10;  // bytes per bit of Page::touched

uint32_t record_of(uint32_t stamp) { return (stamp & ~(kSet | kAllOfRecord)) >> 5; }
uint32_t lanes_of(const Ledger& ledger, uint32_t stamp) {
  return stamp & kAllOfRecord ? ledger[record_of(stamp)].mask : 1u << (stamp & 31);
}
uint32_t stamp_of(const Actor& actor, uint32_t lanes) {
  if (std::has_single_bit(lanes)) return actor.id << 5 | uint32_t(lowest_lane(lanes));
  return lanes == actor.record.mask ? actor.id << 5 | kAllOfRecord : 0;
}

// Four stamps at once.
using Stamps = uint32_t __attribute__((vector_size(16), aligned(4), may_alias));

// Of cell i in a run of 2^step cells per lane, the lane after the first; the last row is of zeros.
constexpr int kSteps = 5;
using Ramps = std::array<std::array<uint32_t, kLanes << (kSteps - 1)>, kSteps + 1>;
constexpr Ramps kRamps = [] {
  Ramps ramps = {};
  for (size_t step = 0; step < kSteps; ++step)
    for (uint32_t i = 0; i < ramps[step].size(); ++i) ramps[step][i] = i >> step;
  return ramps;
}();

// stamps[i] == first + ramp[i] for all.
bool is_ramp(const uint32_t* stamps, uint32_t first, const uint32_t* ramp, size_t count) {
  Stamps differs = {};
  const Stamps from = {first, first, first, first};
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    differs |= *reinterpret_cast<const Stamps*>(stamps + i) - from -
               *reinterpret_cast<const Stamps*>(ramp + i);
  }
  for (; i < count; ++i) differs[0] |= stamps[i] - first - ramp[i];
  return !(differs[0] | differs[1] | differs[2] | differs[3]);
}

void fill_ramp(uint32_t* stamps, uint32_t first, const uint32_t* ramp, size_t count) {
  const Stamps from = {first, first, first, first};
  size_t i = 0;
  for (; i + 4 <= count; i += 4)
    *reinterpret_cast<Stamps*>(stamps + i) = from + *reinterpret_cast<const Stamps*>(ramp + i);
  for (; i < count; ++i) stamps[i] = first + ramp[i];
}

// The cells of a run.
struct Cells {
  size_t first;  // in the page
  size_t count;
  int step;  // log2 of cells per lane
};

// Nobody has been there, or the lanes of one record, one after the other, whom the actor's lanes
// know: the common cases.  False: look at each cell.
bool is_passed_whole(Actor& actor, const uint32_t* stamps, const Cells& cells, const Run& run) {
  const uint32_t first = stamps[0];
  if (!first) return is_ramp(stamps, 0, kRamps[kSteps].data(), cells.count);
  if (first >= kAllOfRecord || int(first & 31) + run.count > kLanes) return false;
  const Verdict verdict = actor.judge(record_of(first));
  if (actor.ledger[verdict.record].is_copy) return false;
  const bool is_own = verdict.is_own && int(first & 31) == run.lane;
  if (!is_own && verdict.known != HappensBefore::Known::all) return false;
  return is_ramp(stamps, first, kRamps[size_t(cells.step)].data(), cells.count);
}

// Whether all or the lane itself know what the stamp, which is no set, stands for.
inline bool is_passed(Actor& actor, Verdict& verdict, uint32_t stamp, int lane) {
  if (record_of(stamp) != verdict.record) verdict = actor.judge(record_of(stamp));
  if (verdict.known == HappensBefore::Known::all) return true;
  return verdict.is_own && stamp < kAllOfRecord && int(stamp & 31) == lane;
}

// As a set, so that readers can be added.
std::vector<Reader>& make_set(Ledger& ledger, uint32_t& stamp) {
  if (stamp & kSet) return ledger.readers(stamp & ~kSet);
  const uint32_t set = ledger.take_set();
  std::vector<Reader>& readers = ledger.readers(set);
  if (stamp) readers.push_back({record_of(stamp), lanes_of(ledger, stamp), false});
  stamp = kSet | set;
  return readers;
}

void drop_readers(Ledger& ledger, uint32_t& stamp) {
  if (stamp & kSet) ledger.free_set(stamp & ~kSet);
  stamp = 0;
}

void add_to_set(Actor& actor, std::vector<Reader>& readers, uint32_t lanes) {
  for (Reader& reader : readers) {
    if (reader.record != actor.id || reader.before_write) continue;
    reader.lanes |= lanes;
    return;
  }
  size_t kept = 0;
  for (Reader reader : readers) {
    reader.lanes = actor.unordered(reader.record, reader.lanes, lanes);
    if (reader.lanes) readers[kept++] = reader;
  }
  readers.resize(kept);
  const Reader added{actor.id, lanes, false};
  if (kept < Shadow::kMostReaders)
    readers.push_back(added);
  else
    readers[(actor.id * 0x9e3779b9u) >> 26] = added;  // 26: kMostReaders is 64
}

uint64_t bits_between(uint64_t first, uint64_t last) {
  return (~uint64_t{0} << first) & (~uint64_t{0} >> (63 - last));
}

// Calls visit(word index, bits of the word) over [begin, end) of a page.
template <class Visit>
bool visit_words(uint64_t begin, uint64_t end, Visit visit) {
  const uint64_t last = end - 1;
  for (uint64_t word = begin >> 6; word <= last >> 6; ++word) {
    const uint64_t low = word == begin >> 6 ? begin & 63 : 0;
    const uint64_t high = word == last >> 6 ? last & 63 : 63;
    if (!visit(word, bits_between(low, high))) return false;
  }
  return true;
}

}  // namespace

Shadow::Page& Shadow::page_of(uint64_t offset) {
  std::unique_ptr<Page>& page = pages_[offset / kPageBytes];
  if (!page) page = std::make_unique<Page>();
  return *page;
}

Shadow::Page& Shadow::prepare(Actor& actor, const Run& run) {
  Page& page = page_of(run.offset);
  if (page.writes.empty()) {
    const uint64_t start = run.offset / kPageBytes * kPageBytes;
    const size_t cells = (std::min(kPageBytes, bytes_ - start) + 3) / 4;
    page.writes.resize(cells);
    page.reads.resize(cells);
  }
  if (run.bytes < 1u << page.shift) refine(actor.ledger, page, std::countr_zero(run.bytes));
  page.touched |= uint64_t{1} << (run.offset % kPageBytes >> kChunkShift);
  page.touched |= uint64_t{1} << ((run.end() - 1) % kPageBytes >> kChunkShift);
  return page;
}

void Shadow::refine(Ledger& ledger, Page& page, int shift) {
  const size_t parts = size_t{1} << (page.shift - shift);
  std::vector<uint32_t> writes(page.writes.size() * parts), reads(writes.size());
  for (size_t i = 0; i < writes.size(); ++i) {
    writes[i] = page.writes[i / parts];
    reads[i] = page.reads[i / parts];
    if (i % parts == 0 || !(reads[i] & kSet)) continue;
    const uint32_t copy = ledger.take_set();
    ledger.readers(copy) = ledger.readers(page.reads[i / parts] & ~kSet);
    reads[i] = kSet | copy;
  }
  page.shift = shift;
  page.writes = std::move(writes);
  page.reads = std::move(reads);
}

// A weak access after a strong write is ordered if a read saw that write and is ordered before the
// access: a flag may be reset by whoever has waited for it.  Each read since the write either was
// rightly there or has been reported.
bool Shadow::has_observed(Actor& actor, const Page& page, size_t cell, int lane) {
  const uint32_t stamp = page.reads[cell];
  if (!stamp || actor.ledger[record_of(page.writes[cell])].strength == Strength::weak) return false;
  const auto is_before = [&](const Reader& reader) {
    for (LaneSet set(reader.lanes); set; ++set)
      if (actor.is_ordered(reader.record, *set, lane)) return !reader.before_write;
    return false;
  };
  if (!(stamp & kSet)) return is_before({record_of(stamp), lanes_of(actor.ledger, stamp), false});
  const auto& readers = actor.ledger.readers(stamp & ~kSet);
  return std::any_of(readers.begin(), readers.end(), is_before);
}

void Shadow::read_cell(Actor& actor, Page& page, size_t cell, uint32_t lanes) {
  const uint32_t write = page.writes[cell];
  if (write && actor.judge(record_of(write)).known != HappensBefore::Known::all) {
    const uint32_t other = record_of(write);
    for (LaneSet set(lanes); set; ++set) {
      if (actor.is_ordered(other, write & 31, *set)) continue;
      if (actor.is_matched(other) || has_observed(actor, page, cell, *set)) continue;
      actor.conflict(cell << page.shift, *set, other, write & 31);
      break;
    }
  }
  uint32_t& stamp = page.reads[cell];
  const uint32_t fresh = stamp_of(actor, lanes);
  if (fresh && stamp == fresh) return;
  if (!(stamp & kSet)) {
    const bool is_gone =
        !stamp || !actor.unordered(record_of(stamp), lanes_of(actor.ledger, stamp), lanes);
    if (is_gone && fresh) {
      stamp = fresh;
      return;
    }
    if (is_gone) stamp = 0;
  }
  std::vector<Reader>& readers = make_set(actor.ledger, stamp);
  // Of a full set few newcomers get in: looking through it each time would be slow.
  if (readers.size() >= kMostReaders && actor.id % 16) return;
  add_to_set(actor, readers, lanes);
  if (readers.size() == 1 && fresh) {
    drop_readers(actor.ledger, stamp);
    stamp = fresh;
  }
}

void Shadow::write_cell(Actor& actor, Page& page, size_t cell, int lane) {
  uint32_t& write = page.writes[cell];
  const uint64_t offset = cell << page.shift;
  if (write && !actor.is_ordered(record_of(write), write & 31, lane) &&
      !actor.is_matched(record_of(write)) && !has_observed(actor, page, cell, lane)) {
    actor.conflict(offset, lane, record_of(write), write & 31);
  }
  write = actor.id << 5 | uint32_t(lane);
  uint32_t& stamp = page.reads[cell];
  if (!stamp) return;
  // True: a strong read that goes on beside this strong write.
  const auto stays = [&](const Reader& reader) {
    const Record& read = actor.ledger[reader.record];
    for (LaneSet set(reader.lanes); set; ++set) {
      const bool is_ordered = actor.is_ordered(reader.record, *set, lane);
      if (is_ordered && !read.is_copy) continue;
      if (actor.is_matched(reader.record)) return true;
      if (!read.non_coherent) actor.conflict(offset, lane, reader.record, *set);
      break;
    }
    return false;
  };
  if (!(stamp & kSet) && !stays({record_of(stamp), lanes_of(actor.ledger, stamp), false})) {
    stamp = 0;
    return;
  }
  std::vector<Reader>& readers = make_set(actor.ledger, stamp);
  std::erase_if(readers, [&](const Reader& reader) { return !stays(reader); });
  for (Reader& reader : readers) reader.before_write = true;
  if (readers.empty()) drop_readers(actor.ledger, stamp);
}

void Shadow::read_cells(Actor& actor, Page& page, const Run& run, size_t first) {
  const int step = std::countr_zero(run.bytes) - page.shift;
  const Cells cells{first, size_t(run.count) << step, step};
  uint32_t* const writes = &page.writes[first];
  uint32_t* const reads = &page.reads[first];
  const uint32_t stamp = actor.id << 5 | uint32_t(run.lane);
  const bool writes_pass = is_passed_whole(actor, writes, cells, run);
  if (writes_pass && is_passed_whole(actor, reads, cells, run))
    return fill_ramp(reads, stamp, kRamps[size_t(step)].data(), cells.count);
  Verdict of_write, of_read;
  for (size_t i = 0; i < cells.count; ++i) {
    const int lane = run.lane + int(i >> step);
    const uint32_t write = writes[i], read = reads[i];
    const bool is_passing = (writes_pass || !write || is_passed(actor, of_write, write, lane)) &&
                            (!read || (read < kSet && is_passed(actor, of_read, read, lane)));
    if (is_passing)
      reads[i] = stamp + uint32_t(i >> step);
    else
      read_cell(actor, page, first + i, 1u << lane);
  }
}

void Shadow::read(Actor& actor, const Run& run) {
  Page& page = prepare(actor, run);
  const uint64_t base = run.offset / kPageBytes * kPageBytes;
  const size_t first = (run.offset - base) >> page.shift;
  const size_t found = actor.conflicts.size();
  if (run.is_same) {
    const uint32_t lanes = uint32_t((uint64_t{1} << run.count) - 1) << run.lane;
    for (size_t i = 0; i < run.bytes >> page.shift; ++i) read_cell(actor, page, first + i, lanes);
  } else {
    read_cells(actor, page, run, first);
  }
  for (size_t i = found; i < actor.conflicts.size(); ++i) actor.conflicts[i].offset += base;
}

void Shadow::write_cells(Actor& actor, Page& page, const Run& run, size_t first) {
  const int step = std::countr_zero(run.bytes) - page.shift;
  const Cells cells{first, size_t(run.count) << step, step};
  uint32_t* const writes = &page.writes[first];
  uint32_t* const reads = &page.reads[first];
  const uint32_t stamp = actor.id << 5 | uint32_t(run.lane);
  if (is_passed_whole(actor, writes, cells, run) && is_passed_whole(actor, reads, cells, run)) {
    fill_ramp(reads, 0, kRamps[kSteps].data(), cells.count);
    return fill_ramp(writes, stamp, kRamps[size_t(step)].data(), cells.count);
  }
  Verdict of_write, of_read;
  for (size_t i = 0; i < cells.count; ++i) {
    const int lane = run.lane + int(i >> step);
    const uint32_t write = writes[i], read = reads[i];
    // The source of a cp.async needs more than to be ordered.
    const bool is_passing = (!write || is_passed(actor, of_write, write, lane)) &&
                            (!read || (read < kSet && is_passed(actor, of_read, read, lane) &&
                                       !actor.ledger[of_read.record].is_copy));
    if (is_passing) {
      writes[i] = stamp + uint32_t(i >> step);
      reads[i] = 0;
    } else {
      write_cell(actor, page, first + i, lane);
    }
  }
}

void Shadow::write(Actor& actor, const Run& run) {
  Page& page = prepare(actor, run);
  const uint64_t base = run.offset / kPageBytes * kPageBytes;
  const size_t found = actor.conflicts.size();
  write_cells(actor, page, run, (run.offset - base) >> page.shift);
  for (size_t i = found; i < actor.conflicts.size(); ++i) actor.conflicts[i].offset += base;
}

Conflict Shadow::last_write(const Ledger& ledger, uint64_t offset) const {
  const Page* page = find_page(offset);
  if (!page || page->writes.empty()) return {offset, 0, 0, 0};
  const uint32_t stamp = page->writes[offset % kPageBytes >> page->shift];
  return {offset, 0, record_of(stamp), stamp ? lowest_lane(lanes_of(ledger, stamp)) : 0};
}

Conflict Shadow::some_read(Ledger& ledger, uint64_t offset) const {
  const Page* page = find_page(offset);
  if (!page || page->reads.empty()) return {offset, 0, 0, 0};
  const uint32_t stamp = page->reads[offset % kPageBytes >> page->shift];
  if (!stamp) return {offset, 0, 0, 0};
  if (!(stamp & kSet)) return {offset, 0, record_of(stamp), lowest_lane(lanes_of(ledger, stamp))};
  const Reader& reader = ledger.readers(stamp & ~kSet).back();
  return {offset, 0, reader.record, lowest_lane(reader.lanes)};
}

bool Shadow::all(Bits bits, uint64_t begin, uint64_t end) const {
  for (uint64_t at = begin; at < end;) {
    const uint64_t base = at / kPageBytes * kPageBytes, stop = std::min(end, base + kPageBytes);
    const Page* page = find_page(at);
    if (!page || page->bits[bits].empty()) return false;
    const bool holds = visit_words(at - base, stop - base, [&](uint64_t word, uint64_t mask) {
      return (page->bits[bits][word] & mask) == mask;
    });
    if (!holds) return false;
    at = stop;
  }
  return true;
}

bool Shadow::any(Bits bits, uint64_t begin, uint64_t end) const {
  for (uint64_t at = begin; at < end;) {
    const uint64_t base = at / kPageBytes * kPageBytes, stop = std::min(end, base + kPageBytes);
    const Page* page = find_page(at);
    at = stop;
    if (!page || page->bits[bits].empty()) continue;
    const bool none = visit_words(
        std::max(begin, base) - base, stop - base,
        [&](uint64_t word, uint64_t mask) { return (page->bits[bits][word] & mask) == 0; });
    if (!none) return true;
  }
  return false;
}

void Shadow::set(Bits bits, uint64_t begin, uint64_t end, bool value) {
  for (uint64_t at = begin; at < end;) {
    const uint64_t base = at / kPageBytes * kPageBytes, stop = std::min(end, base + kPageBytes);
    std::vector<uint64_t>& words = page_of(at).bits[bits];
    if (words.empty()) words.resize((std::min(kPageBytes, bytes_ - base) + 63) / 64);
    visit_words(at - base, stop - base, [&](uint64_t word, uint64_t mask) {
      words[word] = value ? words[word] | mask : words[word] & ~mask;
      return true;
    });
    at = stop;
  }
}

void Shadow::forget_accesses() {
  for (const auto& page : pages_) {
    if (!page) continue;
    const size_t cells = size_t{1} << (kChunkShift - page->shift);
    for (uint64_t rest = page->touched; rest; rest &= rest - 1) {
      const size_t first = size_t(std::countr_zero(rest)) * cells;
      const size_t last = std::min(first + cells, page->writes.size());
      std::fill(page->writes.begin() + ptrdiff_t(first), page->writes.begin() + ptrdiff_t(last), 0);
      std::fill(page->reads.begin() + ptrdiff_t(first), page->reads.begin() + ptrdiff_t(last), 0);
    }
    page->touched = 0;
  }
}

void Shadow::mark(Ledger& ledger, std::vector<bool>& used) const {
  for (const auto& page : pages_) {
    if (!page) continue;
    for (const uint32_t stamp : page->writes) used[record_of(stamp)] = true;
    for (const uint32_t stamp : page->reads) {
      if (!(stamp & kSet)) {
        used[record_of(stamp)] = true;
        continue;
      }
      for (const Reader& reader : ledger.readers(stamp & ~kSet)) used[reader.record] = true;
    }
  }
}

}  // namespace stitch::ptxsim
