// Rows that go past the caches: whatever their place, length and element, what lies around stays.
#include "device/stitch/load_store.cuh"

#include <gtest/gtest.h>

#include <vector>

namespace stitch_test {

using namespace stitch;

template <class T>
void check_streams() {
  constexpr T kAround = 99;
  constexpr size_t kPlaces = 64 / sizeof(T);
  for (size_t place = 0; place <= kPlaces; ++place) {
    for (const size_t count : {0, 1, 7, 15, 16, 17, 63, 64, 65, 200, 256}) {
      std::vector<T> row(count), memory(place + count + kPlaces, kAround);
      for (size_t i = 0; i < count; ++i) row[i] = static_cast<T>(i % 97);
      stream_out(memory.data() + place, row.data(), static_cast<i64>(count));
      end_streams();
      for (size_t i = 0; i < memory.size(); ++i) {
        const bool is_inside = i >= place && i < place + count;
        ASSERT_EQ(memory[i], is_inside ? row[i - place] : kAround)
            << sizeof(T) << " bytes, " << count << " at " << place << ": " << i;
      }
    }
  }
}

TEST(StreamOut, MovesTheRowAndNothingElse) {
  check_streams<u8>();
  check_streams<i16>();
  check_streams<f32>();
  check_streams<f64>();
}

}  // namespace stitch_test
