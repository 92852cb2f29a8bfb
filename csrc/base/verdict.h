// The answer of a check that may refuse: yes, or no with a numbered rule, the reason in words a
// user understands, and what would allow it.  `explain` shows refusals as they stand here.
#pragma once

#include <string>
#include <utility>

namespace stitch {

struct Verdict {
  bool ok = true;
  int rule = 0;     // number of the refusing rule; 0 when ok
  std::string why;  // "the sum over 4096 columns needs 48 KiB more shared memory than a block has"
  std::string remedy;  // "split the reduction"; may be empty

  static Verdict yes() { return {}; }
  static Verdict no(int rule, std::string why, std::string remedy = "") {
    return {false, rule, std::move(why), std::move(remedy)};
  }
  explicit operator bool() const { return ok; }
};

}  // namespace stitch
