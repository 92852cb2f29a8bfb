// LaneBench: runs handlers of lane operations on a register file made by hand.
//
// A check takes operand values a lane at a time, spreads them over warps under several masks, runs
// each instruction set that this CPU has, and compares the lanes of the mask with what is expected
// and the others with what they held.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ptxsim/lanes/lanes.h"
#include "ptxsim/machine/machine.h"

namespace stitch::ptxsim {

namespace baseline {
Handler find_lanes(Opcode opcode, Type type, Type source, const Modifiers& modifiers);
}
namespace avx2 {
Handler find_lanes(Opcode opcode, Type type, Type source, const Modifiers& modifiers);
}

namespace lanes_test {

using Args = std::array<uint64_t, 5>;
using Expected = std::function<uint64_t(const Args&)>;
constexpr int kPredicate = 0;  // a width: a bit per lane
constexpr int kUnused = -1;    // a width: the operand is left out

struct Form {
  Opcode opcode;
  Type type = Type::none;
  Type source = Type::none;
  Modifiers modifiers = {};
  std::vector<int> widths;  // bytes per lane of the destination and the sources
  int64_t immediate = 0;
  int destinations = 1;  // those that are not checked come after the first
};

inline std::string describe(const Form& form) {
  std::ostringstream out;
  const Modifiers& m = form.modifiers;
  out << row_of(form.opcode).name << '.' << name_of(form.type);
  if (form.source != Type::none) out << '.' << name_of(form.source);
  out << " rounding " << int(m.rounding) << " compare " << int(m.compare);
  out << " word " << name_of(m.word) << (m.ftz ? " ftz" : "") << (m.sat ? " sat" : "");
  out << (m.nan ? " NaN" : "") << (m.relu ? " relu" : "") << (m.xorsign ? " xorsign" : "");
  return out.str();
}

class LaneBench {
 public:
  LaneBench() {
    instruction_.operands.fill(kNoUnit);
    warp_.registers = file_;
  }

  void set(int operand, int bytes, int lane, uint64_t bits) {
    unsigned char* unit = file_ + operand * kOperandBytes;
    if (bytes == kPredicate) {
      uint32_t word;
      std::memcpy(&word, unit, 4);
      word = (word & ~(1u << lane)) | uint32_t(bits & 1) << lane;
      std::memcpy(unit, &word, 4);
    } else {
      std::memcpy(unit + lane * bytes, &bits, bytes);
    }
  }
  uint64_t get(int operand, int bytes, int lane) const {
    const unsigned char* unit = file_ + operand * kOperandBytes;
    uint64_t bits = 0;
    std::memcpy(&bits, unit + lane * bytes, bytes == kPredicate ? 4 : bytes);
    return bytes == kPredicate ? bits >> lane & 1 : bits;
  }
  void bind(const Form& form) {
    instruction_.opcode = form.opcode;
    instruction_.type = form.type;
    instruction_.source_type = form.source;
    instruction_.modifiers = form.modifiers;
    instruction_.immediate = form.immediate;
    instruction_.destinations = uint8_t(form.destinations);
    instruction_.operand_count = uint8_t(form.widths.size());
    for (size_t k = 0; k < form.widths.size(); ++k) {
      instruction_.operands[k] = form.widths[k] == kUnused ? kNoUnit : uint32_t(k) * 4;
    }
  }
  void run(Handler handler, uint32_t mask) { handler(warp_, instruction_, mask); }
  Instruction& instruction() { return instruction_; }

