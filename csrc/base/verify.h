// What verifiers between the stages throw.
#pragma once

#include "base/error.h"

namespace stitch {

// const auto hold = rules_of("plan", "kernel ", k): where hold(.., "one-store") is told false, the
// InternalError "plan rule one-store: kernel 2".  What is shown outlives it.
template <class... Where>
auto rules_of(const char* noun, const Where&... where) {
  return [noun, &where...](bool holds, const char* rule) {
    if (holds) return;
    std::ostringstream text;
    (text << noun << " rule " << rule << ": " << ... << where);
    throw InternalError(text.str());
  };
}

}  // namespace stitch
