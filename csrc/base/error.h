// Errors of the compiler: what a user did wrong, what we do not do (yet), our own bugs, and the end
// of the process; and the answer of a check that may refuse.
//
// A message says what was found, what is allowed and what to do.  Frames of the thread's
// ErrorContext stack are appended when the error is built, innermost first:
//   kernel has 0 stages [planner.cpp:41: !stages.empty()]
//     while planning kernel 3
//     while compiling graph 7
#pragma once

#include <atomic>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace stitch {

struct Error : std::runtime_error {
  explicit Error(const std::string& message);
};

// Wrong use: an unknown option, a malformed graph text.  Always reaches the user.
struct UserError : Error {
  using Error::Error;
};

// Something we do not handle: the caller falls back to library calls and counts it.
struct UnsupportedError : Error {
  using Error::Error;
};

// A broken invariant of ours.
struct InternalError : Error {
  using Error::Error;
  explicit InternalError(const Error& cause) : Error(cause) {}  // its message and its frames
};

// The work is no longer wanted; nothing failed.  At the end of the process long work on other
// threads gives up at its next step, so that nothing runs while what it uses is taken down.
struct StoppedError : Error {
  using Error::Error;
};

// True for good once the process ends: there is no way back.
inline std::atomic<bool> is_stopping = false;

// StoppedError once the process ends.
inline void check_stopping() {
  if (is_stopping) throw StoppedError("the process ends");
}

#define STITCH_RULE(number, name, why, remedy) inline constexpr int kRule##name = number;
#include "base/rules.def"
#undef STITCH_RULE

// Yes, or no with a numbered rule, the reason in words a user understands, and what would allow it.
// `explain` shows refusals as they stand here.
struct Verdict {
  bool ok = true;
  int rule = 0;     // number of the refusing rule; 0 when ok
  std::string why;  // "the sum over 4096 columns needs 48 KiB more shared memory than a block has"
  std::string remedy;  // "split the reduction"; may be empty

  static Verdict yes() { return {}; }
  static Verdict no(int rule, std::string why = "", std::string remedy = "");  // "": as rules.def
  explicit operator bool() const { return ok; }
};

// Names what this thread is doing until the end of the scope.
class ErrorContext {
 public:
  explicit ErrorContext(std::string frame);
  ~ErrorContext();
  ErrorContext(const ErrorContext&) = delete;
  ErrorContext& operator=(const ErrorContext&) = delete;
};

[[noreturn]] void throw_check_failed(const char* file, int line, const char* condition,
                                     const std::string& message);

// STITCH_CHECK(a == b, "found " << a << ", expected " << b): InternalError unless the condition
// holds.  The message is only built when it does not.
#define STITCH_CHECK(condition, ...)                                                      \
  do {                                                                                    \
    if (!(condition)) [[unlikely]] {                                                      \
      std::ostringstream stitch_message;                                                  \
      stitch_message << __VA_ARGS__;                                                      \
      ::stitch::throw_check_failed(__FILE__, __LINE__, #condition, stitch_message.str()); \
    }                                                                                     \
  } while (false)

}  // namespace stitch