 private:
  static constexpr int kOperandBytes = 4 * kUnitBytes;
  alignas(64) unsigned char file_[12 * kOperandBytes] = {};
  Warp warp_;
  Instruction instruction_;
};

// The handlers of the instruction sets that run here.
inline std::vector<Handler> handlers_of(const Form& form) {
  std::vector<Handler> handlers;
  const Modifiers& m = form.modifiers;
  handlers.push_back(baseline::find_lanes(form.opcode, form.type, form.source, m));
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
    handlers.push_back(avx2::find_lanes(form.opcode, form.type, form.source, m));
  }
  return handlers;
}

// Destinations [0, destinations) come first in `widths`; args[k] is source k.
inline void check(const Form& form, const std::vector<Args>& cases, const Expected& expected,
                  int checked_destination = 0) {
  const uint32_t kMasks[] = {0xffffffffu, 0x5a5aa5a5u, 0xffffffffu, 0x80000001u, 0x00ffff00u};
  constexpr uint64_t kHeld = 0xa5a5a5a5a5a5a5a5u;
  const int width = form.widths[checked_destination];
  const uint64_t whole = width == kPredicate ? 1
                         : width == 8        ? ~uint64_t{0}
                                             : (uint64_t{1} << width * 8) - 1;
  int failures = 0;
  for (Handler handler : handlers_of(form)) {
    ASSERT_NE(handler, nullptr) << describe(form);
    LaneBench bench;
    bench.bind(form);
    for (size_t first = 0, turn = 0; first < cases.size(); ++turn) {
      // Lanes that are off hold another case's operands, which must do no harm.
      const uint32_t mask = kMasks[turn % 5];
      std::array<size_t, kLanes> which;
      for (int l = 0; l < kLanes; ++l) {
        which[l] = first < cases.size() ? first : cases.size() - 1;
        first += mask >> l & 1;
        for (size_t k = form.destinations; k < form.widths.size(); ++k) {
          if (form.widths[k] == kUnused) continue;
          bench.set(int(k), form.widths[k], l, cases[which[l]][k - form.destinations]);
        }
        bench.set(checked_destination, width, l, kHeld);
      }
      bench.run(handler, mask);
      for (int l = 0; l < kLanes && failures < 5; ++l) {
        const uint64_t got = bench.get(checked_destination, width, l);
        const uint64_t want = mask >> l & 1 ? expected(cases[which[l]]) & whole : kHeld & whole;
        if (got == want) continue;
        ++failures;
        std::ostringstream text;
        text << describe(form) << " lane " << l << " of mask " << std::hex << mask;
        for (uint64_t bits : cases[which[l]]) text << ' ' << bits;
        ADD_FAILURE() << text.str() << std::hex << ": got " << got << ", expected " << want;
      }
    }
  }
}

inline bool refused(const Form& form) {
  bool all = true;
  for (Handler handler : handlers_of(form)) all = all && handler == nullptr;
  return all;
}

inline std::vector<Type> parse_types(std::string_view text) {
  std::vector<Type> types;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (word[0] == '=') word = word.substr(1);
    for (int k = 0; k <= int(Type::s16x2); ++k) {
      if (name_of(Type(k)) == word) types.push_back(Type(k));
    }
  }
  return types;
}
inline std::vector<Type> types_of(Opcode opcode) { return parse_types(row_of(opcode).types); }
inline std::vector<Type> sources_of(Opcode opcode) {
  return parse_types(row_of(opcode).source_types);
}

// The opcodes that a test file checks for every type of their row.
inline std::set<Opcode>& covered() {
  static std::set<Opcode> opcodes;
  return opcodes;
}
struct Covers {
  Covers(std::initializer_list<Opcode> opcodes) {
    covered().insert(opcodes.begin(), opcodes.end());
  }
};

// Every way to draw `count` sources from lists of values.
inline std::vector<Args> product(const std::vector<std::vector<uint64_t>>& values) {
  std::vector<Args> all = {Args{}};
  for (size_t k = 0; k < values.size(); ++k) {
    std::vector<Args> next;
    next.reserve(all.size() * values[k].size());
    for (const Args& args : all) {
      for (uint64_t value : values[k]) {
        next.push_back(args);
        next.back()[k] = value;
      }
    }
    all = std::move(next);
  }
  return all;
}

// At most about `count` of them, spread evenly.
inline std::vector<Args> some_of(const std::vector<Args>& all, size_t count) {
  if (all.size() <= count) return all;
  std::mt19937_64 random(all.size());
  std::vector<Args> some;
  for (size_t k = 0; k < count; ++k) some.push_back(all[random() % all.size()]);
  return some;
}

// Edges of integers so many bytes wide, and random ones.
inline std::vector<uint64_t> integer_values(int bytes, int random_count, uint64_t seed = 1) {
  const int bits = bytes * 8;
  const uint64_t whole = bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const uint64_t top = uint64_t{1} << (bits - 1);
  std::vector<uint64_t> values = {0,
                                  1,
                                  2,
                                  3,
                                  7,
                                  whole,
                                  whole - 1,
                                  top,
                                  top - 1,
                                  top + 1,
                                  top >> 1,
                                  0x5555555555555555u & whole,
                                  (uint64_t{1} << bits / 2) - 1,
                                  uint64_t{1} << bits / 2};
  std::mt19937_64 random(seed);
  for (int k = 0; k < random_count; ++k) values.push_back((random() >> random() % bits) & whole);
  return values;
}

}  // namespace lanes_test
}  // namespace stitch::ptxsim
