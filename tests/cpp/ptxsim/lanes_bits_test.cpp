// Bits: shifts, fields, permutations and logic, a bit at a time.
#include "lanes_bench.h"

namespace stitch::ptxsim::lanes_test {
namespace {

const Covers kCovers = {Opcode::and_, Opcode::or_,  Opcode::xor_, Opcode::not_,  Opcode::cnot,
                        Opcode::lop3, Opcode::shl,  Opcode::shr,  Opcode::shf_l, Opcode::shf_r,
                        Opcode::prmt, Opcode::popc, Opcode::clz,  Opcode::bfind, Opcode::brev,
                        Opcode::bfe,  Opcode::bfi,  Opcode::bmsk, Opcode::fns,   Opcode::szext};

bool is_signed(Type type) { return name_of(type)[0] == 's'; }
bool bit(uint64_t x, int k) { return k < 64 && (x >> k & 1) != 0; }
int width_of(Type type) { return type == Type::pred ? kPredicate : type_bytes(type); }
const std::vector<uint64_t> kAmounts = {
    0,   1,   2,   5,   8,   15,  16,  17,  31,  32,   33,    47,         63,         64,        65,
    127, 128, 200, 255, 256, 257, 260, 300, 511, 1000, 65536, 0x7fffffff, 0x80000000, 0xffffffff};

TEST(LanesBits, Logic) {
  for (Opcode opcode : {Opcode::and_, Opcode::or_, Opcode::xor_, Opcode::not_, Opcode::cnot}) {
    for (Type type : types_of(opcode)) {
      const bool unary = opcode == Opcode::not_ || opcode == Opcode::cnot;
      const int width = width_of(type);
      Form form{opcode, type, Type::none, {}, std::vector<int>(unary ? 2 : 3, width)};
      const auto values =
          width == kPredicate ? std::vector<uint64_t>{0, 1} : integer_values(width, 30);
      check(form, product(std::vector(unary ? 1 : 2, values)), [&](const Args& args) -> uint64_t {
        switch (opcode) {
          case Opcode::and_:
            return args[0] & args[1];
          case Opcode::or_:
            return args[0] | args[1];
          case Opcode::xor_:
            return args[0] ^ args[1];
          case Opcode::not_:
            return ~args[0];
          default:
            return args[0] == 0;
        }
      });
    }
  }
  for (int table = 0; table < 256; ++table) {
    Form form{Opcode::lop3, Type::b32, Type::none, {}, {4, 4, 4, 4}, table};
    const auto values = integer_values(4, 0, table);
    check(form, some_of(product({values, values, values}), 200), [&](const Args& args) {
      uint64_t d = 0;
      for (int k = 0; k < 32; ++k) {
        const int index = bit(args[0], k) * 4 + bit(args[1], k) * 2 + bit(args[2], k);
        d |= uint64_t(table >> index & 1) << k;
      }
      return d;
    });
  }
}

TEST(LanesBits, ShiftsClamp) {
  for (Opcode opcode : {Opcode::shl, Opcode::shr}) {
    for (Type type : types_of(opcode)) {
      const int bits = type_bytes(type) * 8;
      const Form form{opcode, type, Type::none, {}, {bits / 8, bits / 8, 4}};
      check(form, product({integer_values(bits / 8, 20), kAmounts}), [&](const Args& args) {
        uint64_t d = 0;
        const bool fill = is_signed(type) && bit(args[0], bits - 1);
        for (int k = 0; k < bits; ++k) {
          const int64_t from = opcode == Opcode::shl ? k - int64_t(args[1]) : k + int64_t(args[1]);
          const bool on = from < 0 ? false : from >= bits ? fill : bit(args[0], int(from));
          d |= uint64_t{on} << k;
        }
        return d;
      });
    }
  }
  for (Opcode opcode : {Opcode::shf_l, Opcode::shf_r}) {
    for (Word word : {Word::clamp, Word::wrap}) {
      const Form form{opcode, Type::b32, Type::none, {.word = word}, {4, 4, 4, 4}};
      const auto values = integer_values(4, 6);
      check(form, product({values, values, kAmounts}), [&](const Args& args) {
        const uint64_t by = word == Word::wrap ? args[2] % 32 : args[2] < 32 ? args[2] : 32;
        const uint64_t both = args[1] << 32 | args[0];
        return opcode == Opcode::shf_r ? both >> by : both << by >> 32;
      });
    }
  }
}

TEST(LanesBits, Counts) {
  for (Opcode opcode : {Opcode::popc, Opcode::clz, Opcode::bfind, Opcode::brev}) {
    for (Type type : types_of(opcode)) {
      for (Word word : {Word::none, Word::shiftamt}) {
        if (word != Word::none && opcode != Opcode::bfind) continue;
        const int bytes = type_bytes(type), bits = bytes * 8;
        const Form form{
            opcode, type, Type::none, {.word = word}, {opcode == Opcode::brev ? bytes : 4, bytes}};
        check(form, product({integer_values(bytes, 300)}), [&](const Args& args) -> uint64_t {
          const bool sign = is_signed(type) && bit(args[0], bits - 1);
          uint64_t ones = 0, reversed = 0;
          int top = -1;
          for (int k = 0; k < bits; ++k) {
            ones += bit(args[0], k);
            reversed |= uint64_t{bit(args[0], k)} << (bits - 1 - k);
            if (bit(args[0], k) != sign) top = k;
          }
          if (opcode == Opcode::popc) return ones;
          if (opcode == Opcode::brev) return reversed;
          if (opcode == Opcode::clz) return bits - 1 - top;
          return top < 0 ? ~0ull : word == Word::shiftamt ? bits - 1 - top : top;
        });
      }
    }
  }
}

TEST(LanesBits, Fields) {
  for (Type type : types_of(Opcode::bfe)) {
    const int bits = type_bytes(type) * 8;
    const Form form{Opcode::bfe, type, Type::none, {}, {bits / 8, bits / 8, 4, 4}};
    check(form, product({integer_values(bits / 8, 10), kAmounts, kAmounts}), [&](const Args& args) {
      const int position = args[1] & 0xff, length = args[2] & 0xff;
      const int top = position + length - 1 < bits - 1 ? position + length - 1 : bits - 1;
      const bool fill = is_signed(type) && length != 0 && bit(args[0], top);
      uint64_t d = 0;
      for (int k = 0; k < bits; ++k) {
        const bool on = k < length && position + k < bits ? bit(args[0], position + k) : fill;
        d |= uint64_t{on} << k;
      }
      return d;
    });
  }
  for (Type type : types_of(Opcode::bfi)) {
    const int bytes = type_bytes(type);
    const Form form{Opcode::bfi, type, Type::none, {}, {bytes, bytes, bytes, 4, 4}};
    const auto values = integer_values(bytes, 2);
    check(form, some_of(product({values, values, kAmounts, kAmounts}), 40000),
          [&](const Args& args) {
            const int position = args[2] & 0xff, length = args[3] & 0xff;
            uint64_t d = args[1];
            for (int k = 0; k < length && position + k < bytes * 8; ++k) {
              d = (d & ~(uint64_t{1} << (position + k))) | uint64_t{bit(args[0], k)}
                                                               << (position + k);
            }
            return d;
          });
  }
  for (Word word : {Word::clamp, Word::wrap}) {
    const bool clamp = word == Word::clamp;
    const Form mask{Opcode::bmsk, Type::b32, Type::none, {.word = word}, {4, 4, 4}};
    check(mask, product({kAmounts, kAmounts}), [&](const Args& args) {
      const uint64_t from = clamp ? args[0] : args[0] % 32, count = clamp ? args[1] : args[1] % 32;
      uint64_t d = 0;
      for (uint64_t k = 0; k < 32; ++k) d |= uint64_t{k >= from && k - from < count} << k;
      return d;
    });
    for (Type type : types_of(Opcode::szext)) {
      const Form extend{Opcode::szext, type, Type::none, {.word = word}, {4, 4, 4}};
      check(extend, product({integer_values(4, 20), kAmounts}), [&](const Args& args) {
        const uint64_t count = clamp ? args[1] : args[1] % 32;
        uint64_t d = 0;
        for (uint64_t k = 0; k < 32; ++k) {
          // Of more than 32 bits none is filled.
          const bool fill = count - 1 < 32 && is_signed(type) && bit(args[0], int(count - 1));
          d |= uint64_t{k < count ? bit(args[0], int(k)) : fill} << k;
        }
        return d;
      });
    }
  }
}

TEST(LanesBits, FindsTheNthSetBit) {
  const Form form{Opcode::fns, Type::b32, Type::none, {}, {4, 4, 4, 4}};
  const std::vector<uint64_t> offsets = {
      0, 1, 2, 5, 31, 32, 0x7fffffff, 0xffffffff, 0xfffffffe, 0xfffffffb, 0x80000000};
  check(form, product({integer_values(4, 20), {0, 1, 5, 16, 30, 31}, offsets}),
        [](const Args& args) {
          const int32_t offset = int32_t(args[2]);
          std::vector<int> order;
          for (int k = int(args[1]); k >= 0 && k < 32; k += offset < 0 ? -1 : 1) {
            if (bit(args[0], k)) order.push_back(k);
          }
          if (offset == 0) return bit(args[0], int(args[1])) ? args[1] : 0xffffffffu;
          const int64_t nth = (offset < 0 ? -int64_t{offset} : offset) - 1;
          return nth < int64_t(order.size()) ? uint64_t(order[nth]) : 0xffffffffu;
        });
}

TEST(LanesBits, PermutesBytes) {
  // The PTX ISA's table of the modes: which byte goes to bytes 3, 2, 1, 0 for each control.
  const struct {
    Word word;
    const char* rows[4];
  } kModes[] = {{Word::f4e, {"3210", "4321", "5432", "6543"}},
                {Word::b4e, {"5670", "6701", "7012", "0123"}},
                {Word::rc8, {"0000", "1111", "2222", "3333"}},
                {Word::ecl, {"3210", "3211", "3222", "3333"}},
                {Word::ecr, {"0000", "1110", "2210", "3210"}},
                {Word::rc16, {"1010", "3232", "1010", "3232"}}};
  const auto values = integer_values(4, 20);
  for (const auto& mode : kModes) {
    const Form form{Opcode::prmt, Type::b32, Type::none, {.word = mode.word}, {4, 4, 4, 4}};
    check(form, product({values, values, {0, 1, 2, 3, 4, 7, 0xffffffff}}), [&](const Args& args) {
      const uint64_t both = args[1] << 32 | args[0];
      uint64_t d = 0;
      for (int k = 0; k < 4; ++k)
        d = d << 8 | (both >> (mode.rows[args[2] % 4][k] - '0') * 8 & 0xff);
      return d;
    });
  }
  const Form form{Opcode::prmt, Type::b32, Type::none, {}, {4, 4, 4, 4}};
  check(form,
        product({values, values, {0x3210, 0x7654, 0xfedc, 0x8091, 0x0123, 0xffff1234, 0xcafe}}),
        [](const Args& args) {
          const uint64_t both = args[1] << 32 | args[0];
          uint64_t d = 0;
          for (int k = 0; k < 4; ++k) {
            const uint64_t selector = args[2] >> k * 4;
            const uint64_t byte = both >> (selector & 7) * 8 & 0xff;
            d |= (selector & 8 ? (byte >> 7) * 0xff : byte) << k * 8;
          }
          return d;
        });
}

}  // namespace
}  // namespace stitch::ptxsim::lanes_test
