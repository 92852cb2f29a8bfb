// What verifiers must refuse: sound things with one fault each, and the rule that says so.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace stitch {

template <class Thing>
struct Fault {
  const char* name;
  std::function<void(Thing&)> make;
  const char* rule;
};

// `make_sound()` passes `verify`; with each of the faults it breaks the fault's rule.
template <class Thing, class MakeSound, class Verify>
void expect_refused(const std::vector<Fault<Thing>>& faults, const MakeSound& make_sound,
                    const Verify& verify) {
  const auto refusal = [&](const Thing& thing) -> std::string {
    try {
      verify(thing);
    } catch (const InternalError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(make_sound()), "");
  for (const auto& [name, make, rule] : faults) {
    Thing thing = make_sound();
    make(thing);
    EXPECT_NE(refusal(thing).find(std::string(" rule ") + rule + ": "), std::string::npos)
        << name << ": '" << refusal(thing) << "'";
  }
}

}  // namespace stitch
